//! What can stand behind a statement: the next header, the banner of a server, junk, nothing.

use memchr::{memchr, memchr_iter, memmem};

use super::result::Oddities;

/// What is known of bytes that may be part of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    Yes,
    No,
    /// More bytes are needed to decide.
    NotYet,
}

/// The longest start of a header that has to be looked at.
const HEADER_START: usize = 16;

/// Whether an event's header starts here.
pub(super) fn header_starts(text: &[u8], last: bool) -> Known {
    const STARTS: [&[u8]; 5] = [
        b"# Time: ",
        b"# User@Host: ",
        b"# Thread_id: ",
        b"# Query_time: ",
        b"# Schema: ",
    ];
    if text.len() < HEADER_START && !last {
        return if text.is_empty() || text[0] == b'#' {
            Known::NotYet
        } else {
            Known::No
        };
    }
    if STARTS.iter().any(|start| text.starts_with(start)) {
        Known::Yes
    } else {
        Known::No
    }
}

/// Whether a line that starts here could be the first of a header that the server wrote.
pub(super) fn could_be_forged(text: &[u8]) -> bool {
    text.starts_with(b"# User@Host: ")
        || (text.starts_with(b"# Time: ") && text.get(8).is_some_and(u8::is_ascii_digit))
}

/// What stands behind a `;`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// An event that begins here, or the end of the log.
    Event(usize),
    Text,
    NotYet,
}

/// How much of a line is looked at to see whether it is the server's banner.
const BANNER: usize = 1024;

/// What stands behind the `;` at `at`, past blank lines and the zeros that a crash leaves.
#[inline]
pub(super) fn after(text: &[u8], at: usize, last: bool) -> After {
    let mut next = at + 1;
    if text.get(next) == Some(&b'\r') {
        next += 1;
    }
    if text.get(next).is_some_and(|byte| *byte != b'\n') {
        return After::Text;
    }
    while text
        .get(next)
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r' | 0))
    {
        next += 1;
    }
    let rest = &text[next.min(text.len())..];
    if rest.is_empty() {
        return if last {
            After::Event(text.len())
        } else {
            After::NotYet
        };
    }
    if rest[0] != b'#' {
        return banner(rest, last, next);
    }
    match header_starts(rest, last) {
        Known::Yes => After::Event(next),
        Known::No => unknown_lines(rest, last, next),
        Known::NotYet => After::NotYet,
    }
}

/// How far behind a statement a header is looked for past lines that no server is known to write.
const UNKNOWN: usize = 4096;

/// Lines that start with `#` belong to no statement if a header follows them, and none of them ends
/// a statement; the first of them is where the next event is looked for.
#[cold]
fn unknown_lines(rest: &[u8], last: bool, next: usize) -> After {
    let near = &rest[..rest.len().min(UNKNOWN)];
    let more = rest.len() < UNKNOWN && !last;
    let mut at = 0;
    while let Some(newline) = memchr(b'\n', &near[at..]) {
        let line = near[at..at + newline].trim_ascii_end();
        at += newline + 1;
        if !line.starts_with(b"#") || line.ends_with(b";") {
            return After::Text;
        }
        match header_starts(&near[at..], !more) {
            Known::Yes => return After::Event(next),
            Known::NotYet => return After::NotYet,
            Known::No => {}
        }
    }
    if more {
        After::NotYet
    } else {
        After::Text
    }
}

#[cold]
fn banner(rest: &[u8], last: bool, next: usize) -> After {
    let line = &rest[..rest.len().min(BANNER)];
    match memchr(b'\n', line) {
        Some(end) if is_banner(&line[..end]) => After::Event(next),
        None if line.len() < BANNER && !last => After::NotYet,
        _ => After::Text,
    }
}

/// Whether a line is the first of the three that a server writes when it opens its log.
pub(super) fn is_banner(line: &[u8]) -> bool {
    let version = memmem::find(line, b", Version: ");
    version.is_some_and(|at| memmem::find(&line[at..], b"started with:").is_some())
}

/// The most banners that are looked for, one behind the other.
const BANNERS: usize = 3;
/// How far before a header the banners can start.
pub(super) const BEFORE: usize = BANNERS * BANNER;

/// Where the banners start that end at `at`: behind a statement that the server could not write to
/// its end, so perhaps in the middle of a line.
pub(super) fn banner_before(text: &[u8], at: usize) -> Option<usize> {
    let mut start = one_banner_before(text, at)?;
    for _ in 1..BANNERS {
        start = one_banner_before(text, start).unwrap_or(start);
    }
    Some(start)
}

fn one_banner_before(text: &[u8], at: usize) -> Option<usize> {
    let before = &text[at.saturating_sub(BANNER)..at];
    let last = memmem::rfind(before, b"\nTime")?;
    let columns = &before[last + 1..];
    if memchr(b'\n', columns) != Some(columns.len() - 1) || !is_last_of_banner(columns) {
        return None;
    }
    let version = memmem::rfind(&before[..last], b", Version: ")?;
    let blank = before[..version].iter().rposition(|byte| *byte <= b' ');
    let start = blank.map_or(0, |blank| blank + 1);
    let path = memchr(b'/', &before[start..version]).unwrap_or(0);
    Some(at - before.len() + start + path)
}

/// Whether a line is one of the two that follow a banner's first.
pub(super) fn is_of_banner(line: &[u8]) -> bool {
    line.starts_with(b"Tcp port: ") || line.starts_with(b"TCP Port: ") || is_last_of_banner(line)
}

/// Whether a line has the names of the columns, which are set with spaces or with tabs.
fn is_last_of_banner(line: &[u8]) -> bool {
    let columns = line.strip_prefix(b"Time").unwrap_or_default();
    columns.trim_ascii_start().len() < columns.len()
        && columns.trim_ascii_start().starts_with(b"Id Command")
}

/// Whether a body starts so that it can only be a statement.
#[inline]
pub(super) fn is_plain(body: &[u8]) -> bool {
    match body {
        [b'#', ..] | [_, b':', ..] => false,
        [b'/', next, ..] => *next == b'*',
        [b'm', ..] => !starts_as_banner(body),
        _ => true,
    }
}

fn starts_as_banner(body: &[u8]) -> bool {
    body.starts_with(b"mysqld") || body.starts_with(b"mariadbd")
}

/// Whether the next event, the server's banner or the end of the log stands there.
pub(super) fn is_missing(body: &[u8], last: bool) -> Known {
    match body {
        [] if last => Known::Yes,
        [] => Known::NotYet,
        // The log may end within the header's next line.
        [b'#', ..] if breaks_off(body) && !is_command(body) && !last => Known::NotYet,
        [b'#', ..] if breaks_off(body) && !is_command(body) => Known::Yes,
        [b'#', ..] => header_starts(body, last),
        _ => is_server_start(body, last),
    }
}

/// How much of a line is looked at, and waited for.
const LINE: usize = 1024;

/// Whether no more is there than the start of a line.
pub(super) fn breaks_off(body: &[u8]) -> bool {
    body.len() < LINE && memchr(b'\n', body).is_none()
}

fn is_server_start(body: &[u8], last: bool) -> Known {
    let path = body[0] == b'/' || body.get(1) == Some(&b':');
    if !path && !starts_as_banner(body) {
        return Known::No;
    }
    let line = &body[..body.len().min(LINE)];
    match memchr(b'\n', line) {
        Some(newline) if is_banner(&line[..newline]) => Known::Yes,
        None if line.len() < LINE && !last => Known::NotYet,
        _ => Known::No,
    }
}

/// Whether an administrator command stands there, which has no statement.
pub(super) fn is_command(body: &[u8]) -> bool {
    body.starts_with(b"# administrator command: ")
}

/// What became of the text's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes are done with.
    Done(usize),
    /// More bytes are needed.
    NotYet,
}

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
