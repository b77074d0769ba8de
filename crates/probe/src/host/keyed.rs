//! A file of one key a line, with its value behind it.

use std::path::PathBuf;

use super::super::file::{Kept, Look};
use super::super::rows::Keys;
use super::super::table::{Column, Table};
use super::super::text::{lines, Words};
use super::Part;

/// The columns of such a file.
pub struct Keyed {
    file: Kept,
    keys: Keys,
    headings: usize,
    value: fn(Words) -> Option<i64>,
}

impl Keyed {
    /// Columns for those keys that `choose` has one for; `value` reads what is behind a key.
    pub fn new(
        path: PathBuf,
        choose: impl Fn(&str) -> Option<Column> + 'static,
        value: fn(Words) -> Option<i64>,
    ) -> Self {
        Self {
            file: Kept::new(path),
            keys: Keys::new(choose),
            headings: 0,
            value,
        }
    }

    /// The same, behind so many lines of headings.
    pub fn below(self, headings: usize) -> Self {
        Self { headings, ..self }
    }
}

impl Part for Keyed {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.keys.gone(table);
        };
        self.keys.begin();
        for line in lines(text).skip(self.headings) {
            let mut words = Words(line);
            let key = words.next().unwrap_or_default();
            // Most rows of some files have no column, and are not worth reading the number of.
            if let Some(id) = self.keys.column(key, table) {
                if let Some(value) = (self.value)(words) {
                    table.set(id, value);
                }
            }
        }
    }
}
