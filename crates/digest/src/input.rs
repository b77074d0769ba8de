//! What is digested: plain files, packed files, and standard input.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use super::config::Config;
use super::engine::Engine;
use super::parallel::digest_file;
use super::result::Digest;
use super::zst::Frames;

const PACKED_BUFFER: usize = 256 << 10;
const GZ: [u8; 2] = [0x1f, 0x8b];
const ZST: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The last three bytes of a frame that unpackers skip.
const ZST_SKIPPABLE: [u8; 3] = [0x2a, 0x4d, 0x18];

/// A log that has been opened.
pub struct Input {
    /// As it was given.
    pub name: String,
    source: Source,
}

enum Source {
    /// A regular file that is not packed; it can be read by several threads.
    Plain(PathBuf),
    Stream(Box<dyn Read>),
}

/// How a log is packed, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gz,
    Zst,
}

impl Packing {
    /// What begins with these bytes.
    #[must_use]
    pub fn of(start: &[u8]) -> Self {
        let skippable = start.get(1..4) == Some(&ZST_SKIPPABLE) && start[0] & 0xf0 == 0x50;
        if start.starts_with(&GZ) {
            Self::Gz
        } else if start.starts_with(&ZST) || skippable {
            Self::Zst
        } else {
            Self::Plain
        }
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// Says which file cannot be read, why, and what to do.
    pub fn open(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let source = if name == "-" {
            standard_input()
        } else {
            opened(path)
        };
        match source {
            Ok(source) => Ok(Self { name, source }),
            Err(error) => Err(format!("{name}: {}", reason(&error))),
        }
    }

    /// Reads it to its end.  If that fails midway, the digest is of what could be read, and why
    /// it failed is said too.
    pub fn digest(self, threads: usize, config: &Config) -> (Digest, Option<String>) {
        match self.source {
            Source::Stream(mut stream) => {
                let mut engine = Engine::new(config.clone());
                let read = read_all(&mut engine, &mut stream);
                let words = |error| format!("{}: {error}; what came before is counted", self.name);
                (engine.finish(), read.err().map(words))
            }
            Source::Plain(path) => match digest_file(&path, threads, config) {
                Ok(digest) => (digest, None),
                Err(error) => (Digest::default(), Some(format!("{}: {error}", self.name))),
            },
        }
    }
}

/// Why a file cannot be opened, and the next step.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file; check its name".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "may not be read; run as a user that may read it".to_owned()
        }
        io::ErrorKind::IsADirectory => "is a directory; name the logs in it".to_owned(),
        _ => error.to_string(),
    }
}

fn read_all(engine: &mut Engine, stream: &mut dyn Read) -> io::Result<()> {
    let mut stream = stream;
    loop {
        match engine.read_from(&mut stream) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn standard_input() -> io::Result<Source> {
    // Not the buffered one: the engine has its own memory to read into.
    let owned = io::stdin().as_fd().try_clone_to_owned()?;
    unpacked(File::from(owned)).map(|(_, stream)| Source::Stream(stream))
}

fn opened(path: &Path) -> io::Result<Source> {
    let file = File::open(path)?;
    let kind = file.metadata()?;
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    match unpacked(file)? {
        (Packing::Plain, _) if kind.is_file() => Ok(Source::Plain(path.to_owned())),
        (_, stream) => Ok(Source::Stream(stream)),
    }
}

fn unpacked(mut file: File) -> io::Result<(Packing, Box<dyn Read>)> {
    let mut start = Vec::with_capacity(ZST.len());
    Read::by_ref(&mut file)
        .take(ZST.len() as u64)
        .read_to_end(&mut start)?;
    let packing = Packing::of(&start);
    let whole = Cursor::new(start).chain(file);
    let stream: Box<dyn Read> = match packing {
        Packing::Plain => Box::new(whole),
        Packing::Gz => Box::new(MultiGzDecoder::new(buffered(whole))),
        Packing::Zst => Box::new(Frames::new(buffered(whole))),
    };
    Ok((packing, stream))
}

fn buffered<R: Read>(source: R) -> BufReader<R> {
    BufReader::with_capacity(PACKED_BUFFER, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_told_by_the_first_bytes() {
        let cases: [(&[u8], Packing); 6] = [
            (b"", Packing::Plain),
            (b"# Ti", Packing::Plain),
            (b"\x1f\x8b\x08\x00", Packing::Gz),
            (b"\x28\xb5\x2f\xfd", Packing::Zst),
            (b"\x5e\x2a\x4d\x18", Packing::Zst),
            (b"\x1f", Packing::Plain),
        ];
        for (start, want) in cases {
            assert_eq!(Packing::of(start), want, "{start:?}");
        }
    }
}
