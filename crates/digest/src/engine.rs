//! A stream of log text turned into a digest.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};

use super::behind::Step;
use super::gather::Gather;
use super::names::INHERITED;
use super::options::Config;
use super::reader::Reader;
use super::result::Digest;

/// How much is read at once; what is read is still in the processor's cache when it is parsed.
const CHUNK: usize = 256 << 10;
/// What is pending is not looked at again before it has grown by this.
const MORE: usize = 4096;

/// Reads one log, in pieces of any size; where it is split makes no difference.
#[derive(Debug)]
pub struct Engine {
    pub(super) reader: Reader,
    gather: Gather,
    /// The text from `start` to `filled` is still to be read.
    buffer: Vec<u8>,
    start: usize,
    filled: usize,
    /// Not before so much is pending is it worth another look.
    enough: usize,
    /// Where `start` is in the log.
    position: u64,
    taken: u64,
}

impl Engine {
    /// An engine that has read nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        // Nobody who writes statements can know which of them would have the same hash.
        let seed = RandomState::new().hash_one(0_u8);
        Self {
            gather: Gather::new(config),
            reader: Reader::new(seed),
            buffer: Vec::new(),
            start: 0,
            filled: 0,
            enough: 0,
            position: 0,
            taken: 0,
        }
    }

    /// An engine that starts at a place in the log and knows nothing of what is before it.
    pub(super) fn within(config: Config, position: u64) -> Self {
        let mut engine = Self {
            position,
            taken: position,
            ..Self::new(config)
        };
        engine.reader.carry.database = INHERITED;
        engine.reader.carry.unknown = true;
        engine
    }

    /// Reads on.
    pub fn feed(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(CHUNK) {
            self.space(part.len())[..part.len()].copy_from_slice(part);
            self.filled += part.len();
            self.run(false, u64::MAX);
        }
    }

    /// Reads once from `source`, straight into the engine's memory; returns how many bytes, 0 at
    /// the end.
    ///
    /// # Errors
    /// What the source reports.
    pub fn read_from(&mut self, source: &mut impl Read) -> io::Result<usize> {
        let read = source.read(self.space(CHUNK))?;
        self.filled += read;
        self.run(false, u64::MAX);
        Ok(read)
    }

    /// What was gathered since the last time; an event that is not complete yet counts next time.
    pub fn take(&mut self) -> Digest {
        self.enough = 0;
        self.run(false, u64::MAX);
        let mut digest = self.gather.take(&self.reader.names);
        digest.summary.bytes = self.position - self.taken;
        self.taken = self.position;
        digest
    }

    /// The log has ended: returns what was gathered.
    #[must_use]
    pub fn finish(mut self) -> Digest {
        self.run(true, u64::MAX);
        self.buffer = Vec::new();
        self.take()
    }

    /// Reads the events that begin before `limit`; `last`: no more bytes follow.
    pub(super) fn run(&mut self, last: bool, limit: u64) {
        if self.filled - self.start < self.enough && !last {
            return;
        }
        self.enough = 0;
        while self.start < self.filled {
            if self.position >= limit && self.reader.between() && !self.blank() {
                return;
            }
            let text = &self.buffer[self.start..self.filled];
            match self.reader.step(text, last, &mut self.gather) {
                Step::Done(bytes) => {
                    self.start += bytes;
                    self.position += bytes as u64;
                }
                Step::NotYet => {
                    self.enough = text.len() * 2 + MORE;
                    return;
                }
            }
        }
    }

    fn blank(&self) -> bool {
        matches!(self.buffer[self.start], b'\n' | b'\r' | 0)
    }

    /// Room for at least so many bytes behind what is pending.
    pub(super) fn space(&mut self, bytes: usize) -> &mut [u8] {
        if self.buffer.len() - self.filled < bytes {
            self.buffer.copy_within(self.start..self.filled, 0);
            self.filled -= self.start;
            self.start = 0;
            let size = (self.filled + bytes).next_multiple_of(CHUNK);
            if self.buffer.len() < size {
                self.buffer.resize(size, 0);
            }
        }
        &mut self.buffer[self.filled..]
    }

    /// So many bytes were put into the room.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.filled += bytes;
    }

    /// Where in the log the next event begins.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Whether the next event begins behind a place.
    pub(super) fn is_past(&self, limit: u64) -> bool {
        self.position >= limit && self.reader.between()
    }

    /// Whether the answer would be another one if the text before had been known.
    pub(super) fn guessed(&self) -> bool {
        self.reader.carry.guessed || self.gather.guessed
    }

    /// The bytes that are left for what grows; without any, the order of events matters.
    pub(super) fn room(&self) -> i64 {
        if self.reader.names.full() || self.reader.attributes.full() {
            return 0;
        }
        self.gather.room()
    }

    /// What was gathered; what is pending is not looked at.
    pub(super) fn done(mut self) -> Digest {
        self.buffer = Vec::new();
        (self.start, self.filled) = (0, 0);
        self.take()
    }
}
