//! Load averages and pressure stall times.

use super::super::file::{Kept, Look};
use super::super::root::Root;
use super::super::rows::Keys;
use super::super::table::{Column, Table};
use super::super::text::{decimal, lines, number, Words};
use super::Part;

/// /proc/loadavg.
pub struct Load {
    file: Kept,
    ids: Option<[usize; 3]>,
}

impl Load {
    pub fn new(root: &Root) -> Self {
        Self {
            file: Kept::new(root.path("proc/loadavg")),
            ids: None,
        }
    }
}

impl Part for Load {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.ids.iter().flatten().for_each(|id| table.gone(*id));
        };
        let ids = *self.ids.get_or_insert_with(|| {
            ["load.1m", "load.5m", "load.15m"]
                .map(|name| table.define(Column::gauge(name, "", 0.01)))
        });
        for (id, word) in ids.into_iter().zip(Words(text)) {
            if let Some(load) = decimal(word, 2) {
                table.set(id, load);
            }
        }
    }
}

/// /proc/pressure/X: the time in which some, or all, waited for it.
pub struct Pressure {
    file: Kept,
    keys: Keys,
}

impl Pressure {
    pub fn new(root: &Root, what: &'static str) -> Self {
        let column = move |key: &str| Some(Column::counter(format!("psi.{what}.{key}"), "s", 1e-6));
        Self {
            file: Kept::new(root.path("proc/pressure").join(what)),
            keys: Keys::new(column),
        }
    }
}

impl Part for Pressure {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.keys.gone(table);
        };
        self.keys.begin();
        for line in lines(text) {
            let mut words = Words(line);
            let key = words.next().unwrap_or_default();
            let total = words.find_map(|word| word.strip_prefix(b"total="));
            self.keys.set(key, total.and_then(number), table);
        }
    }
}
