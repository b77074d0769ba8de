//! Files that are kept open and read again from their start, into one buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Room for most files at once; a larger one makes it grow.
const ROOM: usize = 32 * 1024;

/// What all parts read with: one buffer, and whether it is time for what is looked at seldom.
#[derive(Debug)]
pub struct Look {
    buffer: Vec<u8>,
    pub seldom: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            buffer: vec![0; ROOM],
            seldom: true,
        }
    }
}

impl Look {
    /// All of a file as it is now.
    ///
    /// # Errors
    /// Those of the read: a process that is gone says so here.
    pub fn read(&mut self, file: &File) -> io::Result<&[u8]> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            // The kernel gives a long file in pieces of about a page.
            match file.read_at(&mut self.buffer[length..], length as u64)? {
                0 => return Ok(&self.buffer[..length]),
                more => length += more,
            }
        }
    }

    /// All of a file that is no longer than a page and comes in one piece: one call less.
    ///
    /// # Errors
    /// Those of the read.
    pub fn read_once(&mut self, file: &File) -> io::Result<&[u8]> {
        let length = file.read_at(&mut self.buffer, 0)?;
        Ok(&self.buffer[..length])
    }

    /// A small file that is opened for this one reading.
    pub fn open_and_read(&mut self, path: &Path) -> Option<&[u8]> {
        let file = File::open(path).ok()?;
        self.read_once(&file).ok()
    }
}

/// A file that is kept open, once it is there.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    file: Option<File>,
}

impl Kept {
    /// Opens the file, or keeps its name for later.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        let file = File::open(&path).ok();
        Self { path, file }
    }

    /// All of the file; nothing where it is not there or cannot be read.  One that is absent is
    /// looked for again now and then.
    pub fn read<'a>(&mut self, look: &'a mut Look) -> Option<&'a [u8]> {
        if self.file.is_none() && look.seldom {
            self.file = File::open(&self.path).ok();
        }
        look.read(self.file.as_ref()?).ok()
    }
}
