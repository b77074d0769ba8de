//! One reading of the server, which goes to the asking thread and back with its room.

use crate::table::{Column, Event};

/// What one question brought; used again for the next.
#[derive(Debug, Default)]
pub struct Answer {
    /// Columns that are new, in order; they carry on the numbers of those before.
    pub fresh: Vec<Column>,
    /// Numbers of columns and their values.
    pub values: Vec<(usize, i64)>,
    /// What is to be noted, with what it concerns.
    pub notes: Vec<(Event, &'static str, String)>,
    /// Why there are no values.
    pub fault: Option<String>,
    /// When the questions were asked and answered, in nanoseconds of `CLOCK_MONOTONIC`.
    pub begin_ns: i64,
    pub status_ns: i64,
    pub end_ns: i64,
    defined: usize,
}

impl Answer {
    /// Empties it for the next question; what is known of columns stays.
    pub fn clear(&mut self) {
        self.values.clear();
        self.notes.clear();
        self.fault = None;
    }

    /// Adds a column and returns its number.
    pub fn define(&mut self, column: Column) -> usize {
        self.fresh.push(column);
        self.defined += 1;
        self.defined - 1
    }
}
