//! Events gathered into classes, and into stretches of time.

use std::collections::{HashMap, HashSet};

use hashbrown::HashTable;

use super::attributes::{Attributes, LOCK_TIME, QUERY_TIME, ROWS_EXAMINED, ROWS_SENT, TOTALS};
use super::class::{example_bytes, fingerprint_bytes, Event, Gathered};
use super::fingerprint::{fingerprint, Fingerprint};
use super::names::{Names, INHERITED};
use super::number::IMPOSSIBLE;
use super::options::{Config, Group};
use super::result::{Digest, Oddities, Span, Summary, Totals, Window, WindowClass};

/// The most statement shapes that are remembered.
const SHAPES: usize = 1 << 16;
/// Bytes for all that grows with what is seen of a class, and not with the number of classes.
const ROOM: i64 = 16 << 20;
/// Bytes that each class adds to it.
pub(super) const ROOM_OF_CLASS: i64 = 1024;

/// All classes, and the sums over them.
#[derive(Debug)]
pub(super) struct Gather {
    classes: Vec<Gathered>,
    by_id: HashTable<u32>,
    by_shape: HashTable<(u64, u32)>,
    windows: Option<Windows>,
    events: u64,
    weight: u64,
    sums: [u128; TOTALS],
    span: Span,
    filtered: u64,
    pub oddities: Oddities,
    room: i64,
    /// The filter asked for a database that only the text before this one names.
    pub guessed: bool,
    /// Whether there is a filter.
    filters: bool,
    config: Config,
}

impl Gather {
    /// A place for events.
    pub fn new(config: Config) -> Self {
        Self {
            classes: Vec::new(),
            by_id: HashTable::new(),
            by_shape: HashTable::new(),
            windows: config.window_s.map(Windows::new),
            events: 0,
            weight: 0,
            sums: [0; TOTALS],
            span: Span::default(),
            filtered: 0,
            oddities: Oddities::default(),
            room: ROOM,
            guessed: false,
            filters: config.filter.active(),
            config,
        }
    }

    /// Adds an event whose statement has that shape, if that is known.
    #[inline]
    pub fn add(
        &mut self,
        event: &Event,
        shape: Option<u64>,
        names: &Names,
        attributes: &Attributes,
    ) {
        if self.filters && !self.passes(event, names) {
            self.filtered += 1;
            return;
        }
        let class = match self.config.group {
            None => self.class(event.statement, shape),
            Some(group) => self.named(group, event, names),
        };
        let keep = example_bytes(class).min(self.config.keep_example_bytes);
        let impossible = self.classes[class].add(event, keep, attributes, &mut self.room);
        self.oddities.impossible_values += impossible;
        self.events += 1;
        self.weight += event.weight;
        if let Some(at_us) = event.at_us {
            self.span.include(at_us);
            if let Some(windows) = &mut self.windows {
                windows.add(
                    self.classes[class].id(),
                    at_us,
                    event.query_time_us.unwrap_or(0),
                );
            }
        }
        for (sum, place) in self.sums.iter_mut().zip(event.layout.totals) {
            let value = place.map_or(0, |place| event.values[place]);
            if value != IMPOSSIBLE {
                *sum += u128::from(value);
            }
        }
    }

    /// The place of a statement's class.
    #[inline]
    fn class(&mut self, statement: &[u8], shape: Option<u64>) -> usize {
        // pt-query-digest's fingerprint depends on what is in the literals.
        let shape = shape.filter(|_| !self.config.compat_pt);
        if let Some(shape) = shape {
            if let Some((_, class)) = self.by_shape.find(shape, |known| known.0 == shape) {
                return *class as usize;
            }
        }
        let class = self.new_shape(statement);
        if let Some(shape) = shape {
            if self.by_shape.len() == SHAPES {
                self.by_shape.clear();
            }
            self.by_shape
                .insert_unique(shape, (shape, class), |known| known.0);
        }
        class as usize
    }

    /// The place of the class of all events with the same name.
    fn named(&mut self, group: Group, event: &Event, names: &Names) -> usize {
        let number = match group {
            Group::User => event.who.user,
            Group::Host => event.who.host,
            Group::Database => event.who.database,
        };
        self.guessed |= group == Group::Database && number == INHERITED;
        // Spread over all bits; no two numbers have the same.
        let key = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if let Some((_, class)) = self.by_shape.find(key, |known| known.0 == key) {
            return *class as usize;
        }
        let name = match &*names.text(number) {
            "" => "(none)".into(),
            name => name.as_bytes().to_vec(),
        };
        let class = self.place(&Fingerprint::of(name));
        if self.by_shape.len() == SHAPES {
            self.by_shape.clear();
        }
        self.by_shape
            .insert_unique(key, (key, class), |known| known.0);
        class as usize
    }

    #[cold]
    fn new_shape(&mut self, statement: &[u8]) -> u32 {
        self.place(&fingerprint(statement, self.config.compat_pt))
    }

    fn place(&mut self, found: &Fingerprint) -> u32 {
        let classes = &mut self.classes;
        if let Some(class) = self
            .by_id
            .find(found.id, |class| classes[*class as usize].id() == found.id)
        {
            return *class;
        }
        let class = u32::try_from(classes.len()).unwrap_or(u32::MAX);
        let most = fingerprint_bytes(classes.len());
        classes.push(Gathered::new(found, most));
        self.by_id
            .insert_unique(found.id, class, |class| classes[*class as usize].id());
        self.room += ROOM_OF_CLASS;
        class
    }

    fn passes(&mut self, event: &Event, names: &Names) -> bool {
        let filter = &self.config.filter;
        if filter.database.is_some() && event.who.database == INHERITED {
            self.guessed = true;
        }
        let is = |want: &Option<String>, name: u32| {
            want.as_ref().is_none_or(|want| *names.text(name) == **want)
        };
        let time = |test: &dyn Fn(i64) -> bool| event.at_us.is_some_and(test);
        event.query_time_us.unwrap_or(0) >= filter.min_time_us
            && is(&filter.user, event.who.user)
            && is(&filter.host, event.who.host)
            && is(&filter.database, event.who.database)
            && filter
                .since_us
                .is_none_or(|since| time(&|at_us| at_us >= since))
            && filter
                .until_us
                .is_none_or(|until| time(&|at_us| at_us < until))
            && filter
                .text
                .as_ref()
                .is_none_or(|text| contains(event.statement, text.as_bytes()))
    }

    /// The bytes that are left for what grows; without any, the order of events matters.
    pub fn room(&self) -> i64 {
        self.room
    }

    /// What was gathered, with nothing left.
    pub fn take(&mut self, names: &Names) -> Digest {
        let fresh = Self::new(self.config.clone());
        let done = std::mem::replace(self, fresh);
        let redact = done.config.redact;
        let sum = |attribute: u16| done.sums[usize::from(attribute)];
        let totals = Totals {
            events: done.events,
            events_weighted: done.weight,
            query_time_us: sum(QUERY_TIME),
            lock_time_us: sum(LOCK_TIME),
            rows_sent: sum(ROWS_SENT),
            rows_examined: sum(ROWS_EXAMINED),
        };
        drop((done.by_id, done.by_shape));
        let classes = done.classes.into_iter();
        let mut digest = Digest {
            summary: Summary {
                totals,
                span: done.span,
                bytes: 0,
                oddities: done.oddities,
                filtered: done.filtered,
            },
            classes: classes.map(|class| class.done(names)).collect(),
            windows: done.windows.map(Windows::done).unwrap_or_default(),
        };
        if redact {
            digest.redact();
        }
        digest
    }
}

/// Whether a text has another in it, whatever the case of its letters.
fn contains(text: &[u8], part: &[u8]) -> bool {
    let Some((first, rest)) = part.split_first() else {
        return true;
    };
    let (lower, upper) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    memchr::memchr2_iter(lower, upper, text).any(|at| {
        text.get(at + 1..=at + rest.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(rest))
    })
}

/// So many pairs of a window and a class are retained, and one more for each class; beyond that the
/// windows double their width, to the same one in whatever order the events come.
const MOST: usize = if cfg!(test) { 1 << 10 } else { 1 << 17 };
/// Wider windows would not hold fewer pairs: times before 1970 and after it share none.
const WIDEST_US: i64 = i64::MAX / 2;

/// Events and microseconds by the number of a window and a class's id.
#[derive(Debug)]
pub(super) struct Windows {
    width_us: i64,
    cells: HashMap<(i64, u64), Cell>,
    /// Each has a cell at least, however wide the windows are.
    classes: HashSet<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    events: u64,
    query_time_us: u128,
}

impl Windows {
    /// Windows of that width.
    pub fn new(width_s: u64) -> Self {
        let seconds = i64::try_from(width_s.max(1)).unwrap_or(i64::MAX);
        Self::of_width(seconds.saturating_mul(1_000_000))
    }

    fn of_width(width_us: i64) -> Self {
        Self {
            width_us,
            cells: HashMap::new(),
            classes: HashSet::new(),
        }
    }

    /// Counts an event.
    pub fn add(&mut self, class: u64, at_us: i64, query_time_us: u64) {
        self.count(
            at_us.div_euclid(self.width_us),
            class,
            1,
            u128::from(query_time_us),
        );
    }

    fn count(&mut self, window: i64, class: u64, events: u64, query_time_us: u128) {
        let cell = self.cells.entry((window, class)).or_insert_with(|| {
            self.classes.insert(class);
            Cell::default()
        });
        cell.events += events;
        cell.query_time_us += query_time_us;
        while self.cells.len() - self.classes.len() > MOST && self.width_us < WIDEST_US {
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width_us = self.width_us.saturating_mul(2);
        for ((window, class), cell) in std::mem::take(&mut self.cells) {
            let wide = self.cells.entry((window.div_euclid(2), class)).or_default();
            wide.events += cell.events;
            wide.query_time_us += cell.query_time_us;
        }
    }

    /// Counts what other windows counted, whose width is this one's, doubled or halved.
    fn add_all(&mut self, windows: &[Window]) {
        for window in windows {
            while self.width_us < window.end_us - window.start_us {
                self.widen();
            }
            for class in &window.classes {
                let number = window.start_us.div_euclid(self.width_us);
                self.count(number, class.id, class.events, class.query_time_us);
            }
        }
    }

    /// The windows in which something happened, in order of time.
    pub fn done(self) -> Vec<Window> {
        let mut cells: Vec<_> = self.cells.into_iter().collect();
        cells.sort_unstable_by_key(|(key, _)| *key);
        let mut windows: Vec<Window> = Vec::new();
        for (
            (number, id),
            Cell {
                events,
                query_time_us,
            },
        ) in cells
        {
            let start_us = number.saturating_mul(self.width_us);
            if windows.last().is_none_or(|last| last.start_us != start_us) {
                let end_us = start_us.saturating_add(self.width_us);
                windows.push(Window {
                    start_us,
                    end_us,
                    events: 0,
                    query_time_us: 0,
                    classes: Vec::new(),
                });
            }
            if let Some(window) = windows.last_mut() {
                window.events += events;
                window.query_time_us += query_time_us;
                window.classes.push(WindowClass {
                    id,
                    events,
                    query_time_us,
                });
            }
        }
        windows
    }
}

/// The windows of two logs together.
pub(super) fn merged(one: &[Window], other: &[Window]) -> Vec<Window> {
    let width_us = |windows: &[Window]| {
        windows
            .first()
            .map(|window| window.end_us - window.start_us)
    };
    let Some(width_us) = width_us(one).into_iter().chain(width_us(other)).max() else {
        return Vec::new();
    };
    let mut windows = Windows::of_width(width_us);
    windows.add_all(one);
    windows.add_all(other);
    windows.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_in_the_window_of_its_time() {
        let mut windows = Windows::new(60);
        for (class, at_s) in [(1, 0), (1, 59), (2, 60), (1, -1)] {
            windows.add(class, at_s * 1_000_000, 5);
        }
        let windows = windows.done();
        let seen: Vec<_> = windows
            .iter()
            .map(|w| (w.start_us / 1_000_000, w.events, w.query_time_us))
            .collect();
        assert_eq!(seen, [(-60, 1, 5), (0, 2, 10), (60, 1, 5)]);
    }

    #[test]
    fn too_many_windows_grow_wider_and_lose_nothing() {
        let (mut all, mut odd, mut even) = (Windows::new(1), Windows::new(1), Windows::new(1));
        for second in 0..3000 {
            for windows in [&mut all, if second % 2 == 0 { &mut even } else { &mut odd }] {
                windows.add(7, second * 1_000_000, 3);
            }
        }
        let (all, parts) = (all.done(), merged(&odd.done(), &even.done()));
        assert_eq!(all, parts);
        assert_eq!(all.iter().map(|window| window.events).sum::<u64>(), 3000);
        assert_eq!(all[0].end_us - all[0].start_us, 4_000_000);
    }

    /// Each class once in each of these seconds, and the same by two parts.
    fn of_many_classes(seconds: &[i64]) -> Vec<Window> {
        let (mut all, mut odd, mut even) = (Windows::new(1), Windows::new(1), Windows::new(1));
        for class in 0..2 * MOST as u64 {
            for second in seconds {
                for windows in [&mut all, if class % 2 == 0 { &mut even } else { &mut odd }] {
                    windows.add(class, second * 1_000_000, 3);
                }
            }
        }
        let all = all.done();
        assert_eq!(all, merged(&odd.done(), &even.done()));
        let events = all.iter().map(|window| window.events).sum::<u64>();
        assert_eq!(events, (2 * MOST * seconds.len()) as u64);
        all
    }

    #[test]
    fn more_classes_than_pairs_are_retained_have_windows() {
        let one = of_many_classes(&[0]);
        assert_eq!((one[0].start_us, one[0].end_us), (0, 1_000_000));
        let two = of_many_classes(&[0, 5]);
        assert_eq!(two.len(), 1);
        assert_eq!((two[0].start_us, two[0].end_us), (0, 8_000_000));
    }

    #[test]
    fn windows_before_and_after_1970_do_not_widen_for_ever() {
        assert_eq!(of_many_classes(&[-5, 5]).len(), 2);
    }
}
