//! The last steps of pt-query-digest's fingerprint: lists, unions, LIMIT and ORDER BY.

use memchr::memmem;

use super::fingerprint_pt::{boundary, is_blank, run, substitute};

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
    let mut kept = text[..order + 9].to_vec();
    let mut rest = &text[order + 9..];
    while let Some(at) = rest.get(1..).and_then(|rest| memmem::find(rest, b" asc")) {
        kept.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 5..];
    }
    kept.extend_from_slice(rest);
    kept
}
