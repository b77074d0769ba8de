//! What /proc reports of a process and of its threads by class: CPU time, waiting for it, switches.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::file::{clock_ticks, name, Look, Words};
use crate::table::{Column, Event, Table};

/// More threads than these are not read, so that a tick stays short.
const MOST: usize = 512;

/// What a thread, or several, used since it began: nanoseconds, nanoseconds, times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub cpu: i64,
    pub waited: i64,
    pub switches: i64,
}

struct Thread {
    tid: u32,
    file: File,
    /// The file is `stat`, where the kernel keeps no `schedstat`.
    coarse: bool,
    class: usize,
    /// None: it may be old, and what it used before its first reading is not of this time.
    last: Option<Used>,
}

struct Class {
    name: String,
    id: usize,
    /// Of all threads that it ever had: it does not fall when one of them ends.
    cpu: i64,
}

/// All threads of one process.
pub struct Threads {
    folder: PathBuf,
    role: String,
    each: Vec<Thread>,
    classes: Vec<Class>,
    total: Used,
    /// How many the process had when they were last listed.
    listed: i64,
    /// Whether the last listing had all of them, so that one that it did not have is new.
    complete: bool,
    noted: bool,
}

impl Threads {
    /// Of the process that has this folder in /proc.
    #[must_use]
    pub fn new(process: &Path, role: &str) -> Self {
        Self {
            folder: process.join("task"),
            role: role.to_owned(),
            each: Vec::new(),
            classes: Vec::new(),
            total: Used::default(),
            listed: 0,
            complete: true,
            noted: false,
        }
    }

    /// Reads all threads; the process has `count` of them now.  Returns what they used together,
    /// or nothing where the kernel does not report how long they waited.
    pub fn read(&mut self, count: i64, look: &mut Look, table: &mut Table) -> Option<Used> {
        if count != self.listed || look.seldom {
            self.list(count, table);
        }
        let (classes, total) = (&mut self.classes, &mut self.total);
        let before = self.each.len();
        self.each.retain_mut(|thread| {
            let used = thread.read(look);
            if let Some(used) = used {
                let last = thread.last.replace(used).unwrap_or(used);
                classes[thread.class].cpu += used.cpu - last.cpu;
                total.waited += used.waited - last.waited;
                total.switches += used.switches - last.switches;
            }
            used.is_some()
        });
        if self.each.len() < before {
            // One ended: another may have come for it, and the count be the same.
            self.listed = 0;
        }
        for class in &self.classes {
            table.set(class.id, class.cpu);
        }
        let fine = self.each.iter().all(|thread| !thread.coarse);
        fine.then_some(self.total)
    }

    /// Takes the columns away.
    pub fn gone(&self, table: &mut Table) {
        for class in &self.classes {
            table.gone(class.id);
        }
    }

    /// Finds new threads, and looks again at the names of those known: a thread takes its name
    /// after it began.
    fn list(&mut self, count: i64, table: &mut Table) {
        self.listed = count;
        let begin = std::mem::replace(&mut self.complete, true).then(Used::default);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let tid = entry.file_name().to_str().and_then(|tid| tid.parse().ok());
            let (Some(tid), Ok(comm)) = (tid, fs::read(entry.path().join("comm"))) else {
                continue;
            };
            let known = self.each.iter().position(|thread| thread.tid == tid);
            if known.is_none() && self.each.len() == MOST {
                self.complete = false;
                return self.note_too_many(count, table);
            }
            let class = self.class(&comm, table);
            match known {
                Some(at) => self.each[at].class = class,
                None => self
                    .each
                    .extend(Thread::open(tid, &entry.path(), class, begin)),
            }
        }
    }

    fn class(&mut self, comm: &[u8], table: &mut Table) -> usize {
        let comm = name(comm.trim_ascii_end());
        let class = class_of(&comm);
        if let Some(at) = self.classes.iter().position(|known| known.name == class) {
            return at;
        }
        let of = format!("{}/{class}", self.role);
        let id = table.define(Column::counter("process.thread_cpu", "s", 1e-9).of(of));
        self.classes.push(Class {
            name: class.to_owned(),
            id,
            cpu: 0,
        });
        self.classes.len() - 1
    }

    fn note_too_many(&mut self, count: i64, table: &mut Table) {
        if !self.noted {
            let text = format!("{count} threads, of which {MOST} are read");
            table.note("process", Event::Gap, &self.role, &text);
        }
        self.noted = true;
    }
}

impl Thread {
    fn open(tid: u32, folder: &Path, class: usize, last: Option<Used>) -> Option<Self> {
        let schedstat = File::open(folder.join("schedstat"));
        let coarse = schedstat.is_err();
        let file = schedstat
            .or_else(|_| File::open(folder.join("stat")))
            .ok()?;
        Some(Self {
            tid,
            file,
            coarse,
            class,
            last,
        })
    }

    fn read(&self, look: &mut Look) -> Option<Used> {
        let text = look.read_once(&self.file).ok()?;
        if self.coarse {
            let stat = Stat::parse(text)?;
            let tick = 1_000_000_000 / i64::try_from(clock_ticks()).unwrap_or(100);
            return Some(Used {
                cpu: (stat.user + stat.system) * tick,
                ..Used::default()
            });
        }
        let mut words = Words(text);
        Some(Used {
            cpu: words.number()?,
            waited: words.number()?,
            switches: words.number()?,
        })
    }
}

/// `ib_io_rd-1` and `ib_io_rd-2` are of one class, as `handlers#3` and `worker7` are.
#[must_use]
pub fn class_of(comm: &str) -> &str {
    let stem = comm.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == comm.len() {
        return comm;
    }
    match stem.trim_end_matches(['-', '_', '#', ':', '/', '.', ' ']) {
        "" => comm,
        class => class,
    }
}

/// Totals of all threads of a process; CPU times in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub minor_faults: i64,
    pub major_faults: i64,
    pub user: i64,
    pub system: i64,
    pub threads: i64,
    /// In clock ticks since boot; with the number it names a process for good.
    pub started: i64,
}

impl Stat {
    /// None for a process that has ended but was not waited for, and for a torn line.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        // The name, in brackets, may contain anything.
        let name_ends = text.iter().rposition(|byte| *byte == b')')?;
        let mut words = Words(&text[name_ends + 1..]);
        if matches!(words.next()?, b"Z" | b"X") {
            return None;
        }
        Some(Self {
            minor_faults: words.nth_number(6)?,
            major_faults: words.nth_number(1)?,
            user: words.nth_number(1)?,
            system: words.number()?,
            threads: words.nth_number(4)?,
            started: words.nth_number(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_threads_are_of_one_class() {
        for (comm, class) in [
            ("ib_io_rd-1", "ib_io_rd"),
            ("handlers#12", "handlers"),
            ("worker7", "worker"),
            ("kworker/0:1", "kworker/0"),
            ("connection", "connection"),
            ("42", "42"),
            ("a-", "a-"),
            ("", ""),
        ] {
            assert_eq!(class_of(comm), class);
        }
    }

    const STAT: &str =
        "7 (a) b (c) S 1 7 7 0 -1 4194560 11 2 33 4 55 66 7 8 20 0 12 0 4242 9000 99 1";

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = Stat {
            minor_faults: 11,
            major_faults: 33,
            user: 55,
            system: 66,
            threads: 12,
            started: 4242,
        };
        assert_eq!(Stat::parse(STAT.as_bytes()), Some(stat));
    }

    #[test]
    fn a_zombie_or_a_torn_line_is_no_process() {
        assert_eq!(Stat::parse(STAT.replace(") S ", ") Z ").as_bytes()), None);
        for torn in ["", "7 (a", "7 (a) S 1 7"] {
            assert_eq!(Stat::parse(torn.as_bytes()), None);
        }
    }
}
