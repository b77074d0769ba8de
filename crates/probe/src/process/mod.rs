//! The source `process`: the processes that are watched, each under its role, while they live.

mod threads;

pub use threads::{class_of, Stat};

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use threads::Threads;

use crate::file::{lines, tick_seconds, Look, Root, Words};
use crate::host::cgroup::Group;
use crate::host::SELDOM;
use crate::options::Named;
use crate::table::{Column, Event, Source, Table};

/// What the watched processes are now: the number of each by its role.
pub type Found = Arc<Mutex<Vec<(String, u32)>>>;

/// How a process is found.
#[derive(Debug)]
enum Target {
    Pid(u32),
    /// A file with its number, which may come later and change.
    File(PathBuf),
}

struct Watched {
    role: String,
    target: Target,
    living: Option<Living>,
    /// Number and start of the one that was last seen.
    last: Option<(u32, i64)>,
}

/// All watched processes.
pub struct Processes {
    root: Root,
    watched: Vec<Watched>,
    look: Look,
    looked: Instant,
    first: bool,
    found: Found,
}

impl Processes {
    /// Those with known numbers, and those whose number is in a file.
    #[must_use]
    pub fn new(root: &Root, pids: &[Named<u32>], files: &[Named<PathBuf>]) -> Self {
        let pids = pids
            .iter()
            .map(|named| (&named.role, Target::Pid(named.value)));
        let files = files
            .iter()
            .map(|named| (&named.role, Target::File(named.value.clone())));
        let watched = pids.chain(files).map(|(role, target)| Watched {
            role: role.clone(),
            target,
            living: None,
            last: None,
        });
        Self {
            root: root.clone(),
            watched: watched.collect(),
            look: Look::default(),
            looked: Instant::now(),
            first: true,
            found: Found::default(),
        }
    }

    /// Where others see which process each role has now.
    #[must_use]
    pub fn found(&self) -> Found {
        Arc::clone(&self.found)
    }

    fn share(&self) {
        let Ok(mut found) = self.found.lock() else {
            return;
        };
        found.clear();
        found.extend(self.watched.iter().filter_map(|watched| {
            let living = watched.living.as_ref()?;
            Some((watched.role.clone(), living.pid))
        }));
    }

    /// Whether there is nothing to watch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }
}

impl Source for Processes {
    fn name(&self) -> &'static str {
        "process"
    }

    fn read(&mut self, table: &mut Table) -> Result<bool, String> {
        for watched in &mut self.watched {
            watched.read(&self.root, self.first, &mut self.look, table);
        }
        if Arc::strong_count(&self.found) > 1 {
            self.share();
        }
        self.first = false;
        self.look.seldom = self.looked.elapsed() >= SELDOM;
        if self.look.seldom {
            self.looked = Instant::now();
        }
        Ok(true)
    }
}

impl Watched {
    fn read(&mut self, root: &Root, first: bool, look: &mut Look, table: &mut Table) {
        let lived = self.living.is_some();
        if look.seldom && lived && self.is_another(look) {
            self.lose("its file names another process", table);
        }
        if self.sample(look, table) {
            return;
        }
        if self.living.is_some() {
            self.lose("the process ended", table);
        }
        self.find(root, first, look, table);
        // A row without values parts two processes: no counter goes on from one to the next.
        if !lived {
            self.sample(look, table);
        }
    }

    /// Whether it lives and was read.
    fn sample(&mut self, look: &mut Look, table: &mut Table) -> bool {
        self.living
            .as_mut()
            .is_some_and(|living| living.read(look, table).is_some())
    }

    fn lose(&mut self, why: &str, table: &mut Table) {
        if let Some(mut living) = self.living.take() {
            living.gone(table);
            table.note("process", Event::Gone, &self.role, why);
        }
    }

    fn find(&mut self, root: &Root, first: bool, look: &mut Look, table: &mut Table) {
        let pid = self.pid(look);
        self.living = pid.and_then(|pid| Living::open(root, pid, &self.role, look, table));
        let Some(living) = &self.living else {
            if first {
                table.note("process", Event::Gone, &self.role, "no such process yet");
            }
            return;
        };
        let found = (living.pid, living.started);
        let text = format!("process {}", living.pid);
        match self.last.replace(found) {
            Some(_) => table.note("process", Event::Restart, &self.role, &text),
            None if !first => table.note("process", Event::Appeared, &self.role, &text),
            None => {}
        }
    }

    /// Whether its file now has another number than the living process.
    fn is_another(&self, look: &mut Look) -> bool {
        let now = self.pid(look);
        now.is_some() && now != self.living.as_ref().map(|living| living.pid)
    }

    fn pid(&self, look: &mut Look) -> Option<u32> {
        match &self.target {
            // Once its process has ended, the number may be another's.
            Target::Pid(pid) => self.last.is_none().then_some(*pid),
            Target::File(path) => {
                let text = look.open_and_read(path)?;
                std::str::from_utf8(text).ok()?.trim().parse().ok()
            }
        }
    }
}

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
