//! How far a file was read, and whether what was read is still there.

use std::fs::File;
use std::io;
use std::path::Path;

use super::engine::Engine;
use super::siblings::{read_at, Start};

/// How much is read at once.
const CHUNK: usize = 256 << 10;
/// How much before the place reached must still be what was read; a slow log's headers have times
/// and so do not repeat.
const TAIL: usize = 256;

/// A place in a file.
#[derive(Default)]
pub struct Place {
    offset: u64,
    /// The last bytes before the offset.
    tail: Vec<u8>,
    /// How the file begins.
    head: Vec<u8>,
    buffer: Vec<u8>,
}

/// What a look at the file found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Read,
    Nothing,
    /// What was read is no longer there.
    Truncated,
}

impl Place {
    /// A place in the file, the tail before it read.
    ///
    /// # Errors
    /// Here and below, what reading reports.
    pub fn at(file: &File, offset: u64) -> io::Result<Self> {
        let mut tail = vec![0; TAIL.min(usize::try_from(offset).unwrap_or(TAIL))];
        let from = offset - tail.len() as u64;
        let got = read_at(file, &mut tail, from)?;
        tail.truncate(got);
        Ok(Self {
            offset,
            tail,
            head: Start::of(file)?.head,
            buffer: Vec::new(),
        })
    }

    /// The start of a file that begins so.
    #[must_use]
    pub fn before(start: Start) -> Self {
        Self {
            head: start.head,
            ..Self::default()
        }
    }

    /// Whether there was nothing yet in the file.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.offset == 0 && self.head.is_empty()
    }

    /// How the part begins that was read.
    #[must_use]
    pub fn start(&self) -> Start {
        Start {
            head: self.head.clone(),
            length: self.offset,
        }
    }

    /// Feeds the engine a piece of the file if there is more of it.
    ///
    /// # Errors
    /// As above.
    pub fn step(&mut self, file: &File, engine: &mut Engine) -> io::Result<Step> {
        let kept = self.tail.len();
        self.buffer.resize(TAIL + CHUNK, 0);
        let from = self.offset - kept as u64;
        let got = read_at(file, &mut self.buffer[..kept + CHUNK], from)?;
        if !self.buffer[..got].starts_with(self.anchor()) {
            return Ok(Step::Truncated);
        }
        if got == kept {
            return Ok(Step::Nothing);
        }
        let end = from + got as u64;
        let tail = self.buffer[got.saturating_sub(TAIL)..got].to_vec();
        // It may have been cut and written anew while it was read.
        if !has_before(file, end, &tail) {
            return Ok(Step::Truncated);
        }
        engine.feed(&self.buffer[kept..got]);
        if self.head.len() < Start::MOST {
            self.head = Start::of(file)?.head;
        }
        (self.offset, self.tail) = (end, tail);
        Ok(Step::Read)
    }

    /// What the file must still have from the tail on.
    fn anchor(&self) -> &[u8] {
        if self.offset == 0 {
            &self.head
        } else {
            &self.tail
        }
    }

    /// Whether that file has at this place what this one had.
    #[must_use]
    pub fn goes_on_in(&self, path: &Path) -> bool {
        let anchor = self.anchor();
        let end = self.offset.max(anchor.len() as u64);
        !anchor.is_empty() && File::open(path).is_ok_and(|file| has_before(&file, end, anchor))
    }
}

/// Whether the file has these bytes, and they end at `end`.
fn has_before(file: &File, end: u64, bytes: &[u8]) -> bool {
    let mut there = vec![0; bytes.len()];
    let got = read_at(file, &mut there, end - bytes.len() as u64);
    got.is_ok_and(|got| got == there.len()) && there == bytes
}
