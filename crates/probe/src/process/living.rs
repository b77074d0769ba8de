//! One process while it lives: its files, kept open, and its columns.

use std::fs::File;
use std::path::Path;

use super::super::file::Look;
use super::super::host::cgroup::Group;
use super::super::root::{tick_seconds, Root};
use super::super::table::{Column, Table};
use super::super::text::{lines, Words};
use super::stat::Stat;
use super::threads::Threads;

/// The columns of every process, each with its unit; those of memory are gauges.
struct Ids {
    stat: [usize; 5],
    memory: [usize; 2],
    io: [usize; 2],
    sched: [usize; 2],
}

/// A process that was found alive.
pub struct Living {
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub started: i64,
    stat: File,
    status: Option<File>,
    io: Option<File>,
    threads: Threads,
    group: Group,
    ids: Ids,
}

impl Living {
    /// Opens the process's files; none where there is no such process.
    pub fn open(
        root: &Root,
        pid: u32,
        role: &str,
        look: &mut Look,
        table: &mut Table,
    ) -> Option<Self> {
        let folder = root.path(format!("proc/{pid}"));
        let stat = File::open(folder.join("stat")).ok()?;
        let started = Stat::parse(look.read_once(&stat).ok()?)?.started;
        Some(Self {
            pid,
            started,
            stat,
            status: File::open(folder.join("status")).ok(),
            io: open_io(&folder),
            threads: Threads::new(&folder, role),
            group: Group::new(root, &pid.to_string(), role),
            ids: Ids::define(role, table),
        })
    }

    /// Sets the columns.  None: the process is gone.
    pub fn read(&mut self, look: &mut Look, table: &mut Table) -> Option<()> {
        // Open files stay with the process they were opened for: a number used again is an error.
        let stat = Stat::parse(look.read_once(&self.stat).ok()?)?;
        let values = [
            stat.user,
            stat.system,
            stat.minor_faults,
            stat.major_faults,
            stat.threads,
        ];
        for (id, value) in self.ids.stat.into_iter().zip(values) {
            table.set(id, value);
        }
        self.read_memory(look, table);
        self.read_io(look, table);
        if let Some(used) = self.threads.read(stat.threads, look, table) {
            table.set(self.ids.sched[0], used.waited);
            table.set(self.ids.sched[1], used.switches);
        }
        self.group.sample(look, table);
        Some(())
    }

    /// Takes the columns away.
    pub fn gone(&mut self, table: &mut Table) {
        let ids = &self.ids;
        let all = ids.stat.iter().chain(&ids.memory);
        for id in all.chain(&ids.io).chain(&ids.sched) {
            table.gone(*id);
        }
        self.threads.gone(table);
        self.group.gone(table);
    }

    /// From `status`, since the memory in `stat` lags behind by up to some pages for each CPU.
    fn read_memory(&self, look: &mut Look, table: &mut Table) {
        let keys = [&b"VmRSS:"[..], b"VmSwap:"];
        read_keyed(self.status.as_ref(), keys, self.ids.memory, look, table);
    }

    fn read_io(&self, look: &mut Look, table: &mut Table) {
        let keys = [&b"read_bytes:"[..], b"write_bytes:"];
        read_keyed(self.io.as_ref(), keys, self.ids.io, look, table);
    }
}

impl Ids {
    fn define(role: &str, table: &mut Table) -> Self {
        let mut counter = |name: &str, unit, scale| {
            table.define(Column::counter(format!("process.{name}"), unit, scale).of(role))
        };
        let user = counter("cpu_user", "s", tick_seconds());
        let system = counter("cpu_system", "s", tick_seconds());
        let minor = counter("minor_faults", "count", 1.0);
        let major = counter("major_faults", "count", 1.0);
        let io = [
            counter("read_bytes", "B", 1.0),
            counter("write_bytes", "B", 1.0),
        ];
        let sched = [
            counter("run_delay", "s", 1e-9),
            counter("switches", "count", 1.0),
        ];
        let mut gauge = |name: &str, unit, scale| {
            table.define(Column::gauge(format!("process.{name}"), unit, scale).of(role))
        };
        Self {
            stat: [user, system, minor, major, gauge("threads", "count", 1.0)],
            memory: [gauge("rss", "B", 1024.0), gauge("swap", "B", 1024.0)],
            io,
            sched,
        }
    }
}

/// /proc/PID/io opens for everybody, but is read by the process's owner only.
fn open_io(folder: &Path) -> Option<File> {
    File::open(folder.join("io")).ok()
}

/// Sets columns from the numbers behind keys at the start of a line, where it can be read.
fn read_keyed(
    file: Option<&File>,
    keys: [&[u8]; 2],
    ids: [usize; 2],
    look: &mut Look,
    table: &mut Table,
) {
    let Some(text) = file.and_then(|file| look.read_once(file).ok()) else {
        return;
    };
    for line in lines(text) {
        for (key, id) in keys.into_iter().zip(ids) {
            let number = line.strip_prefix(key).and_then(|rest| Words(rest).number());
            if let Some(number) = number {
                table.set(id, number);
            }
        }
    }
}
