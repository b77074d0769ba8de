//! Load averages and pressure stall times.

use super::super::file::{Kept, Look};
use super::super::root::Root;
use super::super::table::{Column, Table};
use super::super::text::{decimal, number, Words};
use super::keyed::Keyed;
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
pub fn pressure(root: &Root, what: &'static str) -> Keyed {
    let column = move |key: &str| Some(Column::counter(format!("psi.{what}.{key}"), "s", 1e-6));
    let path = root.path("proc/pressure").join(what);
    Keyed::new(path, column, |mut words| {
        let total = words.find_map(|word| word.strip_prefix(b"total="));
        total.and_then(number)
    })
}
