//! Names of users, hosts and databases as small numbers, and how often each came.

use std::sync::Arc;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// No name.
pub(super) const NONE: u32 = 0;
/// Any name for which there was no room.
pub(super) const OTHERS: u32 = 1;
/// The database in use where the text begins, which only the text before it names.
pub(super) const INHERITED: u32 = 2;
/// How `OTHERS` is written.
pub(super) const OTHERS_TEXT: &str = "…";
/// How `INHERITED` is written until it is known: no name has a zero in it.
pub(super) const INHERITED_TEXT: &str = "\0";

/// Longer names are cut: the server's own limits are below it.
const LONGEST: usize = 256;
/// So many bytes of names are retained.
const MOST_BYTES: usize = 8 << 20;

/// Each name once.
#[derive(Debug)]
pub(super) struct Names {
    texts: Vec<Arc<str>>,
    places: HashTable<u32>,
    room: usize,
    /// The last one asked for, since the next is likely the same.
    last: (Vec<u8>, u32),
}

impl Default for Names {
    fn default() -> Self {
        let texts = vec![
            Arc::from(""),
            Arc::from(OTHERS_TEXT),
            Arc::from(INHERITED_TEXT),
        ];
        Self {
            texts,
            places: HashTable::new(),
            room: MOST_BYTES,
            last: (Vec::new(), NONE),
        }
    }
}

impl Names {
    /// The number of a name.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return NONE;
        }
        if self.last.0 != name {
            let number = self.find(name);
            self.last.0.clear();
            self.last.0.extend_from_slice(name);
            self.last.1 = number;
        }
        self.last.1
    }

    fn find(&mut self, name: &[u8]) -> u32 {
        let text =
            String::from_utf8_lossy(&name[..name.len().min(LONGEST)]).replace('\0', "\u{fffd}");
        let hash = xxh3_64(text.as_bytes());
        let texts = &self.texts;
        if let Some(number) = self
            .places
            .find(hash, |number| *texts[*number as usize] == *text)
        {
            return *number;
        }
        let (Some(room), Ok(number)) = (
            self.room.checked_sub(text.len() + 64),
            u32::try_from(self.texts.len()),
        ) else {
            return OTHERS;
        };
        self.room = room;
        self.texts.push(Arc::from(text));
        let texts = &self.texts;
        self.places.insert_unique(hash, number, |number| {
            xxh3_64(texts[*number as usize].as_bytes())
        });
        number
    }

    /// Whether a name was dropped.
    pub fn full(&self) -> bool {
        self.room < LONGEST + 64
    }

    /// A number's name.
    pub fn text(&self, number: u32) -> Arc<str> {
        Arc::clone(&self.texts[number as usize])
    }
}

/// Names of which every class keeps as many whatever the room.
pub(super) const FREE_NAMES: usize = 16;
/// The bytes that one more takes, while gathered and when reported.
pub(super) const ENTRY: i64 = 56;

/// How often each name came; the name of the last event is at hand.
#[derive(Debug, Default)]
pub(super) struct Tally {
    last: u32,
    count: u64,
    /// The others, in order.
    rest: Vec<(u32, u64)>,
}

impl Tally {
    /// Counts a name.  Memory it takes is taken from `room`; where there is none left, a new name
    /// is counted among the others.
    #[inline]
    pub fn add(&mut self, name: u32, room: &mut i64) {
        if self.last != name {
            self.turn(name, room);
        }
        self.count += 1;
    }

    fn turn(&mut self, name: u32, room: &mut i64) {
        if self.count > 0 {
            let (last, count) = (self.last, self.count);
            let free = self.rest.len() < FREE_NAMES;
            let known = self
                .rest
                .binary_search_by_key(&last, |known| known.0)
                .is_ok();
            *room -= if known || free { 0 } else { ENTRY };
            self.put(
                if known || free || *room > 0 {
                    last
                } else {
                    OTHERS
                },
                count,
            );
        }
        (self.last, self.count) = (name, 0);
    }

    fn put(&mut self, name: u32, count: u64) {
        match self.rest.binary_search_by_key(&name, |known| known.0) {
            Ok(at) => self.rest[at].1 += count,
            Err(at) => self.rest.insert(at, (name, count)),
        }
    }

    /// The counts, in the order of the names.
    pub fn done(mut self, names: &Names) -> Vec<(Arc<str>, u64)> {
        if self.count > 0 {
            self.put(self.last, self.count);
        }
        let counts = self.rest.iter().filter(|(name, _)| *name != NONE);
        let mut counts: Vec<_> = counts
            .map(|(name, count)| (names.text(*name), *count))
            .collect();
        counts.sort_unstable();
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let mut names = Names::default();
        let (root, app) = (names.number(b"root"), names.number(b"app"));
        assert_ne!(root, app);
        assert_eq!((names.number(b"root"), names.number(b"")), (root, NONE));
        assert_eq!(&*names.text(app), "app");
    }

    #[test]
    fn too_many_names_are_one() {
        let mut names = Names::default();
        for i in 0..200_000_u32 {
            names.number(format!("name {i}").as_bytes());
        }
        assert!(names.full());
        assert_eq!(names.number(b"one more"), OTHERS);
        assert_ne!(names.number(b"name 7"), OTHERS);
    }
}
