//! The lines between a header and its statement.

use memchr::memchr;

use super::behind::{after, After};

/// What the server tells before a statement: the database, if it is another one than before, and
/// the time at which the statement began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prelude<'a> {
    pub database: Option<&'a [u8]>,
    pub began_us: Option<i64>,
    /// Where the statement starts.
    pub end: usize,
}

/// Enough to see the line that almost always comes.
const AHEAD: usize = 32;
/// More than any line of a prelude has.
const LONGEST: usize = 1024;

/// The prelude that starts at `at`; none if more bytes are needed.
#[inline]
pub(super) fn prelude(text: &[u8], at: usize, last: bool) -> Option<Prelude<'_>> {
    let mut found = Prelude {
        end: at,
        ..Prelude::default()
    };
    loop {
        let rest = &text[found.end..];
        if rest.len() < AHEAD && !last {
            return None;
        }
        if let Some((began_us, len)) = timestamp(rest) {
            found.began_us = Some(began_us);
            found.end += len;
            continue;
        }
        match found.other_line(text, last) {
            Line::Taken => {}
            Line::Statement => return Some(found),
            Line::NotYet => return None,
        }
    }
}

/// What a line is that may be one of the prelude.
enum Line {
    Taken,
    Statement,
    NotYet,
}

impl<'a> Prelude<'a> {
    /// Takes a line with a database, or with more than the time.
    #[inline]
    fn other_line(&mut self, text: &'a [u8], last: bool) -> Line {
        let rest = &text[self.end..];
        if !has_prelude_start(rest) {
            return Line::Statement;
        }
        let line = &rest[..rest.len().min(LONGEST)];
        let Some(newline) = memchr(b'\n', line) else {
            let all = line.len() == LONGEST || last;
            return if all { Line::Statement } else { Line::NotYet };
        };
        let line = line[..newline].trim_ascii_end();
        let Some(line) = line.strip_suffix(b";") else {
            return Line::Statement;
        };
        if line[0] | 0x20 == b's' {
            if !assignments(&line[4..], &mut self.began_us) {
                return Line::Statement;
            }
        } else if self.database.is_some() || self.began_us.is_some() {
            return Line::Statement;
        } else {
            match after(text, self.end + line.len(), last) {
                After::Text => self.database = Some(unquoted(&line[4..])),
                After::NotYet => return Line::NotYet,
                After::Event(_) => return Line::Statement,
            }
        }
        self.end += newline + 1;
        Line::Taken
    }
}

#[inline]
fn has_prelude_start(rest: &[u8]) -> bool {
    let starts = [&b"use "[..], b"set insert_id=", b"set last_insert_id="];
    rest.get(3) == Some(&b' ')
        && starts.iter().any(|start| {
            rest.get(..start.len())
                .is_some_and(|found| found.eq_ignore_ascii_case(start))
        })
}

/// The time of a line `SET timestamp=1795200082;`, and its length with the newline.
#[inline]
fn timestamp(rest: &[u8]) -> Option<(i64, usize)> {
    let digits = rest.strip_prefix(b"SET timestamp=")?;
    let (us, len) = seconds(digits)?;
    let end = 14 + len;
    match rest.get(end..)? {
        [b';', b'\n', ..] => Some((us, end + 2)),
        [b';', b'\r', b'\n', ..] => Some((us, end + 3)),
        [b';'] => Some((us, end + 1)),
        _ => None,
    }
}

/// Seconds with or without a fraction, in microseconds, and how long they are.
fn seconds(text: &[u8]) -> Option<(i64, usize)> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > 12 {
        return None;
    }
    let mut us = text[..digits]
        .iter()
        .fold(0, |us, digit| us * 10 + i64::from(digit - b'0'));
    let mut len = digits;
    let mut unit = 1_000_000;
    us *= unit;
    if text.get(len) == Some(&b'.') {
        len += 1;
        while let Some(digit) = text.get(len).filter(|byte| byte.is_ascii_digit()) {
            unit /= 10;
            us += i64::from(digit - b'0') * unit;
            len += 1;
        }
    }
    Some((us, len))
}

/// Takes the time from `last_insert_id=5,insert_id=7,timestamp=1795200082`, if there is one; false
/// if this is something else.
fn assignments(line: &[u8], began_us: &mut Option<i64>) -> bool {
    line.split(|byte| *byte == b',').all(|assignment| {
        let Some(equals) = memchr(b'=', assignment) else {
            return false;
        };
        let (name, value) = (&assignment[..equals], &assignment[equals + 1..]);
        match seconds(value) {
            Some((us, len)) if name == b"timestamp" && len == value.len() => *began_us = Some(us),
            _ => return name == b"insert_id" || name == b"last_insert_id",
        }
        true
    })
}

fn unquoted(name: &[u8]) -> &[u8] {
    let name = name.trim_ascii();
    name.strip_prefix(b"`")
        .and_then(|name| name.strip_suffix(b"`"))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> (Option<&str>, Option<i64>, &str) {
        let found = prelude(text.as_bytes(), 0, true).unwrap();
        let database = found
            .database
            .map(|name| std::str::from_utf8(name).unwrap());
        (database, found.began_us, &text[found.end..])
    }

    #[test]
    fn a_prelude_is_no_part_of_the_statement() {
        assert_eq!(
            told("SET timestamp=5;\nselect 1;"),
            (None, Some(5_000_000), "select 1;")
        );
        assert_eq!(
            told("SET timestamp=5.25;\r\nx"),
            (None, Some(5_250_000), "x")
        );
        assert_eq!(
            told("USE `a`;\nSET timestamp=5;\nx;"),
            (Some("a"), Some(5_000_000), "x;")
        );
        assert_eq!(
            told("SET last_insert_id=1,insert_id=2,timestamp=3;\nx"),
            (None, Some(3_000_000), "x")
        );
        assert_eq!(told("SET insert_id=2;\nx"), (None, None, "x"));
    }

    #[test]
    fn a_statement_that_looks_like_a_prelude_is_one() {
        assert_eq!(told("use a;"), (None, None, "use a;"));
        assert_eq!(
            told("use a;\n# User@Host: x[x] @ y []\n").2,
            "use a;\n# User@Host: x[x] @ y []\n"
        );
        assert_eq!(
            told("SET timestamp=1;\nuse a;\nx;"),
            (None, Some(1_000_000), "use a;\nx;")
        );
        assert_eq!(told("SET NAMES utf8;\n"), (None, None, "SET NAMES utf8;\n"));
        assert_eq!(told("users"), (None, None, "users"));
    }
}
