//! How often each name came.

use std::sync::Arc;

use super::names::{Names, NONE, OTHERS};

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
