//! The files beside a log that rotation makes of it: what they are, and which are new.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::input::Packing;

/// What a file is, whatever its name.  A number that is used again has another time of birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    device: u64,
    inode: u64,
    born: Option<SystemTime>,
}

impl Identity {
    /// Of the file with this metadata.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            born: metadata.created().ok(),
        }
    }
}

/// A file beside the log whose name begins with the log's.
#[derive(Debug)]
pub struct Sibling {
    pub path: PathBuf,
    pub identity: Identity,
    written: SystemTime,
}

/// All files beside `log` whose names begin with its name, the oldest first; never the log itself.
#[must_use]
pub fn siblings(log: &Path) -> Vec<Sibling> {
    let directory = log.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(directory.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let Some(name) = log.file_name().map(std::ffi::OsStr::as_encoded_bytes) else {
        return Vec::new();
    };
    let mut found: Vec<Sibling> = entries
        .filter_map(Result::ok)
        .filter(|entry| {
            let other = entry.file_name();
            let other = other.as_encoded_bytes();
            other.starts_with(name) && other != name
        })
        .filter_map(|entry| sibling(entry.path()))
        .collect();
    found.sort_by(age);
    found
}

/// The identities of all siblings.
#[must_use]
pub fn identities(log: &Path) -> HashSet<Identity> {
    siblings(log)
        .iter()
        .map(|sibling| sibling.identity)
        .collect()
}

fn sibling(path: PathBuf) -> Option<Sibling> {
    let metadata = fs::symlink_metadata(&path).ok().filter(Metadata::is_file)?;
    let written = metadata.modified().ok()?;
    Some(Sibling {
        path,
        identity: Identity::of(&metadata),
        written,
    })
}

/// The file written last is the youngest; of those written at once, `log.2` is older than `log.1`.
fn age(a: &Sibling, b: &Sibling) -> Ordering {
    let by_number = || match (number(&a.path), number(&b.path)) {
        (Some(a), Some(b)) => b.cmp(&a),
        _ => a.path.cmp(&b.path),
    };
    a.written.cmp(&b.written).then_with(by_number)
}

fn number(path: &Path) -> Option<u64> {
    path.extension()?.to_str()?.parse().ok()
}

/// How a log begins, by which its copies are known.
pub struct Start {
    pub head: Vec<u8>,
    pub length: u64,
}

impl Start {
    /// How much of a start is looked at.
    pub const MOST: usize = 4096;

    /// Of a file as it is now.
    ///
    /// # Errors
    /// What reading reports.
    pub fn of(file: &File) -> io::Result<Self> {
        let mut head = vec![0; Self::MOST];
        let got = read_at(file, &mut head, 0)?;
        head.truncate(got);
        let length = file.metadata()?.len();
        Ok(Self { head, length })
    }

    /// The same start, of a log whose length is not known.
    #[must_use]
    pub fn of_any_length(&self) -> Self {
        Self {
            head: self.head.clone(),
            length: u64::MAX,
        }
    }

    fn has_copy(&self, other: &Self) -> bool {
        let shared = self.head.len().min(other.head.len());
        shared > 0 && self.head[..shared] == other.head[..shared] && other.length <= self.length
    }
}

/// Opens a sibling that is a log of its own: readable, not empty, not packed, and no copy of one
/// of these.
#[must_use]
pub fn other_log(path: &Path, copied: &[Start]) -> Option<File> {
    let file = File::open(path).ok()?;
    let start = Start::of(&file).ok()?;
    let plain = !start.head.is_empty() && Packing::of(&start.head) == Packing::Plain;
    let copy = copied.iter().any(|original| original.has_copy(&start));
    (plain && !copy).then_some(file)
}

/// Fills `into` from `offset` on, as far as the file goes; returns how many bytes.
///
/// # Errors
/// What reading reports.
pub fn read_at(file: &File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < into.len() {
        match file.read_at(&mut into[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
