//! The values of attributes: integers of a small unit, without floating point.

use memchr::{memchr, memrchr};

use super::attributes::Slot;
use super::layout::HEADER_ENDS;

/// Nothing that a server can mean, such as the 64-bit underflow `18446744073708.796870`.
pub(super) const IMPOSSIBLE: u64 = u64::MAX;
/// No number.
pub(super) const MISSING: u64 = u64::MAX - 1;
/// Longer than thirty years no statement runs.
const MOST_S: u64 = 1_000_000_000;

/// The count at `at`, without a fraction it may have, and where it ends.
#[inline]
pub(super) fn count(text: &[u8], at: usize) -> (u64, usize) {
    let (value, end) = integer(text, at);
    if end == at {
        return (MISSING, at);
    }
    if text.get(end) == Some(&b'.') {
        return (value, word_end(text, end));
    }
    (
        if value > i64::MAX as u64 {
            IMPOSSIBLE
        } else {
            value
        },
        end,
    )
}

/// The number at `at` in millionths, and where it ends.
#[inline]
pub(super) fn millionths(text: &[u8], at: usize) -> (u64, usize) {
    if let Some(found) = short(text, at) {
        return found;
    }
    long(text, at)
}

fn long(text: &[u8], at: usize) -> (u64, usize) {
    let (integer, mut end) = integer(text, at);
    if end == at {
        return (MISSING, at);
    }
    let (mut fraction, mut unit) = (0, 1_000_000);
    if text.get(end) == Some(&b'.') {
        end += 1;
        while let Some(digit) = text.get(end).filter(|byte| byte.is_ascii_digit()) {
            unit /= 10;
            fraction += u64::from(digit - b'0') * unit;
            end += 1;
        }
    }
    if integer > MOST_S || text.get(end) == Some(&b'.') {
        return (IMPOSSIBLE, word_end(text, end));
    }
    (integer * 1_000_000 + fraction, end)
}

/// The digits at `at`, held at the largest number, and where they end.
#[inline]
fn integer(text: &[u8], at: usize) -> (u64, usize) {
    if let Some(bytes) = text.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()) {
        let (digits, count) = digits(u64::from_le_bytes(bytes));
        if count < 8 {
            // Two shifts, since one by all 64 bits is none.
            return (sum(digits << (56 - 8 * count) << 8), at + count as usize);
        }
    }
    many(text, at)
}

fn many(text: &[u8], at: usize) -> (u64, usize) {
    let digits = text[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let value = text[at..at + digits]
        .iter()
        .try_fold(0_u64, |value, digit| {
            value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
        });
    (value.unwrap_or(u64::MAX), at + digits)
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The bytes of a word as digits, and how many of the first are digits indeed.
#[inline]
fn digits(word: u64) -> (u64, u32) {
    let digits = word ^ ZEROS;
    // A byte that is no digit has something in its upper half, here or with 6 added; what it
    // carries into the next byte does not matter, since the digits end with it.
    let other = (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xF0F0_F0F0_F0F0_F0F0;
    (digits, other.trailing_zeros() / 8)
}

/// The number that eight digits make (the sum by three multiplications is W. Muła's, 2014).
#[inline]
fn sum(digits: u64) -> u64 {
    let pairs = (digits.wrapping_mul(10) + (digits >> 8)) & 0x00FF_00FF_00FF_00FF;
    let fours = (pairs.wrapping_mul(100) + (pairs >> 16)) & 0x0000_FFFF_0000_FFFF;
    (fours.wrapping_mul(10_000) + (fours >> 32)) & 0xFFFF_FFFF
}

/// The number where one digit stands before the point and up to six behind it, as almost always.
#[inline]
fn short(text: &[u8], at: usize) -> Option<(u64, usize)> {
    const UNIT: [u64; 7] = [1_000_000, 100_000, 10_000, 1000, 100, 10, 1];
    let bytes: &[u8; 9] = text.get(at..at + 9)?.try_into().ok()?;
    let word = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    let first = u64::from(bytes[0].wrapping_sub(b'0'));
    let (digits, count) = digits(word >> 16);
    let count = count.min(6);
    let behind = bytes[2 + count as usize];
    if first > 9 || bytes[1] != b'.' || count == 0 || behind.is_ascii_digit() || behind == b'.' {
        return None;
    }
    let fraction = sum(digits << (64 - 8 * count)) * UNIT[count as usize];
    Some((first * 1_000_000 + fraction, at + 2 + count as usize))
}

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
            let known = text[at..].starts_with(if yes == 1 { b"Yes" } else { b"No" });
            (known && rest.first()? <= &b' ').then(|| (yes, text.len() - rest.len()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_last_digit() {
        for (text, want) in [
            ("0.000226  ", (226, 8)),
            ("9.999999\n", (9_999_999, 8)),
            ("0.5  Lock_time", (500_000, 3)),
            ("1.25:06789", (1_250_000, 4)),
            ("7.1234\n# U", (7_123_400, 6)),
            ("12.5 ", (12_500_000, 4)),
            ("2 ", (2_000_000, 1)),
            ("2.      ", (2_000_000, 2)),
            ("12.7423 ", (12_742_300, 7)),
            ("0.0000019 ", (1, 9)),
            ("0.00000 19 ", (0, 7)),
            ("18446744073708.796870.000036 ", (IMPOSSIBLE, 28)),
            ("0.000001.5 ", (IMPOSSIBLE, 10)),
            ("x", (MISSING, 0)),
            ("1", (1_000_000, 1)),
        ] {
            assert_eq!(millionths(text.as_bytes(), 0), want, "{text}");
        }
    }

    #[test]
    fn counts_are_integers() {
        assert_eq!(count(b"1000000 ", 0), (1_000_000, 7));
        assert_eq!(count(b"18446744073709551615 ", 0), (IMPOSSIBLE, 20));
        assert_eq!(count(b"99999999999999999999999 ", 0), (IMPOSSIBLE, 23));
        assert_eq!(count(b"1234567 Rows", 0), (1_234_567, 7));
        assert_eq!(count(b"12345678 Rows", 0), (12_345_678, 8));
        assert_eq!(count(b"0  Rows_sent", 0), (0, 1));
        assert_eq!(count(b" 0 Rows_sent", 0), (MISSING, 0));
        assert_eq!(count(b"1.5 ", 0), (1, 3));
        assert_eq!(count(b"-5 ", 0), (MISSING, 0));
    }

    #[test]
    fn any_byte_behind_a_digit_is_no_digit() {
        for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit() && *byte != b'.') {
            let text = [b'1', b'.', b'2', b'5', byte, b'9', b'9', b'9', b'9', b'9'];
            assert_eq!(millionths(&text, 0), (1_250_000, 4), "{byte}");
        }
    }

    #[test]
    fn every_short_time_is_read_right() {
        for micros in (0..10_000_000).step_by(977) {
            let text = format!("{}.{:06} ", micros / 1_000_000, micros % 1_000_000);
            assert_eq!(short(text.as_bytes(), 0), Some((micros, 8)), "{text}");
        }
    }
}
