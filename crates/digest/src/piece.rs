//! The pieces of a statement that are passed over whole: literals and comments.
//!
//! Both the quick look at a statement's shape and its fingerprint go by these, so that two
//! statements of one shape always have one fingerprint.

use memchr::{memchr, memchr2, memchr3};

/// Where the literal that began before `from` goes on behind its closing quote.
///
/// `on_line` hears of every start of a line inside of it and says whether to stop there.
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
}
