//! What stands between events: blank lines, a server's banner, and bytes that make no sense.

use memchr::{memchr, memchr_iter};

use super::behind::{is_banner, is_of_banner};
use super::result::Oddities;

/// What became of the text's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes are done with.
    Done(usize),
    /// More bytes are needed.
    NotYet,
}

/// How much of a line is looked at.
const LINE: usize = 1024;

/// Passes over what is no event.
#[derive(Debug, Default)]
pub(super) struct Junk {
    /// The line goes on.
    pub within: bool,
    /// A server's banner went by.
    pub banner: bool,
}

impl Junk {
    /// Passes over blanks or one line.
    #[cold]
    pub fn pass(&mut self, text: &[u8], last: bool, oddities: &mut Oddities) -> Step {
        if self.within {
            return self.pass_line(text, oddities);
        }
        let blank = |byte: &&u8| matches!(byte, b'\n' | b'\r' | 0);
        let blanks = text.iter().take_while(blank).count();
        if blanks > 0 {
            oddities.unreadable_bytes += memchr_iter(0, &text[..blanks]).count() as u64;
            return Step::Done(blanks);
        }
        let line = &text[..text.len().min(LINE)];
        let newline = memchr(b'\n', line);
        if newline.is_none() && !last && line.len() < LINE {
            return Step::NotYet;
        }
        let line = &line[..newline.unwrap_or(line.len())];
        let banner = is_banner(line);
        self.banner |= banner;
        match newline {
            Some(newline) if banner || is_of_banner(line) => Step::Done(newline + 1),
            _ => self.pass_line(text, oddities),
        }
    }

    /// Passes over a line that belongs to no event.
    #[cold]
    pub fn pass_line(&mut self, text: &[u8], oddities: &mut Oddities) -> Step {
        let newline = memchr(b'\n', text);
        let end = newline.map_or(text.len(), |newline| newline + 1);
        oddities.unreadable_bytes += end as u64;
        self.within = newline.is_none();
        Step::Done(end)
    }
}
