//! The source `states`: what the threads of the watched processes do, looked at between the ticks.
//!
//! Each look counts for the time since the look before it, so that the columns are seconds of
//! threads: in a second of the clock, sixteen connections have sixteen of them, in whatever states.

mod call;
mod look;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use crate::file::{Look, Root};
use crate::process::Found;
use crate::schedule::monotonic_ns;
use crate::server::{Connections, Listing};
use crate::states::look::{choose, class_name, Group, Share, State, Thread, CONNECTION, OPEN};
use crate::table::{Column, Event, Source, Table};

/// So many threads of a process are looked at each time at most, in a new draw, so that it costs the
/// same however many there are.
const MOST: usize = 48;
/// A look counts for so many intervals at most: what came later than that was not looked at.
const LATEST: i64 = 4;

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
    /// Of the list of connections by which the threads are listed now.
    round: u64,
}

struct Watched {
    role: String,
    pid: u32,
    folder: PathBuf,
    threads: Vec<Thread>,
    /// All that were there when they were last listed, opened or not.
    present: HashSet<u32>,
    /// Of each group.
    shares: [Share; 3],
    noted: bool,
    /// Whether we may not look at a thread, and whether that is noted.
    refused: Option<bool>,
    looks: i64,
    /// Of the threads, which are in their order: how many are drawn, how many of these serve.
    drawn: usize,
    serving: usize,
    /// All its columns.
    ids: Vec<usize>,
    /// Nanoseconds of threads by class and state.
    spent: HashMap<(usize, State), i64>,
    classes: Vec<Class>,
}

/// The threads that are seen first in a look, and the others.
#[derive(Clone, Copy)]
enum Part {
    Serving,
    Rest,
}

#[derive(Default)]
struct Class {
    name: String,
    cpu_ns: i64,
    delay_ns: i64,
    /// Of the thread that used or waited for a CPU most in each tick.
    busiest_ns: i64,
    /// Threads of each group.
    threads: [i64; 3],
    /// Threads that nobody asked for anything since the last tick; all of them are asleep.
    idle: i64,
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
            round: 0,
        }
    }

    /// The threads as they are listed now.
    fn list(&mut self, table: &mut Table) {
        let found = self.found.lock().map(|found| found.clone());
        let found = found.unwrap_or_default();
        let is =
            |watched: &Watched, role: &str, pid: u32| watched.pid == pid && watched.role == role;
        self.watched.retain(|watched| {
            let lives = found.iter().any(|(role, pid)| is(watched, role, *pid));
            if !lives {
                watched.ids.iter().for_each(|id| table.gone(*id));
            }
            lives
        });
        for (role, pid) in found {
            if !self.watched.iter().any(|watched| is(watched, &role, pid)) {
                self.watched.push(Watched::new(&self.root, role, pid));
            }
        }
        if let Ok(listing) = self.connections.lock() {
            self.round = listing.round;
            for watched in &mut self.watched {
                watched.list(&listing, &mut self.look);
            }
        }
        for watched in &mut self.watched {
            watched.note(table);
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
        // The server's answer to the last tick has come: until the next one it would grow old.
        if let Ok(listing) = self.connections.lock() {
            if std::mem::replace(&mut self.round, listing.round) != listing.round {
                for watched in &mut self.watched {
                    watched.list_again(&listing);
                }
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
            present: HashSet::new(),
            shares: [Share::default(); 3],
            noted: false,
            refused: None,
            looks: 0,
            drawn: 0,
            serving: 0,
            ids: Vec::new(),
            spent: HashMap::new(),
            classes: Vec::new(),
        }
    }

    /// Lists the threads, and opens those that stand for all of their group.
    fn list(&mut self, listing: &Listing, look: &mut Look) {
        let folder = self.folder.join("task");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut present: Vec<u32> = entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        let before = std::mem::replace(&mut self.present, present.iter().copied().collect());
        let group = |tid: u32| Group::of(listing.of(tid));
        self.count(listing);
        let drained = self.threads.drain(..);
        let mut open: HashMap<u32, Thread> = drained.map(|thread| (thread.tid, thread)).collect();
        choose(&mut present, |tid| (group(tid), !open.contains_key(&tid)));
        for tid in present {
            let folder = folder.join(tid.to_string());
            let known = open.remove(&tid);
            match known.map_or_else(|| Thread::open(tid, &folder), Ok) {
                Ok(mut thread) => {
                    // What it used before it was opened is not of this time, unless it began since.
                    thread.used = thread.used.or_else(|| {
                        if before.contains(&tid) {
                            thread.read(look)
                        } else {
                            (!before.is_empty()).then_some((0, 0))
                        }
                    });
                    self.put(&mut thread, &class_name(tid, &folder, listing), listing);
                    self.threads.push(thread);
                }
                Err(error) => refuse(&mut self.refused, &error),
            }
        }
    }

    /// Puts the open threads where a newer list has them; those that began since are not open.
    fn list_again(&mut self, listing: &Listing) {
        self.count(listing);
        let mut threads = std::mem::take(&mut self.threads);
        for thread in &mut threads {
            let serves = listing.of(thread.tid).map(|listed| listed.serves);
            let name = if serves == thread.serves {
                self.classes[thread.class].name.clone()
            } else {
                let folder = self.folder.join(format!("task/{}", thread.tid));
                class_name(thread.tid, &folder, listing)
            };
            self.put(thread, &name, listing);
        }
        self.threads = threads;
    }

    /// Counts the threads that there are by group, none of them open yet.
    fn count(&mut self, listing: &Listing) {
        self.shares = [Share::default(); 3];
        for tid in &self.present {
            self.shares[Group::of(listing.of(*tid)) as usize].count += 1;
        }
    }

    /// Puts a thread into a class and its group.
    fn put(&mut self, thread: &mut Thread, class: &str, listing: &Listing) {
        let (class, listed) = (self.class(class), listing.of(thread.tid));
        thread.is_new |= class != thread.class;
        thread.class = class;
        thread.serves = listed.map(|listed| listed.serves);
        thread.group = Group::of(listed);
        self.shares[thread.group as usize].open += 1;
    }

    fn note(&mut self, table: &mut Table) {
        let mut gap = |text: &str| table.note("states", Event::Gap, &self.role, text);
        let count = self.present.len();
        if count > OPEN && !std::mem::replace(&mut self.noted, true) {
            gap(&format!("{count} threads, of which {OPEN} stand for all"));
        }
        if self.refused == Some(false) {
            self.refused = Some(true);
            let folder = self.folder.display();
            gap(&format!(
                "{folder}/task/*/syscall: permission denied; run as root, or with CAP_SYS_PTRACE"
            ));
        }
    }

    fn class(&mut self, name: &str) -> usize {
        if let Some(at) = self.classes.iter().position(|known| known.name == name) {
            return at;
        }
        self.classes.push(Class {
            name: name.to_owned(),
            ..Class::default()
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
        let [open, drawn] = [self.threads.len(), self.drawn.max(1)]
            .map(|count| i64::try_from(count).unwrap_or(i64::MAX));
        let seen = match part {
            Part::Serving => 0..self.serving,
            Part::Rest => self.serving..self.drawn,
        };
        for thread in &self.threads[seen] {
            match thread.eye.see(&self.folder, look) {
                Ok(state) => {
                    let all_ns = self.shares[thread.group as usize].all(span_ns);
                    let each_ns = all_ns.saturating_mul(open) / drawn;
                    *self.spent.entry((thread.class, state)).or_default() += each_ns;
                }
                Err(error) => refuse(&mut self.refused, &error),
            }
        }
    }

    fn read(&mut self, look: &mut Look, table: &mut Table) {
        for class in &mut self.classes {
            class.threads = [0; 3];
            class.idle = 0;
        }
        let mut busiest = vec![0; self.classes.len()];
        for thread in &mut self.threads {
            let class = &mut self.classes[thread.class];
            let share = self.shares[thread.group as usize];
            class.threads[thread.group as usize] += 1;
            let now = thread.read(look);
            let asleep = thread.group == Group::Asleep;
            class.idle += i64::from(asleep && now.is_some() && now == thread.used);
            if let (Some((cpu, delay)), Some((cpu_then, delay_then))) = (now, thread.used) {
                class.cpu_ns += share.all(cpu - cpu_then);
                class.delay_ns += share.all(delay - delay_then);
                // Of many short connections, each its own thread, one is always busy: none is it.
                if !thread.is_new {
                    let most = &mut busiest[thread.class];
                    *most = (cpu - cpu_then + delay - delay_then).max(*most);
                }
            }
            thread.is_new = false;
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
        let looks = Column::counter("state.looks", "count", 1.0);
        set(looks, &self.role, self.looks);
        for class in &self.classes {
            let of = format!("{}/{}", self.role, class.name);
            for (name, value) in [
                ("state.cpu", class.cpu_ns),
                ("state.run_delay", class.delay_ns),
                ("state.busiest", class.busiest_ns),
            ] {
                set(Column::counter(name, "s", 1e-9), &of, value);
            }
            let groups = self.shares.iter().zip(class.threads);
            let threads = groups.map(|(share, threads)| share.all(threads)).sum();
            set(Column::gauge("state.threads", "count", 1.0), &of, threads);
            if class.name == CONNECTION {
                let idle = self.shares[Group::Asleep as usize].all(class.idle);
                set(Column::gauge("state.idle", "count", 1.0), &of, idle);
            }
        }
        for ((class, state), spent_ns) in &self.spent {
            let class = &self.classes[*class].name;
            let of = format!("{}/{class}/{}", self.role, state.word());
            set(Column::counter("state.seconds", "s", 1e-9), &of, *spent_ns);
        }
    }
}

fn refuse(refused: &mut Option<bool>, error: &io::Error) {
    if error.kind() == ErrorKind::PermissionDenied {
        refused.get_or_insert(false);
    }
}
