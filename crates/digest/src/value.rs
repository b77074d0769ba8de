//! The value of one attribute.

use memchr::{memchr, memrchr};

use super::attributes::Slot;
use super::layout::HEADER_ENDS;
use super::number::{count, millionths, MISSING};

/// The value at `at`, and where it ends; none if it is of another kind.
#[inline]
pub(super) fn value(text: &[u8], at: usize, slot: Slot) -> Option<(u64, usize)> {
    match slot {
        Slot::Count(_) | Slot::Error(_) | Slot::RateLimit => {
            Some(count(text, blanks(text, at))).filter(|found| found.0 != MISSING)
        }
        Slot::Time(_) => {
            Some(millionths(text, blanks(text, at))).filter(|found| found.0 != MISSING)
        }
        Slot::Flag(_) => {
            let yes = u64::from(text.get(at)? == &b'Y');
            let rest = text.get(at + 2 + usize::from(yes == 1)..)?;
            let whole = text[at..].starts_with(if yes == 1 { b"Yes" } else { b"No" });
            (whole && rest.first()? <= &b' ').then(|| (yes, text.len() - rest.len()))
        }
        Slot::Schema => {
            let end = schema_end(text, at);
            Some(((at as u64) << 32 | end as u64, end))
        }
        Slot::Word => Some((0, word_end(text, blanks(text, at)))),
        Slot::Text => {
            let end = word_end(text, at);
            let word = &text[at..end];
            let other =
                word.first().is_some_and(u8::is_ascii_digit) || word == b"Yes" || word == b"No";
            (!other).then_some((0, end))
        }
        Slot::Line if is_other_line(text, at) => None,
        Slot::Line => memchr(b'\n', text.get(at..)?).map(|end| (0, at + end)),
        Slot::Nothing => matches!(text.get(at)?, b'\n' | b'\r').then_some((0, at)),
    }
}

/// Whether the text before `at`, which a line without keys began with, only starts another word.
#[cold]
fn is_other_line(text: &[u8], at: usize) -> bool {
    let in_key = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let (before, behind) = text.split_at(at.min(text.len()));
    let rest = behind.iter().position(|byte| !in_key(byte)).unwrap_or(0);
    let keyed = before.last().is_some_and(in_key)
        && behind.get(rest) == Some(&b':')
        && matches!(behind.get(rest + 1), Some(b' ' | b'\r' | b'\n'));
    let start = memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let ends = |end: &&[u8]| text[start..].starts_with(end) && at - start < end.len();
    keyed || HEADER_ENDS.iter().any(ends)
}

#[inline]
pub(super) fn blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

#[inline]
pub(super) fn word_end(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| **byte > b' ').count()
}

/// Where the name of a database ends, which may have single spaces in it.
fn schema_end(text: &[u8], at: usize) -> usize {
    let mut end = word_end(text, at);
    while text.get(end) == Some(&b' ') && text.get(end + 1).is_some_and(|byte| *byte > b' ') {
        let next = word_end(text, end + 1);
        if text[next - 1] == b':' {
            break;
        }
        end = next;
    }
    end
}
