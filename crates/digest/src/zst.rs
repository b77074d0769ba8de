//! Zstandard as a stream: any number of frames, one after another, within a bounded window.

use std::io::{self, BufRead, Cursor, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

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

/// The window's size as the header's byte says it (RFC 8878, 3.1.1.1.2).
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
