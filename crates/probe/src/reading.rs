//! One reading of all sources, each stamped with when and how long it was read, and its own cost.

use mydyno_command::report;

use crate::file::{lines, Look, OpenFile, Root, Words};
use crate::schedule::{cpu_ns, monotonic_ns};
use crate::table::{Column, Event, Source, Table};

/// A source and its columns of time.
struct Stamped {
    source: Box<dyn Source>,
    at: usize,
    took: usize,
    failing: bool,
    reached: bool,
    reported: bool,
}

/// All sources.
pub struct Reading {
    sources: Vec<Stamped>,
    own: Own,
    look: Look,
}

impl Reading {
    /// Defines the columns of time and those of the probe itself.
    pub fn new(root: &Root, sources: Vec<Box<dyn Source>>, table: &mut Table) -> Self {
        let stamp = |source: Box<dyn Source>| Stamped::new(source, table);
        Self {
            sources: sources.into_iter().map(stamp).collect(),
            own: Own::new(root, table),
            look: Look::default(),
        }
    }

    /// Whether a source that was asked for was never read; that is reported.
    pub fn is_incomplete(&mut self) -> bool {
        for stamped in &mut self.sources {
            stamped.report_unreached("no answer before the end");
        }
        self.sources.iter().any(Stamped::is_unreached)
    }

    /// Lets the sources look at what changes between ticks; nanoseconds until the next look.
    pub fn look(&mut self) -> Option<i64> {
        let looks = self
            .sources
            .iter_mut()
            .filter_map(|stamped| stamped.source.look());
        looks.min()
    }

    /// Reads every source, and last what the probe costs; times count from `zero_ns`.
    pub fn read(&mut self, zero_ns: i64, late_ns: i64, missed: u64, table: &mut Table) {
        for stamped in &mut self.sources {
            stamped.read(zero_ns, table);
        }
        table.of_source("host");
        self.own.read(&mut self.look, late_ns, missed, table);
    }
}

impl Stamped {
    fn new(source: Box<dyn Source>, table: &mut Table) -> Self {
        let name = source.name();
        table.of_source(name);
        let at = table.define(Column::gauge("probe.read_at", "s", 1e-9).of(name));
        table.of_source("host");
        let took = table.define(Column::gauge("probe.read_took", "s", 1e-9).of(name));
        Self {
            source,
            at,
            took,
            failing: false,
            reached: false,
            reported: false,
        }
    }

    fn is_unreached(&self) -> bool {
        self.source.is_asked_for() && !self.reached
    }

    fn report_unreached(&mut self, why: &str) {
        if self.is_unreached() && !std::mem::replace(&mut self.reported, true) {
            report(&format!(
                "{}: {why}; the host is sampled without it",
                self.source.name()
            ));
        }
    }

    fn read(&mut self, zero_ns: i64, table: &mut Table) {
        let name = self.source.name();
        table.of_source(name);
        let begin = monotonic_ns();
        let outcome = self.source.read(table);
        let end = monotonic_ns();
        table.set(self.took, end - begin);
        match outcome {
            Ok(true) => {
                self.reached = true;
                let middle = begin + (end - begin) / 2;
                table.set(self.at, self.source.read_at().unwrap_or(middle) - zero_ns);
                if std::mem::take(&mut self.failing) {
                    table.note(name, Event::Back, "", "");
                }
            }
            Ok(false) => {}
            Err(why) => {
                self.report_unreached(&why);
                if !std::mem::replace(&mut self.failing, true) {
                    table.note(name, Event::Gap, "", &why);
                }
            }
        }
    }
}

/// The probe's own columns.
#[derive(Debug)]
pub struct Own {
    status: OpenFile,
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
            status: OpenFile::new(root.path("proc/self/status")),
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
        table.set(self.cpu, cpu_ns());
    }
}
