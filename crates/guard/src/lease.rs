//! A lease: what is changed and how it is restored, and the records of what became of it.
//!
//! One file a lease, one line an entry: a CRC-32 in hexadecimal digits, a blank, JSON.  The first
//! entry holds all changes with their first values, so whatever comes later can be restored.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{fdatasync, flock, fsync, FlockOperation};
use serde::{Deserialize, Serialize};

use crate::fault::{At as _, Fault, Result};

/// Where the leases of a host are.
pub const FOLDER: &str = "/var/lib/mydyno/lease";

/// What a change is of.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A file below /proc/sys or /sys, whose words are its value; of several the one in brackets.
    Value,
    /// A file of the host; no value means that it is absent.
    File,
    /// A global variable of the server.
    Variable,
    /// The options of a mounted filesystem.
    Mount,
}

/// One change: where, its value before, and the one that is wanted.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Change {
    pub kind: Kind,
    pub place: String,
    pub before: Option<String>,
    pub wanted: Option<String>,
    /// The commands that remount forth and back.
    #[serde(default)]
    pub forth: Vec<String>,
    #[serde(default)]
    pub back: Vec<String>,
    /// Folders that are made for a file, outermost first; they are removed with it.
    #[serde(default)]
    pub made: Vec<String>,
    /// What the kernel moves along with a value: places, and what is restored there after it.
    #[serde(default)]
    pub along: BTreeMap<String, String>,
}

/// What is asked of `begin`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Lease {
    pub id: String,
    pub host: String,
    pub who: String,
    pub why: String,
    pub seconds: u64,
    /// The server's unit.
    #[serde(default)]
    pub unit: String,
    /// A client with its options; statements come by its standard input.
    #[serde(default)]
    pub client: Vec<String>,
    /// Whether the server is restarted after the files of the trial are there, and after they went.
    #[serde(default)]
    pub restart: bool,
    pub trial: Vec<Change>,
    /// What `confirm` writes.
    pub stored: Vec<Change>,
    /// The kept lease that this one undoes.
    #[serde(default)]
    pub undoes: String,
    /// For who reads the leases: settings and evidence.
    #[serde(default)]
    pub note: serde_json::Value,
}

/// One record of a lease.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "entry", rename_all = "lowercase")]
pub enum Entry {
    Open {
        lease: Box<Lease>,
        boot: String,
        at: u64,
        /// One more than that of the lease before it: a clock can step back.
        #[serde(default)]
        order: u64,
    },
    /// A change of the trial is about to be made.
    Intent {
        n: usize,
    },
    /// It was made, and this is its value now, and what the kernel has moved along with it.
    Landed {
        n: usize,
        value: Option<String>,
        #[serde(default)]
        along: BTreeMap<String, String>,
    },
    Trial {
        at: u64,
    },
    Until {
        at: u64,
    },
    /// What production showed: keep, wait, revert.
    Judged {
        verdict: String,
        text: String,
    },
    Confirmed {
        at: u64,
        who: String,
    },
    Kept {
        at: u64,
        left: Vec<String>,
    },
    Reverting {
        at: u64,
        why: String,
    },
    Reverted {
        at: u64,
        left: Vec<String>,
    },
}

/// Where a lease stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Open,
    Trial,
    Confirmed,
    Kept,
    Reverting,
    Reverted,
}

/// A lease as its records have it.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    pub lease: Lease,
    pub state: State,
    /// Whether everything was in force once: the server was started for it, and answered.
    #[serde(skip)]
    pub was_on_trial: bool,
    pub boot: String,
    pub at: u64,
    pub order: u64,
    pub until: u64,
    /// Of each change of the trial: absent as long as nothing was begun, then what it became.
    pub landed: Vec<Option<Landed>>,
    pub verdict: String,
    pub judged: String,
    pub why: String,
    /// What was not restored or written: somebody else has changed it, or it is gone.
    pub left: Vec<String>,
    pub extended: u32,
}

/// A change that was begun; `value` is what it became, unless the end of it is not recorded.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Landed {
    pub sure: bool,
    pub value: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub along: BTreeMap<String, String>,
}

impl Held {
    /// Returns whether nothing is to be done for it any more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Kept | State::Reverted)
    }

    fn new(lease: Lease, boot: String, at: u64, order: u64) -> Self {
        Self {
            state: State::Open,
            was_on_trial: false,
            boot,
            at,
            order,
            until: at + lease.seconds,
            landed: vec![None; lease.trial.len()],
            verdict: String::new(),
            judged: String::new(),
            why: String::new(),
            left: Vec::new(),
            extended: 0,
            lease,
        }
    }

    fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Intent { n } => self.land(n, Landed::default()),
            Entry::Landed { n, value, along } => {
                let sure = true;
                self.land(n, Landed { sure, value, along });
            }
            Entry::Trial { .. } if self.state == State::Open => {
                self.state = State::Trial;
                self.was_on_trial = true;
            }
            Entry::Until { at } => {
                self.until = at;
                self.extended += 1;
            }
            Entry::Judged { verdict, text } => {
                self.verdict = verdict;
                self.judged = text;
            }
            // Of the two decisive entries the first one counts; a lock lets only one be written.
            Entry::Confirmed { .. } if self.state == State::Trial => self.state = State::Confirmed,
            Entry::Reverting { why, .. } if self.state != State::Confirmed => {
                self.state = State::Reverting;
                self.why = why;
            }
            Entry::Open { .. }
            | Entry::Trial { .. }
            | Entry::Confirmed { .. }
            | Entry::Reverting { .. } => {}
            Entry::Kept { left, .. } => {
                self.state = State::Kept;
                self.left = left;
            }
            Entry::Reverted { left, .. } => {
                self.state = State::Reverted;
                self.left = left;
            }
        }
    }

    fn land(&mut self, n: usize, landed: Landed) {
        if let Some(place) = self.landed.get_mut(n) {
            *place = Some(landed);
        }
    }
}

/// The folder of leases, locked by at most one process.
pub struct Leases {
    folder: PathBuf,
}

impl Leases {
    /// Opens the folder; makes it where it is missing.
    pub fn open(folder: &Path) -> Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder).at(folder.display())?;
        let found = fs::symlink_metadata(folder).at(folder.display())?;
        let own = rustix::process::geteuid().as_raw();
        if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
            return Err(Fault::refused(format!(
                "{}: not a folder of this user alone; look at what is in it and remove it",
                folder.display()
            )));
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Waits for the lock and returns it; none where another process has it for `tries` × 100 ms.
    pub fn lock(&self, tries: u32) -> Result<Option<File>> {
        let path = self.folder.join("lock");
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nofollow());
        let writable = options
            .clone()
            .write(true)
            .create(true)
            .mode(0o600)
            .open(&path);
        // On a disk that went read-only a rollback must go on.
        let file = writable
            .or_else(|_| options.open(&path))
            .at(path.display())?;
        for attempt in 0.. {
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                // Who has it can be ended by the dead man; on a full disk that is not known.
                let _ = file.set_len(0);
                let _ = (&file).write_all(std::process::id().to_string().as_bytes());
                return Ok(Some(file));
            }
            if attempt >= tries {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        Ok(None)
    }

    /// Returns the process that has the lock, as it wrote it.
    pub fn holder(&self) -> Option<u32> {
        fs::read_to_string(self.folder.join("lock"))
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    /// Returns all leases, the oldest first.
    pub fn all(&self) -> Result<Vec<Held>> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.folder).at(self.folder.display())? {
            let name = entry.at(self.folder.display())?.file_name();
            if let Some(id) = name.to_str().and_then(|n| n.strip_suffix(".jsonl")) {
                ids.push(id.to_owned());
            }
        }
        let found: Result<Vec<Held>> = ids.iter().map(|id| self.one(id)).collect();
        let mut all = found?;
        // An id has the clock of who asked for it, `at` the host's own; both can step back.
        all.sort_by(|a, b| (a.order, a.at, &a.lease.id).cmp(&(b.order, b.at, &b.lease.id)));
        Ok(all)
    }

    /// Returns whether there is a record of this lease, or one that cannot be looked at.
    pub fn has(&self, id: &str) -> bool {
        self.path(id).try_exists().unwrap_or(true)
    }

    /// Returns one lease.
    pub fn one(&self, id: &str) -> Result<Held> {
        let path = self.path(id);
        let text = fs::read(&path).at(path.display())?;
        folded(&text).ok_or_else(|| {
            Fault::failed(format!(
                "{}: its first line is damaged, so nothing of the lease is known; compare the \
                 host's settings with a backup, then remove the file",
                path.display()
            ))
        })
    }

    /// Creates a lease's file with its first entry: all of it is there, or nothing.
    pub fn create(&self, id: &str, entry: &Entry) -> Result<()> {
        let new = self.folder.join(format!("{id}.new"));
        let done = self.create_as(&new, id, entry);
        if done.is_err() {
            let _ = fs::remove_file(&new);
        }
        done
    }

    fn create_as(&self, new: &Path, id: &str, entry: &Entry) -> Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(new)
            .at(new.display())?;
        file.write_all(&line(entry)).at(new.display())?;
        file.sync_all().at(new.display())?;
        fs::rename(new, self.path(id)).at(new.display())?;
        synced(&self.folder)
    }

    /// Appends an entry; it is durable when this returns.
    pub fn add(&self, id: &str, entry: &Entry) -> Result<()> {
        let path = self.path(id);
        let mut file = OpenOptions::new()
            .append(true)
            .read(true)
            .custom_flags(nofollow())
            .open(&path)
            .at(path.display())?;
        let text = fs::read(&path).at(path.display())?;
        let complete = text.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1) as u64;
        if complete < text.len() as u64 {
            file.set_len(complete).at(path.display())?; // the step of a cut entry never began
        }
        let done = file.write_all(&line(entry)).at(path.display());
        let done = done.and_then(|()| fdatasync(&file).at(path.display()));
        if done.is_err() {
            let _ = file.set_len(complete); // who sees it fail must not meet it later
        }
        done
    }

    /// Removes all leases, the lock and the folder.
    pub fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.folder).at(self.folder.display())?;
        if let Some(above) = self.folder.parent() {
            let _ = fs::remove_dir(above); // campaigns of this host may have records there
        }
        settled(&self.folder)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.jsonl"))
    }
}

/// Returns the flag that refuses a link in a file's place.
fn nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

/// Makes what was removed below a folder durable, by the nearest one that is still there.
///
/// A power cut would bring back units whose leases are gone.
pub fn settled(folder: &Path) -> Result<()> {
    let there = folder.ancestors().find(|path| path.is_dir());
    there.map_or(Ok(()), synced)
}

/// Makes what a folder names durable.
pub fn synced(folder: &Path) -> Result<()> {
    let opened = File::open(folder).at(folder.display())?;
    fsync(&opened).at(folder.display())
}

fn line(entry: &Entry) -> Vec<u8> {
    let json = serde_json::to_vec(entry).unwrap_or_default();
    let mut text = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    text.extend(json);
    text.push(b'\n');
    text
}

/// Returns a lease from its lines; those that are cut or damaged are passed over.
fn folded(text: &[u8]) -> Option<Held> {
    let mut entries = text.split_inclusive(|b| *b == b'\n').filter_map(entry);
    let Some(Entry::Open {
        lease,
        boot,
        at,
        order,
    }) = entries.next()
    else {
        return None;
    };
    let mut held = Held::new(*lease, boot, at, order);
    entries.for_each(|one| held.take(one));
    Some(held)
}

fn entry(line: &[u8]) -> Option<Entry> {
    let text = line.strip_suffix(b"\n")?;
    let (sum, json) = text.split_at_checked(9)?;
    let wanted = format!("{:08x} ", crc32fast::hash(json));
    (sum == wanted.as_bytes()).then(|| serde_json::from_slice(json).ok())?
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
