//! A control group's memory: used, allowed, and what happened at the limit.

use std::path::PathBuf;

use super::super::file::{Kept, Look};
use super::super::table::{Column, Table};
use super::super::text::{lines, Words};
use super::cgroup_place::{put, Places};

/// What version 1 says where there is no limit is about this.
const NO_LIMIT: i64 = 1 << 60;

/// The files of use, of hits of the limit where they have their own, of events, and of the limit.
type Names = (
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
);
const ONE: Names = (
    "memory.usage_in_bytes",
    Some("memory.failcnt"),
    "memory.oom_control",
    "memory.limit_in_bytes",
);
const TWO: Names = ("memory.current", None, "memory.events", "memory.max");

struct Ids {
    used: usize,
    limit: usize,
    limit_hits: usize,
    oom: usize,
}

/// The controller `memory`.
pub struct Memory {
    used: Kept,
    /// Version 1 counts the hits in a file of their own.
    hits: Option<Kept>,
    events: Kept,
    limits: Vec<PathBuf>,
    ids: Ids,
}

impl Memory {
    /// Opens the group's files; none where the group has no memory of its own to be counted.
    pub fn open(places: &Places, of: &str, look: &mut Look, table: &mut Table) -> Option<Self> {
        let place = places.of("memory")?;
        let own = place.levels.first()?;
        let (used, hits, events, limit) = if place.two { TWO } else { ONE };
        if !own.join(used).exists() {
            return None;
        }
        let ids = Ids {
            used: table.define(Column::gauge("cgroup.memory", "B", 1.0).of(of)),
            limit: table.define(Column::gauge("cgroup.memory_limit", "B", 1.0).of(of)),
            limit_hits: table.define(Column::counter("cgroup.limit_hits", "count", 1.0).of(of)),
            oom: table.define(Column::counter("cgroup.oom", "count", 1.0).of(of)),
        };
        let memory = Self {
            used: Kept::new(own.join(used)),
            hits: hits.map(|file| Kept::new(own.join(file))),
            events: Kept::new(own.join(events)),
            limits: place.levels.iter().map(|level| level.join(limit)).collect(),
            ids,
        };
        memory.limit(look, table);
        Some(memory)
    }

    /// Sets the columns.
    pub fn read(&mut self, seldom: bool, look: &mut Look, table: &mut Table) {
        if seldom {
            self.limit(look, table);
        }
        let used = self.used.read(look).and_then(|text| Words(text).number());
        put(table, self.ids.used, used);
        let (mut hits, mut oom) = (None, None);
        for line in self.events.read(look).into_iter().flat_map(lines) {
            let mut words = Words(line);
            match words.next() {
                Some(b"max") => hits = words.number(),
                Some(b"oom_kill") => oom = words.number(),
                _ => {}
            }
        }
        if let Some(file) = &mut self.hits {
            hits = file.read(look).and_then(|text| Words(text).number());
        }
        put(table, self.ids.limit_hits, hits);
        put(table, self.ids.oom, oom);
    }

    /// Takes the columns away.
    pub fn gone(&self, table: &mut Table) {
        let ids = &self.ids;
        for id in [ids.used, ids.limit, ids.limit_hits, ids.oom] {
            table.gone(id);
        }
    }

    /// The least of what the levels allow.
    fn limit(&self, look: &mut Look, table: &mut Table) {
        let read = |path: &PathBuf| Words(look.open_and_read(path)?).number();
        let limits = self.limits.iter().filter_map(read);
        put(
            table,
            self.ids.limit,
            limits.filter(|limit| *limit < NO_LIMIT).min(),
        );
    }
}
