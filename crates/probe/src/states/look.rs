//! A thread that is looked at: what it does at this moment, and the CPU time that it has used.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::file::{hexadecimal, name, number, Look, Words};
use crate::process::class_of;
use crate::server::{Listed, Listing};
use crate::states::call::{file_of, Kind};

/// More threads than these are not opened, as each needs three files; the others stand for them.
pub const OPEN: usize = 512;
/// So many of these are of each group, where it has as many: then connections at work go first.
const LEAST: usize = 64;
/// The class of the threads that serve a connection, where the server lists them.
pub const CONNECTION: &str = "connection";
/// The class of threads that `MySQL` names so and lists, without a client: our own, a replica's.
const APART: &str = "connection apart";
/// The class of those that it does not list: it has kept them, or they are younger than the list.
const UNLISTED: &str = "connection unlisted";

/// What a thread does: a kind of call, the file it is about, and whether the filesystem's journal
/// is what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// On a processor, or ready for one.
    Running,
    /// In the kernel without a call: a page fault, or being stopped.
    Fault,
    Call {
        kind: Kind,
        file: &'static str,
        journal: bool,
    },
}

impl State {
    /// The word in the column's name: `running`, `futex`, `read.data`, `sync.redo.journal`.
    #[must_use]
    pub fn word(self) -> String {
        match self {
            Self::Running => "running".to_owned(),
            Self::Fault => "fault".to_owned(),
            Self::Call {
                kind,
                file,
                journal,
            } => {
                let mut word = kind.word().to_owned();
                for part in [file, if journal { "journal" } else { "" }] {
                    if !part.is_empty() {
                        word.push('.');
                        word.push_str(part);
                    }
                }
                word
            }
        }
    }
}

/// The files of /proc that show what a thread does, held open.
#[derive(Debug)]
pub struct Eye {
    call: File,
    waits: Option<File>,
}

impl Eye {
    /// Of the thread that has this folder.
    ///
    /// # Errors
    /// It is gone or not ours to look at.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self {
            call: File::open(folder.join("syscall"))?,
            waits: File::open(folder.join("wchan")).ok(),
        })
    }

    /// What the thread does now. `process` is the folder of its process.
    ///
    /// # Errors
    /// It is gone, or not ours to look at: the kernel may deny the reading of a file that is open.
    pub fn see(&self, process: &Path, look: &mut Look) -> io::Result<State> {
        let mut words = Words(look.read_once(&self.call)?);
        let first = words.next().ok_or(io::ErrorKind::UnexpectedEof)?;
        let Some(call) = number(first) else {
            return Ok(State::Running); // "running"
        };
        if call < 0 {
            return Ok(State::Fault);
        }
        let kind = Kind::of(call);
        if !kind.has_file() {
            let (file, journal) = ("", false);
            return Ok(State::Call {
                kind,
                file,
                journal,
            });
        }
        let argument = words.next().and_then(|word| word.strip_prefix(b"0x"));
        let file = argument
            .and_then(hexadecimal)
            .and_then(|fd| fs::read_link(process.join(format!("fd/{fd}"))).ok())
            .map_or("other", |link| file_of(&link));
        let journal = kind != Kind::Read && self.waits_for_the_journal(look);
        Ok(State::Call {
            kind,
            file,
            journal,
        })
    }

    /// Of ext4 (jbd2), xfs or btrfs, as the kernel names the function in which the thread waits.
    fn waits_for_the_journal(&self, look: &mut Look) -> bool {
        let read = self
            .waits
            .as_ref()
            .and_then(|file| look.read_once(file).ok());
        let place = read.unwrap_or_default();
        [
            "jbd2_",
            "xfs_log_",
            "xlog_",
            "btrfs_sync_log",
            "wait_for_commit",
        ]
        .iter()
        .any(|known| place.starts_with(known.as_bytes()))
    }
}

/// Threads that stand for each other where not all of them are open, in the order of their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Without a client.
    Rest,
    /// With a client that waits for it.
    Awake,
    /// With a client for which it waits.
    Asleep,
}

impl Group {
    /// That of a thread by what the server lists of it.
    #[must_use]
    pub fn of(listed: Option<Listed>) -> Self {
        match listed {
            Some(listed) if listed.serves && listed.asleep => Self::Asleep,
            Some(listed) if listed.serves => Self::Awake,
            _ => Self::Rest,
        }
    }
}

/// How many threads of a group there are, and how many are open and stand for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    pub count: i64,
    pub open: i64,
}

impl Share {
    /// What all have, by what those that are open have.
    #[must_use]
    pub fn all(self, of: i64) -> i64 {
        of.saturating_mul(self.count) / self.open.max(1)
    }
}

/// A thread whose files are open.
#[derive(Debug)]
pub struct Thread {
    pub tid: u32,
    pub class: usize,
    pub group: Group,
    /// Whether it serves a client, as listed when its class was found; none where it was not.
    pub serves: Option<bool>,
    /// Whether it began, or became one of its class, since the last tick.
    pub is_new: bool,
    pub eye: Eye,
    sched: Option<File>,
    /// CPU time and waiting for it, as last read.
    pub used: Option<(i64, i64)>,
}

impl Thread {
    /// The thread that has this folder; its class and group are not known yet.
    ///
    /// # Errors
    /// Those of its eye.
    pub fn open(tid: u32, folder: &Path) -> io::Result<Self> {
        Ok(Self {
            tid,
            class: 0,
            group: Group::Rest,
            serves: None,
            is_new: true,
            eye: Eye::open(folder)?,
            sched: File::open(folder.join("schedstat")).ok(),
            used: None,
        })
    }

    /// CPU time and the time it waited for it, in nanoseconds.
    pub fn read(&self, look: &mut Look) -> Option<(i64, i64)> {
        let mut words = Words(look.read_once(self.sched.as_ref()?).ok()?);
        Some((words.number()?, words.number()?))
    }
}

/// The class of a thread that has this folder: by its name, and by what the server lists of it.
#[must_use]
pub fn class_name(tid: u32, folder: &Path, listing: &Listing) -> String {
    let listed = listing.of(tid);
    if listed.is_some_and(|listed| listed.serves) {
        return CONNECTION.to_owned();
    }
    let comm = fs::read(folder.join("comm")).unwrap_or_default();
    let comm = name(comm.trim_ascii_end());
    let class = match class_of(&comm) {
        CONNECTION if listed.is_some() => APART,
        CONNECTION if listing.threads.is_some() => UNLISTED,
        other => other,
    };
    class.to_owned()
}

/// Leaves those of the threads that are opened: some of each group, then connections at work first.
pub fn choose(present: &mut Vec<u32>, order: impl Fn(u32) -> (Group, bool)) {
    let mut there = [0; 3];
    for tid in present.iter() {
        there[order(*tid).0 as usize] += 1;
    }
    let mut slots = there.map(|count: usize| count.min(LEAST));
    for group in [Group::Awake, Group::Rest, Group::Asleep] {
        let free = OPEN - slots.iter().sum::<usize>();
        let at = group as usize;
        slots[at] += (there[at] - slots[at]).min(free);
    }
    // Not the oldest ones: their numbers are scattered.
    present.sort_by_cached_key(|tid| (order(*tid), tid.wrapping_mul(0x9e37_79b9)));
    present.retain(|tid| {
        let left = &mut slots[order(*tid).0 as usize];
        let stays = *left > 0;
        *left -= usize::from(stays);
        stays
    });
}
