//! The fingerprint that pt-query-digest 3.2.1 makes, with its faults, to compare with its reports.
//!
//! Each step stands for one of that tool's substitutions, in their order; they work on text, not on
//! tokens, so a quote in a comment or a comment in a literal misleads them as it does there.

use memchr::{memchr, memmem};

/// The fingerprint of a statement, byte for byte.
pub(super) fn text(statement: &[u8]) -> Vec<u8> {
    if statement.starts_with(b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `") {
        return b"mysqldump".to_vec();
    }
    if of_toolkit(statement) {
        return b"percona-toolkit".to_vec();
    }
    if statement.starts_with(b"administrator command: ") {
        return statement.to_vec();
    }
    if let Some(called) = called(statement) {
        return called.to_ascii_lowercase();
    }
    let text = without_line_comments(&without_block_comments(first_row(statement)));
    if is_use(&text) {
        return b"use ?".to_vec();
    }
    let text = without_booleans(&without_strings(&text));
    let mut text = squeezed(&without_numbers(&text));
    text.make_ascii_lowercase();
    let text = collapsed_lists(&words_to_mark(&text, &[b"null"]));
    without_asc(&one_limit(collapsed_unions(&text)))
}

/// Replaces, from the left, whatever `find` finds at a place: its end and what takes its place.
pub(super) fn substitute<'a>(
    text: &[u8],
    mut find: impl FnMut(usize) -> Option<(usize, &'a [u8])>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if let Some((end, put)) = find(at) {
            out.extend_from_slice(put);
            at = end;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a byte is a blank.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c)
}

/// Where a run of bytes ends that starts at `at`.
pub(super) fn run(text: &[u8], at: usize, of: impl Fn(u8) -> bool) -> usize {
    at + text[at.min(text.len())..]
        .iter()
        .take_while(|byte| of(**byte))
        .count()
}

/// Whether a word starts at `at`.
pub(super) fn boundary(text: &[u8], at: usize) -> bool {
    at == 0 || !in_word(text[at - 1])
}

fn starts_with_word(text: &[u8], at: usize, word: &[u8]) -> bool {
    text.get(at..at + word.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(word))
}

fn of_toolkit(text: &[u8]) -> bool {
    memmem::find_iter(text, b"/*").any(|at| {
        let dot = run(text, at + 2, in_word);
        let colon = run(text, dot + 1, in_word);
        let named = dot > at + 2 && text.get(dot) == Some(&b'.') && colon > dot + 1;
        let chunk = text.get(colon..colon + 6);
        named
            && chunk.is_some_and(|chunk| {
                matches!(chunk, [b':', a, b'/', b, b'*', b'/'] if a.is_ascii_digit() && b.is_ascii_digit())
            })
    })
}

/// The `call name` before the last parenthesis of its word.
fn called(text: &[u8]) -> Option<&[u8]> {
    let start = run(text, 0, is_blank);
    if !starts_with_word(text, start, b"call") {
        return None;
    }
    let name = run(text, start + 4, is_blank);
    let end = run(text, name, |byte| !is_blank(byte));
    let open = name + text[name..end].iter().rposition(|byte| *byte == b'(')?;
    (name > start + 4 && open > name).then_some(&text[start..open])
}

/// An INSERT without its further rows, and without all that is behind them.
fn first_row(text: &[u8]) -> &[u8] {
    let Some(verb) = [&b"insert"[..], b"replace"]
        .into_iter()
        .find(|verb| starts_with_word(text, 0, verb))
    else {
        return text;
    };
    let ignore = usize::from(starts_with_word(text, verb.len(), b" ignore")) * 7;
    let into = run(text, verb.len() + ignore, is_blank);
    if into == verb.len() + ignore || !starts_with_word(text, into, b"into") {
        return text;
    }
    let open = (into + 5..text.len())
        .filter(|at| starts_with_word(text, *at, b"values"))
        .map(|at| run(text, at + 6, is_blank))
        .find(|open| text.get(*open) == Some(&b'('));
    let Some(open) = open else { return text };
    let end = memchr::memchr_iter(b')', &text[open..])
        .map(|close| open + close + 1)
        .find(|end| {
            let comma = run(text, *end, is_blank);
            let next = run(text, comma + 1, is_blank);
            text.get(comma) == Some(&b',') && text.get(next) == Some(&b'(')
        });
    &text[..end.unwrap_or(text.len())]
}

fn without_block_comments(text: &[u8]) -> Vec<u8> {
    if memmem::find(text, b"/*").is_none() {
        return text.to_vec();
    }
    let last = memmem::rfind(text, b"*/");
    substitute(text, |at| {
        // Without an end further on there is none, and no need to search for it again and again.
        if !text[at..].starts_with(b"/*") || last.is_none_or(|last| last < at + 3) {
            return None;
        }
        let inside = text.get(at + 3..).filter(|_| text[at + 2] != b'!')?;
        let end = memmem::find(inside, b"*/")?;
        Some((at + 3 + end + 2, &b""[..]))
    })
}

fn without_line_comments(text: &[u8]) -> Vec<u8> {
    // The quote or line end that was found last is that of all marks before it.
    let mut end = 0;
    substitute(text, |at| {
        let mark = match text[at] {
            b'#' => 1,
            b'-' if text.get(at + 1) == Some(&b'-') => 2,
            _ => return None,
        };
        if end < at + mark {
            end = run(text, at + mark, |byte| {
                !matches!(byte, b'\'' | b'"' | b'\r' | b'\n')
            });
        }
        let ends = text
            .get(end)
            .is_none_or(|byte| matches!(byte, b'\r' | b'\n'));
        ends.then_some((end, &b""[..]))
    })
}

fn is_use(text: &[u8]) -> bool {
    let end = run(text, 4, |byte| !is_blank(byte));
    starts_with_word(text, 0, b"use ") && end > 4 && matches!(&text[end..], b"" | b"\n")
}

fn without_strings(text: &[u8]) -> Vec<u8> {
    let quoted = |at: usize| text[at] == b'\\' && matches!(text.get(at + 1), Some(b'"' | b'\''));
    let mut text = substitute(text, |at| quoted(at).then_some((at + 2, &b""[..])));
    for quote in [b'"', b'\''] {
        text = substitute(&text, |at| {
            let end = (text[at] == quote).then(|| memchr(quote, &text[at + 1..]))??;
            Some((at + 1 + end + 1, &b"?"[..]))
        });
    }
    text
}

fn without_booleans(text: &[u8]) -> Vec<u8> {
    words_to_mark(text, &[b"false", b"true"])
}

/// Replaces complete words by `?`.
fn words_to_mark(text: &[u8], words: &[&[u8]]) -> Vec<u8> {
    substitute(text, |at| {
        if !boundary(text, at) {
            return None;
        }
        let end = run(text, at, in_word);
        let found = words
            .iter()
            .any(|word| text[at..end].eq_ignore_ascii_case(word));
        found.then_some((end, &b"?"[..]))
    })
}

fn without_numbers(text: &[u8]) -> Vec<u8> {
    let starts = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-');
    let goes_on = |byte: u8| starts(byte) || matches!(byte, b'a'..=b'f' | b'.' | b'x');
    let text = substitute(text, |at| {
        starts(text[at]).then(|| (run(text, at, goes_on), &b"?"[..]))
    });
    substitute(&text, |at| {
        let mark = matches!(text[at], b'x' | b'b' | b'.' | b'+' | b'-');
        (mark && text.get(at + 1) == Some(&b'?')).then_some((at + 2, &b"?"[..]))
    })
}

fn squeezed(text: &[u8]) -> Vec<u8> {
    let start = run(text, 0, is_blank);
    let text = &text[start..];
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let squeezes = |byte: u8| is_blank(byte) && byte != 0x0b;
    substitute(text, |at| {
        squeezes(text[at]).then(|| (run(text, at, squeezes), &b" "[..]))
    })
}

pub(super) fn collapsed_lists(text: &[u8]) -> Vec<u8> {
    substitute(text, |at| {
        if !boundary(text, at) {
            return None;
        }
        let (word, put): (usize, &[u8]) = match &text[at..] {
            [b'i', b'n', ..] => (2, b"in(?+)"),
            rest if rest.starts_with(b"values") => (6, b"values(?+)"),
            rest if rest.starts_with(b"value") => (5, b"value(?+)"),
            _ => return None,
        };
        let mut end = at + word;
        while let Some(behind) = marks_in_parentheses(text, end) {
            end = behind;
        }
        (end > at + word).then_some((end, put))
    })
}

/// Behind a parenthesis that holds nothing but question marks.
fn marks_in_parentheses(text: &[u8], at: usize) -> Option<usize> {
    let open = run(text, at, |byte| is_blank(byte) || byte == b',');
    let close = run(text, open + 1, |byte| {
        is_blank(byte) || matches!(byte, b'?' | b',')
    });
    (text.get(open) == Some(&b'(') && text.get(close) == Some(&b')')).then_some(close + 1)
}

/// How many bytes are compared to find repeated selects, so that no text can take for ever.
const COMPARED: usize = 16 << 20;

pub(super) fn collapsed_unions(text: &[u8]) -> Vec<u8> {
    if memmem::find(text, b" union").is_none() {
        return text.to_vec();
    }
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    let mut left = COMPARED;
    while at < text.len() {
        if text[at..].starts_with(b"select ") && boundary(text, at) {
            if let Some((unit, end, all)) = repeated(text, at, &mut left) {
                out.extend_from_slice(&text[at..unit]);
                out.extend_from_slice(if all {
                    b" /*repeat union all*/"
                } else {
                    b" /*repeat union*/"
                });
                at = end;
                continue;
            }
        }
        out.push(text[at]);
        at += 1;
    }
    out
}

/// Where the shortest select from `start` on ends that is repeated, where its last copy ends, and
/// whether UNION ALL joins that.
fn repeated(text: &[u8], start: usize, left: &mut usize) -> Option<(usize, usize, bool)> {
    for unit in memmem::find_iter(&text[start + 7..], b" union") {
        let unit_end = start + 7 + unit;
        *left = left.checked_sub(unit + 64)?;
        let mut found = None;
        let mut end = unit_end;
        while let Some((behind, all)) = copy(text, &text[start..unit_end], end) {
            end = behind;
            found = Some((unit_end, end, all));
        }
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Behind a further copy of `unit` that a union at `at` joins, and whether by UNION ALL.
fn copy(text: &[u8], unit: &[u8], at: usize) -> Option<(usize, bool)> {
    [true, false].into_iter().find_map(|all| {
        let union: &[u8] = if all { b" union all " } else { b" union " };
        let rest = text[at..].strip_prefix(union)?.strip_prefix(unit)?;
        Some((text.len() - rest.len(), all))
    })
}

/// The first LIMIT without its offset.
pub(super) fn one_limit(mut text: Vec<u8>) -> Vec<u8> {
    let first = memmem::find_iter(&text, b"limit ?").find(|at| boundary(&text, *at));
    if let Some(end) = first.map(|at| at + 7) {
        let rests = [&b", ?"[..], b",?", b" offset ?"];
        if let Some(rest) = rests.iter().find(|rest| text[end..].starts_with(rest)) {
            text.drain(end..end + rest.len());
        }
    }
    text
}

/// Drops every ` asc` behind the first ORDER BY, be it the start of a word.
pub(super) fn without_asc(text: &[u8]) -> Vec<u8> {
    let Some(order) = memmem::find_iter(text, b"order by ").find(|at| boundary(text, *at)) else {
        return text.to_vec();
    };
    let mut result = text[..order + 9].to_vec();
    let mut rest = &text[order + 9..];
    while let Some(at) = rest.get(1..).and_then(|rest| memmem::find(rest, b" asc")) {
        result.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 5..];
    }
    result.extend_from_slice(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const MANY: usize = 1 << 18;

    /// Steps that look at the rest of a text from each of its places would take minutes.
    fn at_once<T>(step: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let done = step();
        assert!(begin.elapsed() < Duration::from_secs(10));
        done
    }

    #[test]
    fn blanks_are_measured_behind_values_only() {
        let blanks = " ".repeat(MANY);
        let text = format!("insert into t{blanks}values{blanks}(1){blanks},{blanks}(2)");
        let first = at_once(|| first_row(text.as_bytes()));
        assert!(first.ends_with(b"(1)"));
        assert_eq!(first_row(b"insert into t values_ (1), (2)").len(), 30);
    }

    #[test]
    fn marks_of_a_comment_share_the_search_for_its_end() {
        let marks = "#".repeat(MANY);
        let text = format!("{marks}'{marks}");
        let left = at_once(|| without_line_comments(text.as_bytes()));
        assert_eq!(
            left.len(),
            MANY + 1,
            "those before the quote are no comment"
        );
        for (text, left) in [
            ("a#b\nc", "a\nc"),
            ("a--b'c#d'e\r--f", "a--b'c#d'e\r"),
            ("#a'#b\n--\"--", "#a'\n--\""),
            ("a-", "a-"),
        ] {
            assert_eq!(without_line_comments(text.as_bytes()), left.as_bytes());
        }
    }
}
