//! The results of a digest, as plain values, and how several become one.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::gather::{merged, ROOM_OF_CLASS};
use super::histogram::Histogram;
use super::names::{ENTRY, FREE_NAMES, INHERITED_TEXT};

/// A log, gathered into classes.  Classes are in the order of their first event.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    pub summary: Summary,
    pub classes: Vec<Class>,
    /// In order of time; empty unless windows were asked for.
    pub windows: Vec<Window>,
}

/// The entire log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub totals: Totals,
    pub span: Span,
    /// How many bytes were read.
    pub bytes: u64,
    pub oddities: Oddities,
    /// Events that the filter did not let pass; they are in no total.
    pub filtered: u64,
}

/// Exact sums over all events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub events: u64,
    /// The sum of the rate limits under which the server logged one of so many.
    pub events_weighted: u64,
    pub query_time_us: u128,
    pub lock_time_us: u128,
    pub rows_sent: u128,
    pub rows_examined: u128,
}

/// The first and the last time, in microseconds since 1970; none where the log has no times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub first_us: Option<i64>,
    pub last_us: Option<i64>,
}

/// What a sound log has none of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Oddities {
    pub headers_without_statement: u64,
    /// Headers inside of a statement, which were taken for text.
    pub forged_headers: u64,
    /// Events whose end is missing.
    pub cut_events: u64,
    /// Lines that start with `#` and belong to no event.
    pub unknown_lines: u64,
    /// Bytes that belong to no event, those of such lines too.
    pub unreadable_bytes: u64,
    /// Times and counts that no server can mean; they are in no metric.
    pub impossible_values: u64,
}

/// The statements of one fingerprint.
#[derive(Debug, Clone)]
pub struct Class {
    /// The last 64 bits of the MD5 of the complete fingerprint.
    pub id: u64,
    /// The first 64 bits.
    pub id_high: u64,
    /// Cut to 16 KB.
    pub fingerprint: Box<str>,
    pub events: u64,
    pub events_weighted: u64,
    pub span: Span,
    /// By name, in the order in which the log brought them.
    pub metrics: Vec<(Arc<str>, Metric)>,
    pub counts: Counts,
    /// The slowest statement; the first of equals.
    pub example: Option<Example>,
}

impl Class {
    /// The fingerprint's first word.
    #[must_use]
    pub fn verb(&self) -> &str {
        let letters = |c: char| !c.is_alphanumeric() && c != '_';
        self.fingerprint
            .split(letters)
            .find(|word| !word.is_empty())
            .unwrap_or("")
    }

    /// The metric of that name, such as `query_time_s`.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics
            .iter()
            .find(|(known, _)| &**known == name)
            .map(|(_, metric)| metric)
    }
}

/// The values of one attribute, as integers of 10^-`decimals` base units.
#[derive(Debug, Clone)]
pub struct Metric {
    /// 0 for counts and bytes, 6 for times, 9 for the times that `MariaDB` writes in milliseconds.
    pub decimals: u8,
    pub count: u64,
    pub sum: u128,
    pub min: u64,
    pub max: u64,
    pub histogram: Histogram,
}

/// How many events had each flag, user, host, database, by name in order; names for which there
/// was no memory are under "…".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Attributes that were Yes, and error numbers other than 0.
    pub flags: Vec<(Arc<str>, u64)>,
    pub users: Vec<(Arc<str>, u64)>,
    pub hosts: Vec<(Arc<str>, u64)>,
    pub databases: Vec<(Arc<str>, u64)>,
}

/// One statement of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// Its text, cut; bytes that are not UTF-8 are shown as U+FFFD.
    pub query: String,
    pub query_time_us: u64,
    pub at_us: Option<i64>,
    pub database: Arc<str>,
    /// It is there to its last byte, with its literals.
    pub complete: bool,
}

/// What ended in one stretch of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub start_us: i64,
    pub end_us: i64,
    pub events: u64,
    pub query_time_us: u128,
    pub classes: Vec<WindowClass>,
}

/// A class's part of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowClass {
    pub id: u64,
    pub events: u64,
    pub query_time_us: u128,
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Total {
    pub digest: Digest,
    pub logs: Vec<Log>,
}

/// One log.
#[derive(Debug)]
pub struct Log {
    pub name: String,
    /// Bytes of log that were read, unpacked.
    pub bytes: u64,
}

impl Total {
    /// The total of these logs.
    pub fn of(digests: impl IntoIterator<Item = (String, Digest)>) -> Self {
        let mut total = Self::default();
        for (name, digest) in digests {
            total.add(name, digest);
        }
        total
    }

    /// Adds a log.
    pub fn add(&mut self, name: String, digest: Digest) {
        self.logs.push(Log {
            name,
            bytes: digest.summary.bytes,
        });
        if self.logs.len() == 1 {
            self.digest = digest;
        } else {
            self.digest.merge(digest);
        }
    }
}

type Tally = Vec<(Arc<str>, u64)>;

impl Digest {
    /// Adds the digest of another log.  In whatever order logs are added, all but the order of the
    /// classes and the choice among equally slow examples is the same.
    pub fn merge(&mut self, other: Self) {
        let mut room = i64::MAX / 2;
        self.merge_within(other, &mut room);
    }

    /// Adds the digest of another log; the memory that takes is taken from `room`.
    pub(super) fn merge_within(&mut self, other: Self, room: &mut i64) {
        self.summary.merge(&other.summary);
        self.windows = if other.windows.is_empty() {
            std::mem::take(&mut self.windows)
        } else {
            merged(&self.windows, &other.windows)
        };
        let mut places: HashMap<u64, usize> = HashMap::with_capacity(self.classes.len());
        places.extend(
            self.classes
                .iter()
                .enumerate()
                .map(|(place, class)| (class.id, place)),
        );
        for class in other.classes {
            if let Some(place) = places.get(&class.id) {
                self.classes[*place].merge(class, room);
                self.classes[*place].fit(*place);
            } else {
                *room += ROOM_OF_CLASS - class.room();
                self.classes.push(class);
                let place = self.classes.len() - 1;
                self.classes[place].fit(place);
            }
        }
    }

    /// Names the database of the events before the first USE.
    pub(super) fn inherit(&mut self, database: &Arc<str>) {
        for class in &mut self.classes {
            if let Some(example) = &mut class.example {
                if &*example.database == INHERITED_TEXT {
                    example.database = Arc::clone(database);
                }
            }
            let databases = &mut class.counts.databases;
            if let Some(at) = databases
                .iter()
                .position(|known| &*known.0 == INHERITED_TEXT)
            {
                let (_, count) = databases.remove(at);
                if !database.is_empty() {
                    add(databases, vec![(Arc::clone(database), count)]);
                }
            }
        }
    }
}

impl Summary {
    fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.span.merge(other.span);
        self.bytes += other.bytes;
        self.oddities.merge(&other.oddities);
        self.filtered += other.filtered;
    }
}

impl Totals {
    fn merge(&mut self, other: &Self) {
        self.events += other.events;
        self.events_weighted += other.events_weighted;
        self.query_time_us += other.query_time_us;
        self.lock_time_us += other.lock_time_us;
        self.rows_sent += other.rows_sent;
        self.rows_examined += other.rows_examined;
    }
}

impl Oddities {
    fn merge(&mut self, other: &Self) {
        self.headers_without_statement += other.headers_without_statement;
        self.forged_headers += other.forged_headers;
        self.cut_events += other.cut_events;
        self.unknown_lines += other.unknown_lines;
        self.unreadable_bytes += other.unreadable_bytes;
        self.impossible_values += other.impossible_values;
    }
}

impl Span {
    fn merge(&mut self, other: Self) {
        for at_us in other.first_us.into_iter().chain(other.last_us) {
            self.include(at_us);
        }
    }
}

impl Class {
    fn merge(&mut self, other: Self, room: &mut i64) {
        self.events += other.events;
        self.events_weighted += other.events_weighted;
        self.span.merge(other.span);
        for (name, metric) in other.metrics {
            match self.metrics.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1.merge(&metric, room),
                None => self.metrics.push((name, metric)),
            }
        }
        self.counts.merge(other.counts, room);
        let time =
            |example: &Option<Example>| example.as_ref().map(|slowest| slowest.query_time_us);
        if time(&other.example) > time(&self.example) {
            self.example = other.example;
        }
    }
}

impl Class {
    /// The memory of what grows.
    fn room(&self) -> i64 {
        let histograms = self
            .metrics
            .iter()
            .map(|(_, metric)| metric.histogram.room());
        histograms.sum::<i64>() + self.counts.room()
    }
}

impl Metric {
    /// Adds another's values, which has as many decimals; the memory is taken from `room`.
    pub(super) fn merge(&mut self, other: &Self, room: &mut i64) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.histogram.merge_within(&other.histogram, room);
    }
}

impl Counts {
    fn room(&self) -> i64 {
        [&self.users, &self.hosts, &self.databases]
            .iter()
            .map(|names| room_of(names))
            .sum()
    }

    fn merge(&mut self, other: Self, room: &mut i64) {
        let before = self.room();
        add(&mut self.flags, other.flags);
        add(&mut self.users, other.users);
        add(&mut self.hosts, other.hosts);
        add(&mut self.databases, other.databases);
        *room -= self.room() - before;
    }
}

fn room_of(names: &Tally) -> i64 {
    i64::try_from(names.len().saturating_sub(FREE_NAMES)).unwrap_or(i64::MAX / ENTRY) * ENTRY
}

/// Adds counts to counts; both are in the order of their names.
fn add(to: &mut Tally, counts: Tally) {
    for (name, count) in counts {
        match to.binary_search_by(|known| known.0.cmp(&name)) {
            Ok(at) => to[at].1 += count,
            Err(at) => to.insert(at, (name, count)),
        }
    }
}
