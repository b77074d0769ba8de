//! The pieces of a statement that are passed over: literals, comments, lists of literals.
//!
//! Both the quick look at a statement's shape and its fingerprint go by these, so that two
//! statements of one shape always have one fingerprint.

use memchr::{memchr, memchr2, memchr3};

use super::behind::could_be_forged;

/// Where the literal that began before `from` goes on behind its closing quote.
///
/// `on_line` gets every start of a line inside of it and returns whether to stop there.
#[inline]
pub(super) fn quoted(
    text: &[u8],
    mut from: usize,
    quote: u8,
    mut on_line: impl FnMut(usize) -> bool,
) -> Option<usize> {
    let escape = if quote == b'`' { b'`' } else { b'\\' };
    loop {
        let at = from + memchr3(quote, escape, b'\n', text.get(from..)?)?;
        match text[at] {
            b'\n' => {
                if on_line(at + 1) {
                    return None;
                }
                from = at + 1;
            }
            byte if byte == quote => {
                if text.get(at + 1) != Some(&quote) {
                    return Some(at + 1);
                }
                from = at + 2;
            }
            _ => from = at + 2,
        }
    }
}

/// Where a comment that began before `from` ends; `on_line` as for a literal.
pub(super) fn block_comment(
    text: &[u8],
    mut from: usize,
    mut on_line: impl FnMut(usize) -> bool,
) -> Option<usize> {
    loop {
        let at = from + memchr2(b'*', b'\n', text.get(from..)?)?;
        if text[at] == b'\n' && on_line(at + 1) {
            return None;
        }
        if text[at] == b'*' && text.get(at + 1)? == &b'/' {
            return Some(at + 2);
        }
        from = at + 1;
    }
}

/// Where the line ends that goes through `from`: at its newline.
#[inline]
pub(super) fn line_end(text: &[u8], from: usize) -> Option<usize> {
    memchr(b'\n', text.get(from..)?).map(|at| from + at)
}

/// Whether a comment to the end of the line starts with the `-` at `at`: the server wants a blank
/// behind two of them.
#[inline]
pub(super) fn dashes(text: &[u8], at: usize) -> bool {
    text.get(at + 1) == Some(&b'-') && text.get(at + 2).is_none_or(|byte| *byte <= b' ')
}

/// Whether the `/` at `at` begins a comment that is no code: `/*!` and `/*M!` hold code.
#[inline]
pub(super) fn comment_starts(text: &[u8], at: usize) -> bool {
    text.get(at + 1) == Some(&b'*')
        && text.get(at + 2) != Some(&b'!')
        && !text[at + 2..].starts_with(b"M!")
}

/// Whether a comment is pt-table-checksum's, which names a table and a chunk: `/*a.b:1/2*/`.
pub(super) fn names_chunk(comment: &[u8]) -> bool {
    let Some(inner) = comment
        .strip_prefix(b"/*")
        .and_then(|rest| rest.strip_suffix(b"*/"))
    else {
        return false;
    };
    let Some(colon) = memchr(b':', inner) else {
        return false;
    };
    let (table, chunk) = inner.split_at(colon);
    let word = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(|byte| in_name(*byte));
    let dot = memchr(b'.', table).is_some_and(|dot| word(&table[..dot]) && word(&table[dot + 1..]));
    dot && matches!(chunk, [b':', a, b'/', b] if a.is_ascii_digit() && b.is_ascii_digit())
}

/// Whether a byte can be part of a name.
#[inline]
pub(super) fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@' | 0x80..)
}

/// Where the number that starts with the digit at `at` ends; none if it is part of a name.
#[inline]
pub(super) fn number(text: &[u8], at: usize) -> Option<usize> {
    let mut end = digits(text, at);
    match text.get(end) {
        Some(b'x' | b'X') if end == at + 1 && text[at] == b'0' => {
            end += 1;
            end += text[end..]
                .iter()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count();
        }
        Some(b'b' | b'B') if end == at + 1 && text[at] == b'0' => end = digits(text, end + 1),
        Some(b'.') => end = exponent(text, digits(text, end + 1)),
        Some(b'e' | b'E') => end = exponent(text, end),
        _ => {}
    }
    match text.get(end) {
        Some(byte) if in_name(*byte) => None,
        _ => Some(end),
    }
}

#[inline]
fn digits(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

/// Where an exponent ends that may start at `at`.
fn exponent(text: &[u8], at: usize) -> usize {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return at;
    }
    let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
    let end = digits(text, at + 1 + sign);
    if end == at + 1 + sign {
        at
    } else {
        end
    }
}

/// Which list the parenthesis at `at` opens: the word before it is `in` or `values`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    In,
    Values,
}

/// The list that the parenthesis at `at` opens, if it is one.
#[inline]
pub(super) fn list_before(text: &[u8], at: usize) -> Option<List> {
    let mut end = at;
    while end > 0 && text[end - 1] <= b' ' {
        end -= 1;
    }
    let is = |word: &[u8]| {
        end >= word.len()
            && text[end - word.len()..end].eq_ignore_ascii_case(word)
            && (end == word.len() || !in_name(text[end - word.len() - 1]))
    };
    match text.get(end.wrapping_sub(1))? | 0x20 {
        b'n' if is(b"in") => Some(List::In),
        b's' if is(b"values") => Some(List::Values),
        b'e' if is(b"value") => Some(List::Values),
        _ => None,
    }
}

/// Why a list or literal is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoList {
    /// The text ends within it.
    Open,
    /// Something else than literals is in it.
    Other,
}

/// Where a list of nothing but literals ends that opened at `at`: behind its last parenthesis.
/// `in` has one list, `values` as many as follow one another; of these only the first is looked
/// into, as pt-query-digest does.
pub(super) fn list(text: &[u8], at: usize, kind: List) -> Result<usize, NoList> {
    let end = tuple(text, at)?;
    if kind == List::In || !comma_follows(text, end) {
        return Ok(end);
    }
    match rows(text, end) {
        Err(NoList::Other) => Ok(end),
        found => found,
    }
}

#[inline]
fn comma_follows(text: &[u8], at: usize) -> bool {
    text.get(blanks(text, at)) == Some(&b',')
}

/// How much is looked at in one go to see whether rows could end in it.
const ROWS: usize = 16;

/// Where rows of values end of which there are more from `at` on: behind a parenthesis without a
/// comma behind it.
fn rows(text: &[u8], mut at: usize) -> Result<usize, NoList> {
    let mut within = false;
    loop {
        while let Some(quotes) = text
            .get(at..=at + ROWS)
            .and_then(|block| block.try_into().ok())
            .and_then(quiet)
        {
            within ^= quotes % 2 == 1;
            at += ROWS;
        }
        let until = at + ROWS;
        if within {
            at = literal(text, at, b'\'')?;
            within = false;
        }
        while at < until {
            let byte = *text.get(at).ok_or(NoList::Open)?;
            at += 1;
            match byte {
                b')' if !comma_follows(text, at) => return Ok(at),
                b'\'' | b'"' => at = literal(text, at, byte)?,
                b'`' | b'#' | b';' => return Err(NoList::Other),
                b'-' if dashes(text, at - 1) => return Err(NoList::Other),
                b'/' if text.get(at) == Some(&b'*') => return Err(NoList::Other),
                _ => {}
            }
        }
    }
}

/// How many quotes there are, if nothing in the block but those and commas behind parentheses can
/// matter; the block's last byte is only looked at for the one before it.
#[inline]
fn quiet(block: &[u8; ROWS + 1]) -> Option<u8> {
    let (mut quotes, mut other) = (0_u8, 0_u8);
    // Without a branch in it, the loop is turned into vector instructions.
    for i in 0..ROWS {
        let (byte, next) = (block[i], block[i + 1]);
        quotes += u8::from(byte == b'\'');
        let quote = byte | 1 == b'#' || byte == b'`' || byte == b'\\';
        let end = (byte == b')' && next != b',') || byte == b';';
        let comment = byte == b'/' || (byte == b'-' && next == b'-');
        other |= u8::from(quote) | u8::from(end) | u8::from(comment);
    }
    (other == 0).then_some(quotes)
}

#[inline]
fn blanks(text: &[u8], mut at: usize) -> usize {
    while text
        .get(at)
        .is_some_and(|byte| matches!(byte, b' ' | b'\n' | b'\t' | b'\r'))
    {
        at += 1;
    }
    at
}

/// Where the parenthesis at `at` closes, if there are only literals, commas and parentheses in it.
fn tuple(text: &[u8], at: usize) -> Result<usize, NoList> {
    let mut depth = 0_usize;
    let mut i = at;
    loop {
        i = plain(text, i);
        match *text.get(i).ok_or(NoList::Open)? {
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return Ok(i + 1);
                }
            }
            quote @ (b'\'' | b'"') => {
                i = literal(text, i + 1, quote)?;
                continue;
            }
            b'-' if text.get(i + 1) == Some(&b'-') => return Err(NoList::Other),
            b'-' | b'+' | b'\t' | b'\r' | b'\n' | b'?' | b'.' => {}
            _ => {
                i = word(text, i)?;
                continue;
            }
        }
        i += 1;
    }
}

/// Where a literal goes on behind its closing quote; it is none if a header may be in it.
#[inline]
pub(super) fn literal(text: &[u8], from: usize, quote: u8) -> Result<usize, NoList> {
    let mut forged = false;
    let end = quoted(text, from, quote, |line| {
        forged = text.get(line) == Some(&b'#') && could_be_forged(&text[line..]);
        forged
    });
    end.ok_or(if forged { NoList::Other } else { NoList::Open })
}

const BLOCK: usize = 32;

/// The first byte from `at` on that is no digit, comma or space.
#[inline]
fn plain(text: &[u8], mut at: usize) -> usize {
    while let Some(block) = text.get(at..at + BLOCK) {
        // Without a branch in it, the loop is turned into vector instructions.
        let other = block.iter().fold(0_u8, |other, byte| {
            other | u8::from(byte.wrapping_sub(b'0') > 9 && *byte != b',' && *byte != b' ')
        });
        if other != 0 {
            break;
        }
        at += BLOCK;
    }
    while text
        .get(at)
        .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' '))
    {
        at += 1;
    }
    at
}

/// Where a word ends that may stand among literals: a constant, the mark of a kind of literal, or
/// what belongs to a number before it.
fn word(text: &[u8], at: usize) -> Result<usize, NoList> {
    let len = text[at..].iter().take_while(|byte| in_name(**byte)).count();
    let end = at + len;
    let word = &text[at..end];
    let marks = matches!(text.get(end), Some(b'\'' | b'"'));
    let constant = [&b"null"[..], b"true", b"false"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known));
    let mark = marks && (word.len() == 1 && b"xbnXBN".contains(&word[0]) || word.starts_with(b"_"));
    let starts = at > 0 && text[at - 1].is_ascii_digit();
    if len > 0 && (starts && tail(text, at, end) || !starts && (constant || mark)) {
        Ok(end)
    } else if len > 0 && end == text.len() {
        Err(NoList::Open)
    } else {
        Err(NoList::Other)
    }
}

/// Whether the word between `at` and `end` completes the number that ends at `at`.
fn tail(text: &[u8], at: usize, end: usize) -> bool {
    let mut start = at;
    while start > 0 && (text[start - 1].is_ascii_digit() || text[start - 1] == b'.') {
        start -= 1;
    }
    number(text, start).is_some_and(|behind| behind >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_close_where_the_server_closes_them() {
        let end = |text: &str| quoted(text.as_bytes(), 1, text.as_bytes()[0], |_| false);
        assert_eq!(end("'abc' x"), Some(5));
        assert_eq!(end("'a''b' x"), Some(6));
        assert_eq!(end(r"'a\'b' x"), Some(6));
        assert_eq!(end(r"'a\\' x"), Some(5));
        assert_eq!(end(r"`a\` x"), Some(4));
        assert_eq!(end("'abc"), None);
    }

    #[test]
    fn numbers_end_before_what_is_no_part_of_them() {
        let end = |text: &str| number(text.as_bytes(), 0);
        assert_eq!(end("123,"), Some(3));
        assert_eq!(end("1.50)"), Some(4));
        assert_eq!(end("1e-9 "), Some(4));
        assert_eq!(end("1.5e3;"), Some(5));
        assert_eq!(end("0xFFab "), Some(6));
        assert_eq!(end("0b01;"), Some(4));
        assert_eq!(end("1abc"), None);
        assert_eq!(end("12xf"), None);
        assert_eq!(end("1e"), None);
    }

    #[test]
    fn a_list_holds_literals_only() {
        let end = |text: &str, kind| list(text.as_bytes(), 0, kind).ok();
        assert_eq!(end("(1, 2,'a'',b',NULL) x", List::In), Some(19));
        assert_eq!(end("((1,2),(3,4)) x", List::In), Some(13));
        assert_eq!(end("(1),(2) x", List::In), Some(3));
        assert_eq!(end("(1), (2)\n,(-3.5e1) x", List::Values), Some(18));
        assert_eq!(end("(x'ff', _utf8'a', 0xff, ?) x", List::Values), Some(26));
        assert_eq!(end("(1, now()), (2)", List::Values), None);
        assert_eq!(end("(1, 2), (now(), 2) x", List::Values), Some(18));
        assert_eq!(end("(1, 2), (now(), ';') ; x", List::Values), Some(20));
        assert_eq!(end("(1, 2), (3; x", List::Values), Some(6));
        assert_eq!(end("(select 1)", List::In), None);
        assert_eq!(end("(1 -- 2)", List::In), None);
        assert_eq!(end("(1, a1)", List::In), None);
        assert_eq!(list(b"(1, 'a", 0, List::In), Err(NoList::Open));
    }

    #[test]
    fn rows_end_in_the_same_place_wherever_blocks_do() {
        let rows =
            "(1,'a)b'),(2,'it''s'),(3,'o\\'x \\\\'),\n(4, \"' /* -- # ;\"),(5,'--'),(6,'/*')";
        for before in 0..200 {
            let filler = format!("(0,'{}')", "y".repeat(before));
            let text = format!("{filler},{rows} on duplicate key update a=values(a);\n");
            let end = filler.len() + 1 + rows.len();
            assert_eq!(list(text.as_bytes(), 0, List::Values), Ok(end), "{text}");
            let cut = format!("{filler},{rows},(7 -- ");
            assert_eq!(
                list(cut.as_bytes(), 0, List::Values),
                Ok(filler.len()),
                "{cut}"
            );
            let open = format!("{filler},{rows},(7,'");
            assert_eq!(
                list(open.as_bytes(), 0, List::Values),
                Err(NoList::Open),
                "{open}"
            );
        }
    }

    #[test]
    fn a_list_follows_its_word() {
        let before = |text: &str| list_before(text.as_bytes(), text.len());
        assert_eq!(before("where a IN "), Some(List::In));
        assert_eq!(before("values"), Some(List::Values));
        assert_eq!(before("VALUE\n"), Some(List::Values));
        assert_eq!(before("min"), None);
        assert_eq!(before(""), None);
    }
}
