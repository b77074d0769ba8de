//! The lines of a header around its attributes: when, by whom, in which database.

use memchr::{memchr, memmem};

use super::behind::{after, After};
use super::names::{Names, NONE};
use super::time::{Clock, Stamp};

/// When and by whom.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head {
    pub stamp: Option<Stamp>,
    pub user: u32,
    pub host: u32,
    /// Where the attributes start.
    pub end: usize,
}

/// Reads heads, and remembers the last since the next is much like it.
#[derive(Debug, Default)]
pub(super) struct Heads {
    clock: Clock,
    account: Vec<u8>,
    user: u32,
    host: u32,
}

const TIME: &[u8] = b"# Time: ";
const ACCOUNT: &[u8] = b"# User@Host: ";
/// Enough to recognise what a line is, and to see the line that almost always comes.
const AHEAD: usize = 32;

impl Heads {
    /// The head of the header that starts `text`; none if more bytes are needed.
    #[inline]
    pub fn read(&mut self, text: &[u8], last: bool, names: &mut Names) -> Option<Head> {
        let mut head = Head {
            user: NONE,
            host: NONE,
            ..Head::default()
        };
        while text[head.end..].starts_with(TIME) {
            let start = head.end + TIME.len();
            let newline = match memchr(b'\n', &text[start..]) {
                Some(newline) => start + newline,
                None if last => text.len(),
                None => return None,
            };
            let line = &text[start..newline];
            let (stamp, used) = self
                .clock
                .read(line)
                .map_or((None, 0), |(stamp, used)| (Some(stamp), used));
            head.stamp = stamp;
            head.end = (newline + 1).min(text.len());
            if used + 2 < line.len() {
                if let Some(account) = memmem::find(line, ACCOUNT) {
                    head.end = start + account;
                }
            }
        }
        if text.len() - head.end < AHEAD && !last {
            return None;
        }
        if text[head.end..].starts_with(ACCOUNT) {
            self.account(text, &mut head, last, names)?;
        }
        Some(head)
    }

    #[inline]
    fn account(
        &mut self,
        text: &[u8],
        head: &mut Head,
        last: bool,
        names: &mut Names,
    ) -> Option<()> {
        let rest = &text[head.end..];
        let known = self.account.len();
        let same = known > 0
            && rest.starts_with(&self.account)
            && rest.get(known).is_some_and(|byte| *byte <= b' ');
        if !same {
            let line = match memchr(b'\n', rest) {
                Some(newline) => &rest[..newline],
                None if last => rest,
                None => return None,
            };
            self.learn(line.strip_suffix(b"\r").unwrap_or(line), names);
        }
        (head.user, head.host) = (self.user, self.host);
        head.end += self.account.len();
        Some(())
    }

    /// Takes a line such as `# User@Host: root[root] @ localhost [127.0.0.1]  Id: 7` apart.
    fn learn(&mut self, line: &[u8], names: &mut Names) {
        let account = &line[ACCOUNT.len()..];
        let at = memmem::find(account, b" @ ").unwrap_or(account.len());
        let place = account.get(at + 3..).unwrap_or_default();
        let (host, address, behind) = bracketed(place);
        let (user, inner, _) = bracketed(&account[..at]);
        self.user = names.number(if user.is_empty() { inner } else { user });
        self.host = names.number(if host.is_empty() { address } else { host });
        let end = line.len() - place.len() + behind;
        self.account.clear();
        self.account
            .extend_from_slice(&line[..if at == account.len() { line.len() } else { end }]);
    }
}

/// What stands before a pair of brackets, what is in it, and where it ends.
fn bracketed(text: &[u8]) -> (&[u8], &[u8], usize) {
    let Some(open) = memchr(b'[', text) else {
        let word = text
            .iter()
            .position(|byte| *byte <= b' ')
            .unwrap_or(text.len());
        return (text[..word].trim_ascii(), b"", word);
    };
    let close = memchr(b']', &text[open..]).map_or(text.len(), |close| open + close);
    (
        text[..open].trim_ascii(),
        &text[open + 1..close.max(open + 1)],
        (close + 1).min(text.len()),
    )
}

/// What the server writes before a statement: the database, if it is another one than before, and
/// the time at which the statement began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Prelude<'a> {
    pub database: Option<&'a [u8]>,
    pub began_us: Option<i64>,
    /// Where the statement starts.
    pub end: usize,
}

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

    fn head(text: &str) -> (Option<Stamp>, String, String, usize) {
        let mut names = Names::default();
        let mut heads = Heads::default();
        let head = heads.read(text.as_bytes(), true, &mut names).unwrap();
        let again = heads.read(text.as_bytes(), true, &mut names).unwrap();
        assert_eq!(
            (head.user, head.host, head.end),
            (again.user, again.host, again.end)
        );
        (
            head.stamp,
            names.text(head.user).to_string(),
            names.text(head.host).to_string(),
            head.end,
        )
    }

    #[test]
    fn accounts_of_every_kind() {
        for (line, user, host) in [
            ("root[root] @ localhost []", "root", "localhost"),
            ("root[root] @  [10.1.2.3]", "root", "10.1.2.3"),
            ("app[app] @ web-1 [10.1.2.3]", "app", "web-1"),
            ("[SQL_SLAVE] @  []", "SQL_SLAVE", ""),
            ("a b[a b] @ x []", "a b", "x"),
            ("meow[meow] @ [1.2.3.4]:5 ", "meow", "1.2.3.4"),
            ("nothing", "nothing", ""),
        ] {
            let (_, got_user, got_host, _) =
                head(&format!("# User@Host: {line}\n# Query_time: 1\n"));
            assert_eq!(
                (got_user.as_str(), got_host.as_str()),
                (user, host),
                "{line}"
            );
        }
        let text = "# User@Host: root[root] @ localhost []  Id:    11\n# Query_time: 1\n";
        assert_eq!(head(text).3, 38);
    }

    #[test]
    fn a_time_may_share_its_line_with_the_account() {
        let text = "# Time: 071015 21:43:52 # User@Host: a[b] @ c []\n# Query_time: 1\n";
        let (stamp, user, ..) = head(text);
        assert_eq!(
            (stamp, user.as_str()),
            (Some(Stamp::Local(1_192_484_632_000_000)), "a")
        );
        assert_eq!(head("# Time: garbled\n# User@Host: a[b] @ c []\n").0, None);
    }

    fn parsed(text: &str) -> (Option<&str>, Option<i64>, &str) {
        let found = prelude(text.as_bytes(), 0, true).unwrap();
        let database = found
            .database
            .map(|name| std::str::from_utf8(name).unwrap());
        (database, found.began_us, &text[found.end..])
    }

    #[test]
    fn a_prelude_is_no_part_of_the_statement() {
        assert_eq!(
            parsed("SET timestamp=5;\nselect 1;"),
            (None, Some(5_000_000), "select 1;")
        );
        assert_eq!(
            parsed("SET timestamp=5.25;\r\nx"),
            (None, Some(5_250_000), "x")
        );
        assert_eq!(
            parsed("USE `a`;\nSET timestamp=5;\nx;"),
            (Some("a"), Some(5_000_000), "x;")
        );
        assert_eq!(
            parsed("SET last_insert_id=1,insert_id=2,timestamp=3;\nx"),
            (None, Some(3_000_000), "x")
        );
        assert_eq!(parsed("SET insert_id=2;\nx"), (None, None, "x"));
    }

    #[test]
    fn a_statement_that_looks_like_a_prelude_is_one() {
        assert_eq!(parsed("use a;"), (None, None, "use a;"));
        assert_eq!(
            parsed("use a;\n# User@Host: x[x] @ y []\n").2,
            "use a;\n# User@Host: x[x] @ y []\n"
        );
        assert_eq!(
            parsed("SET timestamp=1;\nuse a;\nx;"),
            (None, Some(1_000_000), "use a;\nx;")
        );
        assert_eq!(
            parsed("SET NAMES utf8;\n"),
            (None, None, "SET NAMES utf8;\n")
        );
        assert_eq!(parsed("users"), (None, None, "users"));
    }
}
