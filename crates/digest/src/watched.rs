//! One log that grows: read on from where it was, through rotation by renaming and by truncation.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::engine::Engine;
use super::input::Packing;
use super::options::Config;
use super::result::Digest;
use super::siblings::{identities, other_log, read_at, siblings, Identity, Sibling, Start};

/// A log that is followed by its identity, whatever becomes of its name.
pub struct Watched {
    path: PathBuf,
    config: Config,
    file: File,
    identity: Identity,
    place: Place,
    engine: Engine,
    done: Digest,
    known: HashSet<Identity>,
}

/// The file that is to be read next.
struct Next {
    file: File,
    identity: Identity,
    start: Start,
}

impl Watched {
    /// Follows the log from its start, or from its present end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path, from_end: bool, config: &Config) -> io::Result<Self> {
        let known = identities(path);
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::other("is no file; only files can be followed"));
        }
        let place = Place::at(&file, if from_end { metadata.len() } else { 0 })?;
        if Packing::of(&place.start().head) != Packing::Plain {
            return Err(io::Error::other("is packed; leave out --follow"));
        }
        Ok(Self {
            path: path.to_owned(),
            config: config.clone(),
            identity: Identity::of(&metadata),
            file,
            place,
            engine: Engine::new(config.clone()),
            done: Digest::default(),
            known,
        })
    }

    /// Reads what came since the last time; returns what there is to report.
    ///
    /// # Errors
    /// The log cannot be read on.
    pub fn poll(&mut self) -> io::Result<Vec<String>> {
        if self.place.is_blank() {
            self.read_unseen()?;
        }
        let mut notes = self.read_on()?;
        loop {
            // Listed before the look at the name: what comes later is new next time.
            let known = identities(&self.path);
            let Some(next) = self.successor() else {
                if self.has_its_name() {
                    self.known = known;
                }
                return Ok(notes);
            };
            // Written to only after the old file was: what is read now is all of the old one.
            if next.start.head.is_empty() {
                return Ok(notes);
            }
            notes.extend(self.read_on()?);
            self.switch(next)?;
            notes.extend(self.read_on()?);
        }
    }

    /// What was gathered since the last time; an event that is not complete yet counts next time.
    pub fn take(&mut self) -> Digest {
        let mut digest = std::mem::take(&mut self.done);
        digest.merge(self.engine.take());
        digest
    }

    /// The log counts as ended: returns what was gathered since the last time.
    ///
    /// # Errors
    /// The log cannot be read on.
    pub fn finish(mut self) -> io::Result<(Digest, Vec<String>)> {
        let mut notes = self.poll()?;
        if let Some(next) = self.successor() {
            self.switch(next)?;
            notes.extend(self.read_on()?);
        }
        self.end_stream();
        if !self.path.exists() {
            self.read_new(siblings(&self.path), None, &[self.place.start()])?;
        }
        Ok((self.done, notes))
    }

    fn has_its_name(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|present| Identity::of(&present) == self.identity)
    }

    /// The file that has the log's name now, if it is another one.
    fn successor(&self) -> Option<Next> {
        let present = fs::metadata(&self.path).ok()?;
        if Identity::of(&present) == self.identity {
            return None;
        }
        let file = File::open(&self.path).ok()?;
        let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
        let identity = Identity::of(&metadata);
        let start = Start::of(&file).ok()?;
        (identity != self.identity).then_some(Next {
            file,
            identity,
            start,
        })
    }

    /// Ends the old file, reads those that had the name in between, and begins the new one.
    fn switch(&mut self, next: Next) -> io::Result<()> {
        self.end_stream();
        let all = siblings(&self.path);
        let known = all.iter().map(|other| other.identity).collect();
        let mut copied = vec![self.place.start(), Start::of(&next.file)?];
        if !copied[1].head.starts_with(&next.start.head) {
            // Cut since it was opened: its copy is read when that is seen.
            copied.push(next.start.of_any_length());
        }
        self.read_new(all, Some(next.identity), &copied)?;
        self.place = Place::before(next.start);
        (self.file, self.identity, self.known) = (next.file, next.identity, known);
        Ok(())
    }

    /// Reads each of these that was not there before as a log of its own, but for `next` and for
    /// copies of what is read anyway.
    fn read_new(
        &mut self,
        files: Vec<Sibling>,
        next: Option<Identity>,
        copied: &[Start],
    ) -> io::Result<()> {
        for other in files {
            let known = other.identity == self.identity || self.known.contains(&other.identity);
            if known || Some(other.identity) == next {
                continue;
            }
            if let Some(file) = other_log(&other.path, copied) {
                let mut place = Place::at(&file, 0)?;
                while place.step(&file, &mut self.engine)? == Step::Read {}
                self.end_stream();
            }
        }
        Ok(())
    }

    /// The file was empty, so that it cannot be seen whether it was cut since: what is new beside
    /// it, and no copy of it, is what it had.
    fn read_unseen(&mut self) -> io::Result<()> {
        let all = siblings(&self.path);
        let known = all.iter().map(|other| other.identity).collect();
        if self.has_its_name() {
            self.read_new(all, None, &[Start::of(&self.file)?])?;
            self.known = known;
        }
        Ok(())
    }

    fn end_stream(&mut self) {
        let engine = std::mem::replace(&mut self.engine, Engine::new(self.config.clone()));
        self.done.merge(engine.finish());
    }

    /// Reads the file to its present end.
    fn read_on(&mut self) -> io::Result<Vec<String>> {
        let mut notes = Vec::new();
        loop {
            match self.place.step(&self.file, &mut self.engine)? {
                Step::Read => {}
                Step::Nothing => return Ok(notes),
                Step::Truncated => notes.push(self.restart()?),
            }
        }
    }

    /// The file was cut: reads on in its copy if there is one, then from the file's new start.
    fn restart(&mut self) -> io::Result<String> {
        let mut all = siblings(&self.path);
        let known = all.iter().map(|other| other.identity).collect();
        // Of several copies the youngest is the longest.
        let copy = all
            .iter()
            .rposition(|other| self.place.goes_on_in(&other.path));
        let mut words = "was truncated; what was not yet read of it is lost";
        if let Some(at) = copy {
            words = "was truncated; its copy is read to the end";
            let copy = File::open(&all[at].path)?;
            while self.place.step(&copy, &mut self.engine)? == Step::Read {}
        }
        self.end_stream();
        if let Some(at) = copy {
            let copied = [self.place.start(), Start::of(&self.file)?];
            self.read_new(all.split_off(at + 1), None, &copied)?;
        }
        self.place = Place::at(&self.file, 0)?;
        self.known = known;
        Ok(format!(
            "{}: {words}; now read from its start",
            self.path.display()
        ))
    }
}

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
        let retained = self.tail.len();
        self.buffer.resize(TAIL + CHUNK, 0);
        let from = self.offset - retained as u64;
        let got = read_at(file, &mut self.buffer[..retained + CHUNK], from)?;
        if !self.buffer[..got].starts_with(self.anchor()) {
            return Ok(Step::Truncated);
        }
        if got == retained {
            return Ok(Step::Nothing);
        }
        let end = from + got as u64;
        let tail = self.buffer[got.saturating_sub(TAIL)..got].to_vec();
        // It may have been cut and rewritten while it was read.
        if !has_before(file, end, &tail) {
            return Ok(Step::Truncated);
        }
        engine.feed(&self.buffer[retained..got]);
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
