//! What is digested: plain files, files packed by gzip or zstd, and standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::engine::Engine;
use super::options::Config;
use super::parallel::digest_file;
use super::result::Digest;

const PACKED_BUFFER: usize = 256 << 10;
const GZ: [u8; 2] = [0x1f, 0x8b];
const ZST: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
const BZ2: [u8; 3] = *b"BZh";
/// The bytes of a block that follow a digit.
const BZ2_BLOCK: [u8; 6] = [0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
/// So many bytes show how a log is packed.
const START: usize = 10;
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
    Xz,
    Bz2,
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
        } else if start.starts_with(&XZ) {
            Self::Xz
        } else if start.starts_with(&BZ2) && start.get(4..10) == Some(&BZ2_BLOCK) {
            Self::Bz2
        } else {
            Self::Plain
        }
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    /// Reports which file cannot be read, why, and what to do.
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

    /// Where a plain file is.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Plain(path) => Some(path.clone()),
            Source::Stream(_) => None,
        }
    }

    /// Reads it to its end.  If that fails midway, the digest is of what could be read, and why
    /// it failed is reported too.
    pub fn digest(self, threads: usize, config: &Config) -> (Digest, Option<String>) {
        let words = |error| format!("{}: {error}; what came before is counted", self.name);
        match self.source {
            Source::Stream(mut stream) => {
                let mut engine = Engine::new(config.clone());
                let read = read_all(&mut engine, &mut stream);
                (engine.finish(), read.err().map(words))
            }
            Source::Plain(path) => match digest_file(&path, threads, config) {
                Ok((digest, broken)) => (digest, broken.map(words)),
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

/// What is to be done about a log without any event.
#[must_use]
pub fn hint(path: Option<&Path>, bytes: u64) -> String {
    if bytes == 0 {
        return "is empty; the server has logged nothing, or to another file (slow_query_log, slow_query_log_file)"
            .to_owned();
    }
    let mut start = Vec::new();
    if let Some(file) = path.and_then(|path| File::open(path).ok()) {
        let _ = file.take(PACKED_BUFFER as u64).read_to_end(&mut start);
    }
    let start = String::from_utf8_lossy(&start);
    let prefixed = start
        .lines()
        .find_map(|line| line.split_once("# Query_time: ").map(|(prefix, _)| prefix));
    match prefixed.map(|prefix| prefix.matches(':').count()) {
        Some(colons) if colons > 0 => format!(
            "each line has a prefix, as syslog's; remove it: \
             `sed -E 's/^([^:]*:){{{colons}}} ?//' FILE | mydyno digest -`"
        ),
        Some(_) => "each line has a prefix; remove it, and read `-`".to_owned(),
        None => "has no event of a slow log; an error log, a general log and a binary log are none"
            .to_owned(),
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
    let mut start = Vec::with_capacity(START);
    Read::by_ref(&mut file)
        .take(START as u64)
        .read_to_end(&mut start)?;
    let packing = Packing::of(&start);
    if [&b"\xff\xfe"[..], b"\xfe\xff", b"#\0", b"\0#"]
        .iter()
        .any(|mark| start.starts_with(mark))
    {
        let words = "is UTF-16; convert it: `iconv -f UTF-16 -t UTF-8 FILE | mydyno digest -`";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
    }
    let bytes = Cursor::new(start).chain(file);
    let stream: Box<dyn Read> = match packing {
        Packing::Plain => Box::new(bytes),
        Packing::Gz => Box::new(MultiGzDecoder::new(buffered(bytes))),
        Packing::Zst => Box::new(Frames::new(buffered(bytes))),
        Packing::Xz => Box::new(Unpacker::start("xz", bytes)?),
        Packing::Bz2 => Box::new(Unpacker::start("bzip2", bytes)?),
    };
    Ok((packing, stream))
}

/// A program that unpacks: xz and bzip2 are on every host that has such logs, and rarely needed.
struct Unpacker {
    program: &'static str,
    child: Child,
    unpacked: ChildStdout,
}

impl Unpacker {
    fn start(program: &'static str, mut packed: impl Read + Send + 'static) -> io::Result<Self> {
        let missing = |error: io::Error| {
            let words = format!(
                "is packed by {program}, which cannot be run ({error}); install {program}, or \
                 unpack the log elsewhere and read `-`"
            );
            io::Error::new(io::ErrorKind::InvalidInput, words)
        };
        let mut child = Command::new(program)
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        let (Some(mut into), Some(unpacked)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        // It ends with the program, whose exit code reports what is wrong with the log.
        std::thread::spawn(move || io::copy(&mut packed, &mut into));
        Ok(Self {
            program,
            child,
            unpacked,
        })
    }
}

impl Read for Unpacker {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.unpacked.read(into)?;
        if got == 0 && !into.is_empty() && !self.child.wait()?.success() {
            let words = format!("{} could not unpack it to its end", self.program);
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(got)
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn buffered<R: Read>(source: R) -> BufReader<R> {
    BufReader::with_capacity(PACKED_BUFFER, source)
}

/// The largest window that is unpacked, as `zstd -20` makes it: memory stays bounded.
const MOST_WINDOW: u64 = 32 << 20;
/// What the shortest header has: magic number, descriptor, window or size.
const LEAST_HEADER: usize = 6;
const SINGLE_SEGMENT: u8 = 0x20;
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184D_2A50..=0x184D_2A5F;

/// Reads what `source` holds unpacked.
pub struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    inside: bool,
}

impl<R: BufRead> Frames<R> {
    /// A reader of the frames from here on.
    pub fn new(source: R) -> Self {
        Self {
            source,
            decoder: FrameDecoder::new(),
            inside: false,
        }
    }

    /// Begins the next frame; false when there is none.
    fn begin(&mut self) -> io::Result<bool> {
        if self.source.fill_buf()?.is_empty() {
            return Ok(false);
        }
        let mut head = [0; LEAST_HEADER];
        self.source.read_exact(&mut head)?;
        let magic = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        if !SKIPPABLE.contains(&magic) && head[4] & SINGLE_SEGMENT == 0 {
            bounded(window(head[5]))?;
        }
        match self
            .decoder
            .reset(Cursor::new(head).chain(&mut self.source))
        {
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => self.skip(length.into())?,
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
            Ok(()) => {
                if head[4] & SINGLE_SEGMENT != 0 {
                    bounded(self.decoder.content_size())?;
                }
                self.inside = true;
            }
        }
        Ok(true)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        match io::copy(&mut (&mut self.source).take(length), &mut io::sink())? {
            skipped if skipped == length => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.inside {
                if self.begin()? {
                    continue;
                }
                return Ok(0);
            }
            let got = self.decoder.read(into)?;
            if got > 0 {
                return Ok(got);
            }
            if self.decoder.is_finished() {
                self.inside = false;
                continue;
            }
            self.decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

/// The window's size as the header's byte encodes it (RFC 8878, 3.1.1.1.2).
fn window(byte: u8) -> u64 {
    let base = 1_u64 << (10 + (byte >> 3));
    base + base / 8 * u64::from(byte & 7)
}

fn bounded(window: u64) -> io::Result<()> {
    if window <= MOST_WINDOW {
        return Ok(());
    }
    let words = format!(
        "needs a window of {} MiB, more than 32; unpack it with `zstd -dc --long=31 FILE |` and read `-`",
        window >> 20
    );
    Err(io::Error::new(io::ErrorKind::InvalidData, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_recognised_by_the_first_bytes() {
        let cases: [(&[u8], Packing); 9] = [
            (b"", Packing::Plain),
            (b"# Ti", Packing::Plain),
            (b"\x1f\x8b\x08\x00", Packing::Gz),
            (b"\x28\xb5\x2f\xfd", Packing::Zst),
            (b"\x5e\x2a\x4d\x18", Packing::Zst),
            (b"\x1f", Packing::Plain),
            (b"\xfd7zXZ\x00", Packing::Xz),
            (b"BZh91AY&SY", Packing::Bz2),
            (b"BZh", Packing::Plain),
        ];
        for (start, want) in cases {
            assert_eq!(Packing::of(start), want, "{start:?}");
        }
    }

    /// `hello\n`, by `zstd --no-check`.
    const HELLO: &[u8] = b"\x28\xb5\x2f\xfd\x20\x06\x31\x00\x00hello\n";

    fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        Frames::new(bytes).read_to_end(&mut found).map(|_| found)
    }

    #[test]
    fn frames_follow_one_another() {
        let skippable = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc";
        let all = [HELLO, skippable, HELLO].concat();
        assert_eq!(unpack(&all).unwrap(), b"hello\nhello\n");
        assert_eq!(unpack(b"").unwrap(), b"");
    }

    #[test]
    fn a_torn_or_foreign_tail_is_an_error() {
        for cut in 1..HELLO.len() {
            assert!(unpack(&HELLO[..cut]).is_err(), "{cut}");
        }
        assert!(unpack(&[HELLO, b"no frame"].concat()).is_err());
    }

    #[test]
    fn a_huge_window_is_refused_before_it_is_made() {
        let windowed = b"\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00";
        assert!(unpack(windowed).unwrap_err().to_string().contains("window"));
        let single = b"\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00";
        assert!(unpack(single).is_err());
    }
}
