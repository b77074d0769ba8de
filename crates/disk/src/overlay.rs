//! The overlay: what was written since the freeze, in a file of its own above the base.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::pages::{by_region, Pages, PAGE, REGION};

/// Writers that may raise pages at once, each in a region of its own.
const LOCKS: u64 = 64;

/// Pages that differ from the base.
pub struct Overlay {
    file: File,
    pages: Pages,
    locks: Vec<Mutex<()>>,
}

impl Overlay {
    /// An empty overlay in a new file, whose name is removed at once: without its bitmap it is
    /// worth nothing, and so nothing is left of it however this process ends.
    pub fn open(path: &Path, size: u64) -> io::Result<Self> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        fs::remove_file(path)?;
        Ok(Self {
            file,
            pages: Pages::new(size),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
        })
    }

    /// How many pages differ from the base.
    pub fn pages(&self) -> u64 {
        self.pages.held()
    }

    /// Fills `data` with the bytes at `at`.
    pub fn read(&self, base: &File, at: u64, data: &mut [u8]) -> io::Result<()> {
        for run in self.pages.runs(at..at + data.len() as u64) {
            let part = offset(&run.bytes, at);
            let from = if run.held { &self.file } else { base };
            from.read_exact_at(&mut data[part], run.bytes.start)?;
        }
        Ok(())
    }

    /// Writes all of `data` at `at`.
    pub fn write(&self, base: &File, at: u64, data: &[u8]) -> io::Result<()> {
        for bytes in by_region(at..at + data.len() as u64) {
            let part = &data[offset(&bytes, at)];
            if self.pages.holds_all(&bytes) {
                self.file.write_all_at(part, bytes.start)?;
            } else {
                self.raise(base, &bytes, part)?;
            }
        }
        Ok(())
    }

    /// Writes into pages of which some are not held yet.
    ///
    /// The lock keeps a second writer of such a page from copying the base over the first
    /// one's bytes.  Only one lock is held at a time, and who finds all bits set needs none.
    fn raise(&self, base: &File, bytes: &Range<u64>, data: &[u8]) -> io::Result<()> {
        let lock = usize::try_from(bytes.start / REGION % LOCKS).unwrap_or(0);
        let _held = self.locks[lock]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for edge in [bytes.start, bytes.end] {
            if edge % PAGE != 0 && !self.pages.holds(edge) {
                self.copy_up(base, edge / PAGE * PAGE)?;
            }
        }
        self.file.write_all_at(data, bytes.start)?;
        self.pages.hold(bytes);
        Ok(())
    }

    fn copy_up(&self, base: &File, at: u64) -> io::Result<()> {
        let mut page = vec![0; length(&(0..PAGE))];
        base.read_exact_at(&mut page, at)?;
        self.file.write_all_at(&page, at)
    }
}

/// Where `bytes` lie in a buffer that begins at `at`.
fn offset(bytes: &Range<u64>, at: u64) -> Range<usize> {
    length(&(at..bytes.start))..length(&(at..bytes.end))
}

/// A length that fits, since it is that of a buffer in memory.
fn length(bytes: &Range<u64>) -> usize {
    usize::try_from(bytes.end - bytes.start).unwrap_or(usize::MAX)
}
