//! The lines of a header before its attributes: when, and by whom.

use memchr::{memchr, memmem};

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
/// Enough to tell what a line is.
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
}
