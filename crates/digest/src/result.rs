//! What a digest says, as plain values: times in microseconds, everything else in base units.

use std::sync::Arc;

use serde::Serialize;

use super::histogram::Histogram;

/// A log, gathered into classes.  Classes are in the order of their first event.
#[derive(Debug, Clone, Default)]
pub struct Digest {
    pub summary: Summary,
    pub classes: Vec<Class>,
    /// In order of time; empty unless windows were asked for.
    pub windows: Vec<Window>,
}

/// The whole log.
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
    /// Bytes that belong to no event.
    pub unreadable_bytes: u64,
    /// Times and counts that no server can mean; they are in no metric.
    pub impossible_values: u64,
}

/// The statements of one fingerprint.
#[derive(Debug, Clone)]
pub struct Class {
    /// The last 64 bits of the MD5 of the whole fingerprint.
    pub id: u64,
    /// Cut to 1 KB.
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

/// The values of one attribute, as whole numbers of 10^-`decimals` base units.
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
    /// Attributes that said Yes, and error numbers other than 0.
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
