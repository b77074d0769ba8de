//! The source `process`: the processes that are watched, each under its role.

mod living;
pub mod stat;
mod threads;

use std::path::PathBuf;
use std::time::Instant;

use super::file::Look;
use super::host::SELDOM;
use super::options::Named;
use super::root::Root;
use super::table::{Event, Source, Table};
use living::Living;

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
        }
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
        if look.seldom && self.living.is_some() && self.is_another(look) {
            self.lose("its file names another process", table);
        }
        if self.sample(look, table) {
            return;
        }
        if self.living.is_some() {
            self.lose("the process ended", table);
        }
        self.find(root, first, look, table);
        self.sample(look, table);
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

    /// Whether the file now has another number than the living process.
    fn is_another(&self, look: &mut Look) -> bool {
        let now = self.pid(look);
        now.is_some() && now != self.living.as_ref().map(|living| living.pid)
    }

    fn pid(&self, look: &mut Look) -> Option<u32> {
        match &self.target {
            Target::Pid(pid) => Some(*pid),
            Target::File(path) => {
                let text = look.open_and_read(path)?;
                std::str::from_utf8(text).ok()?.trim().parse().ok()
            }
        }
    }
}
