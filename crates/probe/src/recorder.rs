//! The file being written: one write for each tick, so that a kill loses at most that one.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::Value;

use super::frame::{Encoder, Tick};
use super::table::Table;

/// The open file and its encoder.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    encoder: Encoder,
    whole: u64,
}

impl Recorder {
    /// Makes the file, which must not be there, for its owner only.
    ///
    /// # Errors
    /// Those of open.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            encoder: Encoder::default(),
            whole: 0,
        })
    }

    /// Writes the head.
    ///
    /// # Errors
    /// Those of write; the file then ends with its last whole frame, here and below.
    pub fn head(&mut self, head: &Value) -> io::Result<()> {
        self.encoder.head(head);
        self.write()
    }

    /// Writes a tick and all that came with it.
    ///
    /// # Errors
    /// Those of write.
    pub fn tick(&mut self, tick: &Tick, table: &mut Table) -> io::Result<()> {
        self.encoder.tick(tick, table);
        self.write()
    }

    /// Writes the end.
    ///
    /// # Errors
    /// Those of write.
    pub fn end(&mut self, end: &Value) -> io::Result<()> {
        self.encoder.end(end);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        match self.file.write_all(&self.encoder.out) {
            Ok(()) => self.whole += self.encoder.out.len() as u64,
            Err(error) => {
                // A torn frame would hide what somebody appends later; the first error is what counts.
                let _ = self.file.set_len(self.whole);
                return Err(error);
            }
        }
        self.encoder.out.clear();
        Ok(())
    }
}
