//! The source `states`: what the threads of the watched processes do, looked at between the ticks.
//!
//! Each look counts for the time since the look before it, so that the columns are seconds of
//! threads: in a second of the clock, sixteen connections have sixteen of them, in whatever states.

mod call;
mod look;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::file::{name, Look, Root, Words};
use crate::process::{class_of, Found};
use crate::schedule::monotonic_ns;
use crate::server::Connections;
use crate::states::look::{Eye, State};
use crate::table::{Column, Event, Source, Table};

/// So many threads of a process are looked at each time at most, in a new draw, so that it costs the
/// same however many there are.
const MOST: usize = 48;
/// More threads than these are not opened, as each needs three files; the others stand for them.
const OPEN: usize = 512;
/// A look counts for so many intervals at most: what came later than that was not looked at.
const LATEST: i64 = 4;
/// The class of the threads that serve a connection, where the server lists them.
const CONNECTION: &str = "connection";
/// The class of other threads that `MySQL` names so: our own connection, and those it has kept.
const UNLISTED: &str = "connection unlisted";

/// The states of all watched processes.
pub struct States {
    root: Root,
    interval_ns: i64,
    found: Found,
    connections: Connections,
    watched: Vec<Watched>,
    look: Look,
    dice: u64,
    looked_ns: Option<i64>,
}

struct Watched {
    role: String,
    pid: u32,
    folder: PathBuf,
    threads: Vec<Thread>,
    /// How many there are, opened or not.
    count: usize,
    noted: bool,
    looks: i64,
    /// Of the threads, which are in their order: how many are drawn, how many of these serve.
    drawn: usize,
    serving: usize,
    /// All its columns.
    ids: Vec<usize>,
    /// Nanoseconds of threads by class and state.
    spent: HashMap<(usize, State), f64>,
    classes: Vec<Class>,
}

/// The threads that are seen first in a look, and the others.
#[derive(Clone, Copy)]
enum Part {
    Serving,
    Rest,
}

struct Class {
    name: String,
    cpu_ns: i64,
    delay_ns: i64,
    /// Of the thread that used or waited for a CPU most in each tick.
    busiest_ns: i64,
    threads: i64,
    /// Threads that nobody asked for anything since the last tick.
    idle: i64,
}

struct Thread {
    tid: u32,
    class: usize,
    /// Whether its connection waited for its client when the server listed it.
    asleep: bool,
    eye: Eye,
    sched: Option<File>,
    /// CPU time and waiting for it, as last read.
    used: Option<(i64, i64)>,
}

impl States {
    /// Looks each `interval` at the processes that are `found` then; `connections` lists which
    /// threads of a server serve one.
    #[must_use]
    pub fn new(root: &Root, interval: Duration, found: Found, connections: Connections) -> Self {
        Self {
            root: root.clone(),
            interval_ns: i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX),
            found,
            connections,
            watched: Vec::new(),
            look: Look::default(),
            dice: monotonic_ns().unsigned_abs() | 1,
            looked_ns: None,
        }
    }

    /// The threads as they are listed now.
    fn list(&mut self, table: &mut Table) {
        let found = self
            .found
            .lock()
            .map(|found| found.clone())
            .unwrap_or_default();
        self.watched.retain(|watched| {
            let lives = found
                .iter()
                .any(|(role, pid)| *role == watched.role && *pid == watched.pid);
            if !lives {
                watched.ids.iter().for_each(|id| table.gone(*id));
            }
            lives
        });
        for (role, pid) in found {
            if !self
                .watched
                .iter()
                .any(|watched| watched.pid == pid && watched.role == role)
            {
                self.watched.push(Watched::new(&self.root, role, pid));
            }
        }
        let connections = self
            .connections
            .lock()
            .map(|listed| listed.clone())
            .unwrap_or_default();
        for watched in &mut self.watched {
            watched.list(&connections);
            if watched.count > OPEN && !std::mem::replace(&mut watched.noted, true) {
                let text = format!("{} threads, of which {OPEN} stand for all", watched.count);
                table.note("states", Event::Gap, &watched.role, &text);
            }
        }
    }

    /// A number below `most`, by xorshift: any that has no rhythm will do.
    fn draw(dice: &mut u64, most: usize) -> usize {
        *dice ^= *dice << 13;
        *dice ^= *dice >> 7;
        *dice ^= *dice << 17;
        usize::try_from(*dice % most as u64).unwrap_or(0)
    }
}

impl Source for States {
    fn name(&self) -> &'static str {
        "states"
    }

    fn look(&mut self) -> Option<i64> {
        let now_ns = monotonic_ns();
        let since_ns = self
            .looked_ns
            .map_or(self.interval_ns, |then| now_ns - then);
        self.looked_ns = Some(now_ns);
        let span_ns = since_ns.min(LATEST * self.interval_ns);
        // A look takes a CPU, and whoever would have had it waits for its end, and would be seen as
        // running: what serves the load is seen first, of all processes, each as often before others.
        if Self::draw(&mut self.dice, 2) == 1 {
            self.watched.reverse();
        }
        for watched in &mut self.watched {
            watched.draw(&mut self.dice);
        }
        for part in [Part::Serving, Part::Rest] {
            for watched in &mut self.watched {
                watched.look(part, span_ns, &mut self.look);
            }
        }
        // Not at a fixed rate: what happens ten times a second would always be seen, or never.
        let half_ns = usize::try_from(self.interval_ns / 2).unwrap_or(usize::MAX);
        let more_ns = Self::draw(&mut self.dice, half_ns.max(1));
        Some(self.interval_ns * 3 / 4 + i64::try_from(more_ns).unwrap_or(0))
    }

    fn read(&mut self, table: &mut Table) -> Result<bool, String> {
        self.list(table);
        for watched in &mut self.watched {
            watched.read(&mut self.look, table);
        }
        Ok(true)
    }
}

impl Watched {
    fn new(root: &Root, role: String, pid: u32) -> Self {
        Self {
            role,
            pid,
            folder: root.path(format!("proc/{pid}")),
            threads: Vec::new(),
            count: 0,
            noted: false,
            looks: 0,
            drawn: 0,
            serving: 0,
            ids: Vec::new(),
            spent: HashMap::new(),
            classes: Vec::new(),
        }
    }

    fn list(&mut self, connections: &HashMap<u32, bool>) {
        let mut present = Vec::new();
        for entry in fs::read_dir(self.folder.join("task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let Some(tid) = entry.file_name().to_str().and_then(|tid| tid.parse().ok()) else {
                continue;
            };
            present.push(tid);
            let known = self.threads.iter().position(|thread| thread.tid == tid);
            if known.is_none() && self.threads.len() >= OPEN {
                continue;
            }
            let asleep = connections.get(&tid);
            let class = if asleep.is_some() {
                self.class(CONNECTION)
            } else {
                let comm = fs::read(entry.path().join("comm")).unwrap_or_default();
                let comm = name(comm.trim_ascii_end());
                match class_of(&comm) {
                    // As MySQL names them: one that it does not list is ours, or waits for its next.
                    CONNECTION if !connections.is_empty() => self.class(UNLISTED),
                    other => self.class(other),
                }
            };
            let at = known.unwrap_or(self.threads.len());
            if known.is_none() {
                self.threads.extend(Thread::open(tid, &entry.path()));
            }
            let Some(thread) = self.threads.get_mut(at) else {
                continue;
            };
            thread.class = class;
            thread.asleep = asleep.copied().unwrap_or_default();
        }
        self.threads.retain(|thread| present.contains(&thread.tid));
        self.count = present.len().max(self.threads.len());
    }

    fn class(&mut self, name: &str) -> usize {
        if let Some(at) = self.classes.iter().position(|known| known.name == name) {
            return at;
        }
        self.classes.push(Class {
            name: name.to_owned(),
            cpu_ns: 0,
            delay_ns: 0,
            busiest_ns: 0,
            threads: 0,
            idle: 0,
        });
        self.classes.len() - 1
    }

    /// Draws the threads of a look, without return: those that serve connections come first, or all
    /// of a process that serves none.
    fn draw(&mut self, dice: &mut u64) {
        let all = self.threads.len();
        self.drawn = all.min(MOST);
        for at in 0..self.drawn {
            self.threads.swap(at, at + States::draw(dice, all - at));
        }
        let serving = self
            .classes
            .iter()
            .position(|class| class.name == CONNECTION);
        let drawn = &mut self.threads[..self.drawn];
        drawn.sort_by_key(|thread| Some(thread.class) != serving);
        self.serving = serving.map_or(self.drawn, |class| {
            drawn.partition_point(|thread| thread.class == class)
        });
        self.looks += 1;
    }

    /// Looks at a part of the threads that are drawn; each stands for as many as there are.
    fn look(&mut self, part: Part, span_ns: i64, look: &mut Look) {
        #[allow(
            clippy::cast_precision_loss,
            reason = "a time below a second, threads below 2^52"
        )]
        let each_ns = span_ns as f64 * self.count as f64 / self.drawn.max(1) as f64;
        let drawn = match part {
            Part::Serving => 0..self.serving,
            Part::Rest => self.serving..self.drawn,
        };
        for thread in &self.threads[drawn] {
            if let Some(state) = thread.eye.see(&self.folder, look) {
                *self.spent.entry((thread.class, state)).or_default() += each_ns;
            }
        }
    }

    fn read(&mut self, look: &mut Look, table: &mut Table) {
        // Those that are open stand for all.
        let [count, open] = [self.count, self.threads.len().max(1)]
            .map(|threads| i64::try_from(threads).unwrap_or(i64::MAX));
        let all = |of: i64| of.saturating_mul(count) / open;
        for class in &mut self.classes {
            class.threads = 0;
            class.idle = 0;
        }
        let mut busiest = vec![0; self.classes.len()];
        for thread in &mut self.threads {
            let class = &mut self.classes[thread.class];
            class.threads += 1;
            let now = thread.read(look);
            class.idle += i64::from(thread.asleep && now.is_some() && now == thread.used);
            if let (Some((cpu, delay)), Some((cpu_then, delay_then))) = (now, thread.used) {
                class.cpu_ns += all(cpu - cpu_then);
                class.delay_ns += all(delay - delay_then);
                let most = &mut busiest[thread.class];
                *most = (cpu - cpu_then + delay - delay_then).max(*most);
            }
            thread.used = now.or(thread.used);
        }
        for (class, most_ns) in self.classes.iter_mut().zip(busiest) {
            class.busiest_ns += most_ns;
        }
        self.ids.clear();
        let mut set = |column: Column, of: &str, value: i64| {
            let id = table.define(column.of(of));
            table.set(id, value);
            self.ids.push(id);
        };
        set(
            Column::counter("state.looks", "count", 1.0),
            &self.role,
            self.looks,
        );
        for class in &self.classes {
            let of = format!("{}/{}", self.role, class.name);
            set(Column::counter("state.cpu", "s", 1e-9), &of, class.cpu_ns);
            set(
                Column::counter("state.run_delay", "s", 1e-9),
                &of,
                class.delay_ns,
            );
            set(
                Column::counter("state.busiest", "s", 1e-9),
                &of,
                class.busiest_ns,
            );
            set(
                Column::gauge("state.threads", "count", 1.0),
                &of,
                all(class.threads),
            );
            if class.name == CONNECTION {
                set(
                    Column::gauge("state.idle", "count", 1.0),
                    &of,
                    all(class.idle),
                );
            }
        }
        for ((class, state), spent_ns) in &self.spent {
            let of = format!(
                "{}/{}/{}",
                self.role,
                self.classes[*class].name,
                state.word()
            );
            #[allow(
                clippy::cast_possible_truncation,
                reason = "three centuries of threads"
            )]
            set(
                Column::counter("state.seconds", "s", 1e-9),
                &of,
                *spent_ns as i64,
            );
        }
    }
}

impl Thread {
    fn open(tid: u32, folder: &Path) -> Option<Self> {
        Some(Self {
            tid,
            class: 0,
            asleep: false,
            eye: Eye::open(folder)?,
            sched: File::open(folder.join("schedstat")).ok(),
            used: None,
        })
    }

    /// CPU time and the time it waited for it, in nanoseconds.
    fn read(&self, look: &mut Look) -> Option<(i64, i64)> {
        let mut words = Words(look.read_once(self.sched.as_ref()?).ok()?);
        Some((words.number()?, words.number()?))
    }
}
