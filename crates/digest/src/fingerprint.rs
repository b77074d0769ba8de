//! What makes statements one class: their text without literals, comments, case and spacing.
//!
//! The rules are those of pt-query-digest where these are right; `docs/reference/digest.md` lists
//! the differences.  Digits within names stay.

use md5::{Digest as _, Md5};

use super::fingerprint_pt;
use super::fingerprint_text::{
    call, collapse_unions, first_tuple_only, one_limit, without_asc, Text,
};
use super::piece::{
    block_comment, comment_starts, dashes, in_name, line_end, list, list_before, names_chunk,
    number, quoted, NoList,
};

/// A fingerprint and the number by which pt-query-digest and PMM know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub text: Vec<u8>,
    /// The last and the first half of its MD5.
    pub id: u64,
    pub id_high: u64,
}

impl Fingerprint {
    /// That of a text which is one already.
    pub fn of(text: Vec<u8>) -> Self {
        let sum: [u8; 16] = Md5::digest(&text).into();
        let half = |bytes: &[u8]| bytes.iter().fold(0, |id, byte| id << 8 | u64::from(*byte));
        let (id_high, id) = (half(&sum[..8]), half(&sum[8..]));
        Self { text, id, id_high }
    }
}

/// The fingerprint of a statement, which is without its `;`.
pub(super) fn fingerprint(statement: &[u8], compat_pt: bool) -> Fingerprint {
    let text = if compat_pt {
        fingerprint_pt::text(statement)
    } else {
        text(statement)
    };
    Fingerprint::of(text)
}

/// A statement, or the start of one, with `?` for each literal.
pub(super) fn redacted(statement: &[u8]) -> Vec<u8> {
    if statement.starts_with(b"administrator command: ") {
        return statement.to_vec();
    }
    masked(statement).unwrap_or_else(|| b"percona-toolkit".to_vec())
}

/// What the statements of a class have in common.
fn text(statement: &[u8]) -> Vec<u8> {
    if statement.starts_with(b"administrator command: ") {
        return statement.to_vec();
    }
    if statement.starts_with(b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `") {
        return b"mysqldump".to_vec();
    }
    let Some(mut text) = masked(statement) else {
        return b"percona-toolkit".to_vec();
    };
    if let Some(called) = call(&text) {
        text.truncate(called);
        return text;
    }
    if text
        .strip_prefix(b"use ")
        .is_some_and(|name| !name.contains(&b' '))
    {
        return b"use ?".to_vec();
    }
    first_tuple_only(&mut text);
    let text = collapse_unions(text);
    without_asc(one_limit(text))
}

/// The statement with `?` for each literal, in lower case, with single spaces; none if it is one
/// of pt-table-checksum's.
fn masked(statement: &[u8]) -> Option<Vec<u8>> {
    let mut out = Text::new(statement.len());
    let mut at = 0;
    while let Some(byte) = statement.get(at) {
        at = match *byte {
            b'0'..=b'9' => match number(statement, at) {
                Some(end) => {
                    out.number();
                    end
                }
                None => name(statement, at, &mut out),
            },
            byte if in_name(byte) => name(statement, at, &mut out),
            quote @ (b'\'' | b'"') => {
                out.string();
                quoted(statement, at + 1, quote, |_| false).unwrap_or(statement.len())
            }
            b'`' => {
                let end = quoted(statement, at + 1, b'`', |_| false).unwrap_or(statement.len());
                out.raw(&statement[at..end]);
                end
            }
            b'(' => parenthesis(statement, at, &mut out),
            b'/' if comment_starts(statement, at) => comment(statement, at, &mut out)?,
            b'-' if dashes(statement, at) => line_end(statement, at).unwrap_or(statement.len()),
            b'#' => line_end(statement, at).unwrap_or(statement.len()),
            b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c => {
                out.space();
                at + 1
            }
            other => {
                out.raw(&[other]);
                at + 1
            }
        };
    }
    Some(out.done())
}

/// Behind a comment; none if it is one of pt-table-checksum's.
fn comment(statement: &[u8], at: usize, out: &mut Text) -> Option<usize> {
    let end = block_comment(statement, at + 2, |_| false).unwrap_or(statement.len());
    out.space();
    (!names_chunk(&statement[at..end])).then_some(end)
}

fn name(statement: &[u8], at: usize, out: &mut Text) -> usize {
    let end = at
        + statement[at..]
            .iter()
            .take_while(|byte| in_name(**byte))
            .count();
    let word = &statement[at..end];
    let is = |known: &[u8]| word.eq_ignore_ascii_case(known);
    if is(b"null") || is(b"true") || is(b"false") {
        out.raw(b"?");
    } else if !((is(b"x") || is(b"b")) && statement.get(end) == Some(&b'\'')) {
        out.raw(word);
    }
    end
}

fn parenthesis(statement: &[u8], at: usize, out: &mut Text) -> usize {
    let Some(kind) = list_before(statement, at) else {
        out.raw(b"(");
        return at + 1;
    };
    let end = match list(statement, at, kind) {
        Ok(end) => end,
        Err(NoList::Open) => statement.len(),
        Err(NoList::Other) => {
            out.raw(b"(");
            return at + 1;
        }
    };
    out.list();
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(statement: &str) -> String {
        String::from_utf8(fingerprint(statement.as_bytes(), false).text).unwrap()
    }

    #[test]
    fn an_id_is_the_end_of_the_md5() {
        // The MD5 of `select ?` ends with these digits.
        let found = fingerprint(b"SELECT 1", false);
        assert_eq!(
            (found.text.as_slice(), format!("{:016X}", found.id)),
            (&b"select ?"[..], ID.into())
        );
    }

    const ID: &str = "16219655761820A2";

    #[test]
    fn literals_comments_case_and_spacing_do_not_matter() {
        for (statement, want) in [
            (
                "SELECT  c\n FROM sbtest1 WHERE id=5",
                "select c from sbtest1 where id=?",
            ),
            (
                "select 'a''b', \"c\", 1.5e3, 0xff, x'00', .5",
                "select ?, ?, ?, ?, ?, ?",
            ),
            ("select a -- b's\n, /* c */ d # e", "select a , d"),
            ("select null, TRUE", "select ?, ?"),
            ("select 1 limit 5, 10", "select ? limit ?"),
            ("select 1 limit 5 offset 10", "select ? limit ?"),
            ("", ""),
        ] {
            assert_eq!(of(statement), want);
        }
    }

    #[test]
    fn what_repeats_is_there_once() {
        for (statement, want) in [
            (
                "select a from t where b IN ( 1,2, 'c')",
                "select a from t where b in(?+)",
            ),
            (
                "select a from t where b in (select 1)",
                "select a from t where b in (select ?)",
            ),
            (
                "insert into t values (1,'a'),(2,'b')",
                "insert into t values(?+)",
            ),
            (
                "insert into t values (now(), 1), (now(), 2)",
                "insert into t values (now(), ?)",
            ),
            (
                "insert into t values (now()), (now()) on duplicate key update a=1",
                "insert into t values (now()) on duplicate key update a=?",
            ),
            (
                "select a from t order by a ASC, ascii asc",
                "select a from t order by a, ascii",
            ),
            (
                "select 1 union select 2 union select 3",
                "select ? /*repeat union*/",
            ),
        ] {
            assert_eq!(of(statement), want);
        }
    }

    #[test]
    fn some_statements_have_a_name_only() {
        for (statement, want) in [
            ("call Shop.Buy3 (1, 2)", "call shop.buy3"),
            ("use `a`", "use ?"),
            ("administrator command: Quit", "administrator command: Quit"),
            ("SELECT /*!40001 SQL_NO_CACHE */ * FROM `t`", "mysqldump"),
            ("select a/*b.c:1/2*/", "percona-toolkit"),
        ] {
            assert_eq!(of(statement), want);
        }
    }

    #[test]
    fn a_sign_is_part_of_a_number_where_it_is_no_operator() {
        assert_eq!(
            of("select a-1, -1, a - 1 from t where b=-1 and c in (-1) and d > - 1"),
            "select a-?, ?, a - ? from t where b=? and c in(?+) and d > - ?"
        );
        assert_eq!(
            of("select a from t where b between -1 and +2 limit 1"),
            "select a from t where b between ? and ? limit ?"
        );
    }

    #[test]
    fn a_text_cut_within_a_list_still_has_that_list() {
        assert_eq!(
            of("select a from t where b in (1, 2, 'c"),
            "select a from t where b in(?+)"
        );
        assert_eq!(
            of("insert into t values (1), (2, 'c"),
            "insert into t values(?+)"
        );
    }
}
