//! One look at a thread: what it does at this moment.

use std::fs::{self, File};
use std::path::Path;

use crate::file::{hexadecimal, number, Look, Words};
use crate::states::call::{file_of, Kind};

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
    /// Of the thread that has this folder; none where it is gone or not ours to look at.
    #[must_use]
    pub fn open(folder: &Path) -> Option<Self> {
        Some(Self {
            call: File::open(folder.join("syscall")).ok()?,
            waits: File::open(folder.join("wchan")).ok(),
        })
    }

    /// What the thread does now; none once it is gone. `process` is the folder of its process.
    pub fn see(&self, process: &Path, look: &mut Look) -> Option<State> {
        let mut words = Words(look.read_once(&self.call).ok()?);
        let Some(call) = number(words.next()?) else {
            return Some(State::Running); // "running"
        };
        if call < 0 {
            return Some(State::Fault);
        }
        let kind = Kind::of(call);
        if !kind.has_file() {
            let (file, journal) = ("", false);
            return Some(State::Call {
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
        Some(State::Call {
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
