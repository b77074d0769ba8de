//! The overlay: what was written since the freeze, in a file of its own above the base.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::chunks::{by_region, Chunks, CHUNK, REGION};

/// Writers that may raise chunks at once, each in a region of its own.
const STRIPES: u64 = 64;

/// Chunks that differ from the base.
pub struct Overlay {
    file: File,
    chunks: Chunks,
    stripes: Vec<Mutex<()>>,
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
            chunks: Chunks::new(size),
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        })
    }

    /// How many chunks differ from the base.
    pub fn chunks(&self) -> u64 {
        self.chunks.held()
    }

    /// Fills `data` with the bytes at `at`.
    pub fn read(&self, base: &File, at: u64, data: &mut [u8]) -> io::Result<()> {
        for run in self.chunks.runs(at..at + data.len() as u64) {
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
            if self.chunks.holds_all(&bytes) {
                self.file.write_all_at(part, bytes.start)?;
            } else {
                self.raise(base, &bytes, part)?;
            }
        }
        Ok(())
    }

    /// Writes into chunks of which some are not held yet.
    ///
    /// The lock keeps a second writer of such a chunk from copying the base over the first
    /// one's bytes.  Only one lock is held at a time, and who finds all bits set needs none.
    fn raise(&self, base: &File, bytes: &Range<u64>, data: &[u8]) -> io::Result<()> {
        let stripe = usize::try_from(bytes.start / REGION % STRIPES).unwrap_or(0);
        let _held = self.stripes[stripe]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for edge in [bytes.start, bytes.end] {
            if edge % CHUNK != 0 && !self.chunks.holds(edge) {
                self.copy_up(base, edge / CHUNK * CHUNK)?;
            }
        }
        self.file.write_all_at(data, bytes.start)?;
        self.chunks.hold(bytes);
        Ok(())
    }

    fn copy_up(&self, base: &File, at: u64) -> io::Result<()> {
        let mut chunk = vec![0; length(&(0..CHUNK))];
        base.read_exact_at(&mut chunk, at)?;
        self.file.write_all_at(&chunk, at)
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
