//! The files of /proc and /sys: where they are, held open, read again, their words and numbers.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use memchr::memchr_iter;

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
    /// Those of the read: a process that is gone is reported here.
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

/// A file that is held open, once it exists.
#[derive(Debug)]
pub struct OpenFile {
    path: PathBuf,
    file: Option<File>,
}

impl OpenFile {
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

/// The root of what is read: `/`, but for a recorded host.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// A root with `proc` and `sys` in it.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// A path, absolute or not, below this root.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Clock ticks in a second of /proc's CPU times.
#[must_use]
pub fn clock_ticks() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Bytes of a page.
#[must_use]
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// The scale of a value counted in clock ticks, in seconds.
#[must_use]
pub fn tick_seconds() -> f64 {
    f64::from(u32::try_from(clock_ticks()).unwrap_or(100)).recip()
}

/// The scale of a value counted in pages, in bytes.
#[must_use]
pub fn page_bytes() -> f64 {
    f64::from(u32::try_from(page_size()).unwrap_or(4096))
}

/// The lines of a text, without their ends; a last line without an end is one too.
pub fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut from = 0;
    memchr_iter(b'\n', text)
        .chain(std::iter::once(text.len()))
        .map(move |to| {
            let line = &text[from.min(to)..to];
            from = to + 1;
            line
        })
        .filter(|line| !line.is_empty())
}

/// The words of a line, parted by blanks and tabs.
#[derive(Clone, Debug)]
pub struct Words<'a>(pub &'a [u8]);

impl Words<'_> {
    /// The next word as a number.
    pub fn number(&mut self) -> Option<i64> {
        number(self.next()?)
    }

    /// The number after `skipped` words.
    pub fn nth_number(&mut self, skipped: usize) -> Option<i64> {
        number(self.nth(skipped)?)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n');
        let from = self.0.iter().position(|byte| !blank(byte))?;
        let rest = &self.0[from..];
        let to = rest.iter().position(blank).unwrap_or(rest.len());
        self.0 = &rest[to..];
        Some(&rest[..to])
    }
}

/// An integer, with a sign or not; one beyond 64 bits wraps, as the kernel's counters do.
#[must_use]
pub fn number(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, word),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
    }
    Some(if negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// A number with `places` digits after its point, as an integer of its last place.
#[must_use]
pub fn decimal(word: &[u8], places: usize) -> Option<i64> {
    let point = word
        .iter()
        .position(|byte| *byte == b'.')
        .unwrap_or(word.len());
    let mut value = number(&word[..point])?;
    let digits = word.get(point + 1..).unwrap_or_default();
    for place in 0..places {
        let digit = digits.get(place).map_or(0, |byte| byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
    }
    Some(value)
}

/// A number of base 16.
#[must_use]
pub fn hexadecimal(word: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(word).ok()?;
    i64::from_str_radix(text, 16).ok()
}

/// A name as text; what is not UTF-8 is replaced.
#[must_use]
pub fn name(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_words_are_what_is_between_blanks() {
        let text = b"a  b\tc\n\nd 12\nlast";
        let all: Vec<Vec<&[u8]>> = lines(text).map(|line| Words(line).collect()).collect();
        assert_eq!(
            all,
            [
                vec![&b"a"[..], b"b", b"c"],
                vec![b"d", b"12"],
                vec![b"last"]
            ]
        );
        assert_eq!(lines(b"").count() + lines(b"\n").count(), 0);
    }

    #[test]
    fn numbers_are_integers_or_none() {
        assert_eq!(number(b"42"), Some(42));
        assert_eq!(number(b"-1"), Some(-1));
        assert_eq!(number(b"18446744073709551615"), Some(-1));
        for wrong in [&b""[..], b"-", b"1.5", b"0x1", b"max"] {
            assert_eq!(number(wrong), None);
        }
        assert_eq!(decimal(b"12.34", 2), Some(1234));
        assert_eq!(decimal(b"7", 2), Some(700));
        assert_eq!(decimal(b"7.x", 2), None);
        assert_eq!(hexadecimal(b"0000841e"), Some(0x841e));
    }
}
