//! Where a statement ends; headers inside a statement are only text.
//!
//! The server writes `;` and a newline behind each statement, then the next header or its banner.
//! A header that stands elsewhere, in a literal or a comment, is taken for text: it is forged.  But
//! a statement can end inside of a literal, where the server died or the client sent nonsense.  So
//! when as many as `BELIEVED` headers were refused without a sound end in between, and all within
//! `REACH` bytes, or when the log ends first, the statement is cut at the first of them.

use memchr::{memchr, memchr2, memchr3, memrchr};

use super::behind::{after, banner_before, could_be_forged, After, BEFORE};
use super::piece::{comment_starts, dashes};

/// So many headers in one statement are not forged.
pub(super) const BELIEVED: usize = 16;
/// How far behind the first refused header the search goes before it is forgotten.
const REACH: usize = 4 << 20;
/// What must be there to see whether a line is a header.
const AHEAD: usize = 16;

/// What a search came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The statement's last byte is before `end`, the next event begins at `next`.
    End { end: usize, next: usize },
    /// The statement breaks off here: with a header that was refused, or with the log.
    Cut(usize),
    /// Not within these bytes.
    More,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    Statement,
    Quoted(u8),
    Block,
    Line,
}

/// A search that can go on when more bytes are there.
#[derive(Debug)]
pub(super) struct Ending {
    region: Region,
    at: usize,
    refused: Vec<usize>,
    forged: u64,
}

impl Ending {
    /// A search from `at` on.
    pub fn new(at: usize) -> Self {
        Self {
            region: Region::Statement,
            at,
            refused: Vec::new(),
            forged: 0,
        }
    }

    /// How many headers were taken for text.
    pub fn forged(&self) -> u64 {
        self.forged + self.refused.len() as u64
    }

    /// The first byte that the search still needs, for a look back.
    pub fn needs(&self) -> usize {
        let first = self.refused.first().unwrap_or(&self.at);
        self.at.min(*first).saturating_sub(BEFORE)
    }

    /// The first `bytes` of the text are gone.
    pub fn shift(&mut self, bytes: usize) {
        self.at -= bytes;
        for refused in &mut self.refused {
            *refused -= bytes;
        }
    }

    /// Continues the search; `last`: no more bytes follow.
    pub fn search(&mut self, text: &[u8], last: bool) -> Found {
        loop {
            let found = match self.region {
                Region::Statement => self.statement(text, last),
                Region::Quoted(quote) => self.literal(text, quote, last),
                Region::Block => self.block(text, last),
                Region::Line => self.line(text, last),
            };
            if self.refused.len() >= BELIEVED {
                return self.cut(text);
            }
            match found {
                None => {}
                Some(Found::More) => {
                    self.forget(text.len());
                    return if last { self.cut(text) } else { Found::More };
                }
                Some(found) => return found,
            }
        }
    }

    fn cut(&mut self, text: &[u8]) -> Found {
        let refused = self.refused.first().copied();
        self.refused.clear();
        let at = refused.map(|at| banner_before(text, at).unwrap_or(at));
        Found::Cut(at.unwrap_or(text.len()))
    }

    /// Goes on in the statement proper: none when a literal or a comment began.
    fn statement(&mut self, text: &[u8], last: bool) -> Option<Found> {
        loop {
            let at = special(text, self.at);
            self.at = at;
            let room = text.len() - at;
            if room == 0 || (room < 4 && !last) {
                return Some(Found::More);
            }
            match text[at] {
                b';' => match after(text, at, last) {
                    After::Event(next) => return Some(Found::End { end: at, next }),
                    After::NotYet => return Some(Found::More),
                    After::Text => self.at += 1,
                },
                quote @ (b'\'' | b'"' | b'`') => return self.enter(Region::Quoted(quote), at + 1),
                b'/' if comment_starts(text, at) => return self.enter(Region::Block, at + 2),
                b'-' if dashes(text, at) => return self.enter(Region::Line, at + 2),
                b'#' if at == 0 || text[at - 1] == b'\n' => {
                    if let Some(cut) = banner_before(text, at) {
                        self.forged += self.refused.len() as u64;
                        return Some(Found::Cut(cut));
                    }
                    if !self.look(text, at, last) {
                        return Some(Found::More);
                    }
                    return self.enter(Region::Line, at + 1);
                }
                b'#' => return self.enter(Region::Line, at + 1),
                _ => self.at += 1,
            }
        }
    }

    fn enter(&mut self, region: Region, at: usize) -> Option<Found> {
        self.region = region;
        self.at = at;
        None
    }

    fn literal(&mut self, text: &[u8], quote: u8, last: bool) -> Option<Found> {
        let escape = if quote == b'`' { b'`' } else { b'\\' };
        while self.refused.len() < BELIEVED {
            let Some(at) = memchr3(quote, escape, b'\n', &text[self.at..]).map(|i| self.at + i)
            else {
                self.at = text.len();
                return Some(Found::More);
            };
            // What comes next decides, so the search stays before it.
            self.at = at;
            if at + 1 == text.len() && !(last && text[at] == quote) {
                return Some(Found::More);
            }
            if text[at] == b'\n' {
                if !self.look(text, at + 1, last) {
                    return Some(Found::More);
                }
                self.at += 1;
            } else if text[at] != quote || text.get(at + 1) == Some(&quote) {
                self.at += 2;
            } else {
                return self.enter(Region::Statement, at + 1);
            }
        }
        None
    }

    fn block(&mut self, text: &[u8], last: bool) -> Option<Found> {
        while self.refused.len() < BELIEVED {
            let Some(at) = memchr2(b'*', b'\n', &text[self.at..]).map(|i| self.at + i) else {
                self.at = text.len();
                return Some(Found::More);
            };
            self.at = at;
            if at + 1 == text.len() || (text[at] == b'\n' && !self.look(text, at + 1, last)) {
                return Some(Found::More);
            }
            if text[at] == b'*' && text[at + 1] == b'/' {
                return self.enter(Region::Statement, at + 2);
            }
            self.at += 1;
        }
        None
    }

    /// Goes on to the end of a comment's line.  The server's `;` is part of such a comment.
    fn line(&mut self, text: &[u8], last: bool) -> Option<Found> {
        let newline = memchr(b'\n', &text[self.at..]).map(|i| self.at + i);
        if newline.is_none() && !last {
            self.at = self.at.max(text.len().saturating_sub(2));
            return Some(Found::More);
        }
        let end = newline.unwrap_or(text.len());
        let line = &text[self.at..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.ends_with(b";") {
            let at = self.at + line.len() - 1;
            match after(text, at, last) {
                After::Event(next) => return Some(Found::End { end: at, next }),
                After::NotYet => {
                    self.at = at;
                    return Some(Found::More);
                }
                After::Text => {}
            }
        }
        self.enter(Region::Statement, end)
    }

    /// Looks whether a header stands at the start of a line and, if so, refuses it; false if that
    /// cannot be seen yet.
    fn look(&mut self, text: &[u8], at: usize, last: bool) -> bool {
        let room = text.len() - at;
        if room < AHEAD && !last && (room == 0 || text[at] == b'#') {
            return false;
        }
        if could_be_forged(&text[at..]) && !follows_header(text, at) {
            self.forget(at);
            self.refused.push(at);
        }
        true
    }

    /// Takes headers too far before `at` for text, for good.
    fn forget(&mut self, at: usize) {
        let before = self.refused.len();
        self.refused.retain(|refused| at - refused <= REACH);
        self.forged += (before - self.refused.len()) as u64;
    }
}

/// Whether the line before the one at `at` is the first line of the same header.
fn follows_header(text: &[u8], at: usize) -> bool {
    let Some(newline) = at.checked_sub(1) else {
        return false;
    };
    let start = memrchr(b'\n', &text[..newline]).map_or(0, |before| before + 1);
    text[start..].starts_with(b"# Time: ")
}

const BLOCK: usize = 32;

/// The next byte from `at` on that can begin or end something; the text's length if there is none.
fn special(text: &[u8], mut at: usize) -> usize {
    while let Some(block) = text.get(at..at + BLOCK) {
        // Without a branch in it, the loop is turned into vector instructions.
        let found = block.iter().fold(0_u8, |found, byte| {
            let quote = *byte == b'\'' || *byte == b'"' || *byte == b'`';
            let comment = *byte == b'#' || *byte == b'-' || *byte == b'/';
            found | u8::from(quote || comment || *byte == b';')
        });
        if found != 0 {
            break;
        }
        at += BLOCK;
    }
    let is = |byte: &u8| matches!(byte, b'\'' | b'"' | b'`' | b'#' | b'-' | b'/' | b';');
    text[at..]
        .iter()
        .position(is)
        .map_or(text.len(), |i| at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Where statements end, in one piece and in two.
    const HEADER: &str = "# User@Host: a[a] @ b []\n# Query_time: 1\n";

    /// The end that is found, at once and in every two parts, and how many headers were refused.
    fn end(text: &str) -> (Found, u64) {
        let bytes = text.as_bytes();
        let mut complete = Ending::new(0);
        let found = complete.search(bytes, true);
        for cut in 0..bytes.len() {
            let mut parts = Ending::new(0);
            let first = parts.search(&bytes[..cut], false);
            let both = if first == Found::More {
                parts.search(bytes, true)
            } else {
                first
            };
            assert_eq!(
                (both, parts.forged()),
                (found, complete.forged()),
                "cut at {cut}: {text}"
            );
        }
        (found, complete.forged())
    }

    #[test]
    fn a_statement_ends_where_a_header_follows() {
        for statement in [
            "select 1",
            "select ';\n', \"a'b\"",
            "begin select 1;\nend",
            "a -- it's",
        ] {
            let text = format!("{statement};\n{HEADER}");
            let want = Found::End {
                end: statement.len(),
                next: statement.len() + 2,
            };
            assert_eq!(end(&text), (want, 0), "{statement}");
        }
    }

    #[test]
    fn a_statement_ends_with_the_log_and_before_a_banner() {
        assert_eq!(end("select 1;"), (Found::End { end: 8, next: 9 }, 0));
        assert_eq!(end("select 1;\r\n\n"), (Found::End { end: 8, next: 12 }, 0));
        let banner = "select 1;\n/usr/sbin/mysqld, Version: 8.0.33 (x). started with:\n";
        assert_eq!(end(banner), (Found::End { end: 8, next: 10 }, 0));
        assert_eq!(end("select 1"), (Found::Cut(8), 0));
    }

    #[test]
    fn a_banner_cuts_the_statement_before_it() {
        let banner =
            "/usr/sbin/mysqld, Version: 8 (x). started with:\nTcp port: 3306\nTime    Id Command\n";
        assert_eq!(
            end(&format!("select a fr{banner}{HEADER}")),
            (Found::Cut(11), 0)
        );
    }

    #[test]
    fn a_header_in_a_literal_or_comment_is_refused() {
        for (open, close) in [("'", "'"), ("\"", "\""), ("/*", "*/"), ("`", "`")] {
            let inner = format!("select {open};\n{HEADER}drop;\n{HEADER}{close}");
            let text = format!("{inner};\n{HEADER}");
            let (found, forged) = end(&text);
            assert_eq!(
                found,
                Found::End {
                    end: inner.len(),
                    next: inner.len() + 2
                },
                "{inner}"
            );
            assert_eq!(forged, 2);
        }
    }

    #[test]
    fn a_statement_that_broke_off_in_a_literal_is_cut() {
        let events = format!("{HEADER}select 'a';\n").repeat(BELIEVED + 3);
        let text = format!("select 'abc;\n{events}");
        assert_eq!(end(&text), (Found::Cut(13), 0));
        assert_eq!(
            end(&format!("select 'abc;\n{HEADER}select 1;\n")),
            (Found::Cut(13), 0)
        );
    }
}
