//! What the probe itself costs: its CPU time, its memory, its lateness, its missed ticks.

use super::clock;
use super::file::{Kept, Look};
use super::root::Root;
use super::table::{Column, Table};
use super::text::{lines, Words};

/// The probe's own columns.
#[derive(Debug)]
pub struct Own {
    status: Kept,
    cpu: usize,
    rss: usize,
    late: usize,
    missed: usize,
}

impl Own {
    /// Defines the columns.
    pub fn new(root: &Root, table: &mut Table) -> Self {
        table.of_source("host");
        Self {
            status: Kept::new(root.path("proc/self/status")),
            cpu: table.define(Column::counter("probe.cpu", "s", 1e-9)),
            rss: table.define(Column::gauge("probe.rss", "B", 1024.0)),
            late: table.define(Column::gauge("probe.late", "s", 1e-9)),
            missed: table.define(Column::counter("probe.missed", "count", 1.0)),
        }
    }

    /// Sets them.
    pub fn read(&mut self, look: &mut Look, late_ns: i64, missed: u64, table: &mut Table) {
        table.set(self.late, late_ns);
        table.set(self.missed, i64::try_from(missed).unwrap_or(i64::MAX));
        // Not from `statm`, which lags behind by up to some pages for each CPU.
        let text = self.status.read(look).unwrap_or_default();
        let rss = lines(text).find_map(|line| line.strip_prefix(b"VmRSS:"));
        if let Some(kib) = rss.and_then(|rest| Words(rest).number()) {
            table.set(self.rss, kib);
        }
        table.set(self.cpu, clock::cpu_ns());
    }
}
