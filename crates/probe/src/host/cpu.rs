//! CPU time by mode, interrupts, switches, soft interrupts, and waiting for a CPU.

use crate::file::{lines, number, tick_seconds, Look, OpenFile, Root, Words};
use crate::host::keyed::Keyed;
use crate::host::Part;
use crate::table::{Column, Keys, Table, Things};

const MODES: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];

/// /proc/stat.
pub struct Cpus {
    file: OpenFile,
    each: Things,
    keys: Keys,
}

impl Cpus {
    pub fn new(root: &Root) -> Self {
        Self {
            file: OpenFile::new(root.path("proc/stat")),
            each: Things::new("cpu"),
            keys: Keys::new(|key| {
                Some(match key {
                    "intr" => Column::counter("cpu.interrupts", "count", 1.0),
                    "ctxt" => Column::counter("cpu.context_switches", "count", 1.0),
                    "processes" => Column::counter("cpu.forks", "count", 1.0),
                    "procs_running" => Column::gauge("cpu.running", "count", 1.0),
                    "procs_blocked" => Column::gauge("cpu.blocked", "count", 1.0),
                    _ => return None,
                })
            }),
        }
    }

    fn cpu(&mut self, which: &[u8], words: Words, table: &mut Table) {
        let first = self.each.first_round();
        let (row, new) = self
            .each
            .next(if which.is_empty() { b"all" } else { which });
        if new {
            let modes = MODES.iter().take(words.clone().count());
            let columns =
                modes.map(|mode| Column::counter(format!("cpu.{mode}"), "s", tick_seconds()));
            row.define(columns, (!first).then_some("cpu"), table);
        }
        row.set(words, table);
    }
}

impl Part for Cpus {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            self.keys.gone(table);
            return self.each.gone(table);
        };
        self.each.begin();
        self.keys.begin();
        for line in lines(text) {
            let mut words = Words(line);
            let key = words.next().unwrap_or_default();
            match key.strip_prefix(b"cpu") {
                Some(which) => self.cpu(which, words, table),
                None => self.keys.set(key, words.number(), table),
            }
        }
        self.each.end(table);
    }
}

/// /proc/softirqs, summed over the CPUs; the first line names these.
pub fn soft_irqs(root: &Root) -> Keyed {
    let column = |key: &str| {
        let which = key.trim_end_matches(':');
        Some(Column::counter("cpu.softirqs", "count", 1.0).of(which))
    };
    let sum = |words: Words| Some(words.filter_map(number).sum());
    Keyed::new(root.path("proc/softirqs"), column, sum).below(1)
}

/// /proc/schedstat: how long what could run waited for a CPU.
pub struct RunDelay {
    file: OpenFile,
    each: Things,
}

impl RunDelay {
    pub fn new(root: &Root) -> Self {
        Self {
            file: OpenFile::new(root.path("proc/schedstat")),
            each: Things::new("cpu"),
        }
    }

    fn cpu(&mut self, which: &[u8], delay: i64, table: &mut Table) {
        let (row, new) = self.each.next(which);
        if new {
            let column = Column::counter("cpu.run_delay", "s", 1e-9);
            row.define(std::iter::once(column), None, table);
        }
        table.set(row.ids[0], delay);
    }
}

impl Part for RunDelay {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.each.gone(table);
        };
        self.each.begin();
        let mut all = 0_i64;
        for line in lines(text) {
            let mut words = Words(line);
            let key = words.next().unwrap_or_default();
            match key {
                // Before this version the columns were others.
                b"version" if words.number() < Some(15) => return self.each.gone(table),
                _ => {}
            }
            if let (Some(which), Some(delay)) = (key.strip_prefix(b"cpu"), words.nth_number(7)) {
                all = all.wrapping_add(delay);
                self.cpu(which, delay, table);
            }
        }
        self.cpu(b"all", all, table);
        self.each.end(table);
    }
}
