//! Times as slow logs write them, in microseconds since 1970.

const SECOND_US: i64 = 1_000_000;

/// A time of the form `2016-07-20T18:13:25.698433Z`, also with an offset such as `+02:00`, or of
/// the form `071015 21:43:52`, whose hour may be padded with a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// With its place on earth.
    Exact(i64),
    /// By a clock on a wall that we do not know; taken for UTC.
    Local(i64),
}

/// The last minute that was read, since the next time is likely in it too.
#[derive(Debug, Default)]
pub(super) struct Clock {
    minute: [u8; 17],
    minute_us: i64,
}

impl Clock {
    /// The time that `text` starts with, and how long it is.
    pub fn read(&mut self, text: &[u8]) -> Option<(Stamp, usize)> {
        if text.get(4) == Some(&b'-') {
            self.iso(text)
        } else {
            short(text)
        }
    }

    fn iso(&mut self, text: &[u8]) -> Option<(Stamp, usize)> {
        let minute: [u8; 17] = text.get(..17)?.try_into().ok()?;
        if minute != self.minute {
            self.minute_us = minute_us(&minute)?;
            self.minute = minute;
        }
        let second = two(text, 17).filter(|second| *second <= 60)?;
        let mut end = 19;
        let mut micros = 0;
        if text.get(end) == Some(&b'.') {
            let digits = text[20..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            for i in 0..6 {
                let digit = if i < digits { text[20 + i] - b'0' } else { 0 };
                micros = micros * 10 + i64::from(digit);
            }
            end = 20 + digits;
        }
        let local_us = self.minute_us + second * SECOND_US + micros;
        let (offset_us, end) = offset(text, end)?;
        Some((Stamp::Exact(local_us - offset_us), end))
    }
}

/// How far the clock is ahead of UTC, and where that ends.
fn offset(text: &[u8], at: usize) -> Option<(i64, usize)> {
    let sign = match text.get(at) {
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(b'Z') => return Some((0, at + 1)),
        _ => return Some((0, at)),
    };
    let minutes = two(text, at + 1)? * 60 + two(text, at + 4)?;
    Some((sign * minutes * 60 * SECOND_US, at + 6))
}

/// The start of a minute, from `2016-07-20T18:13:`.
fn minute_us(text: &[u8; 17]) -> Option<i64> {
    let marks = [text[4], text[7], text[10], text[13], text[16]];
    if marks != *b"--T::" && marks != *b"-- ::" {
        return None;
    }
    let year = two(text, 0)? * 100 + two(text, 2)?;
    let day_us = day_us(year, two(text, 5)?, two(text, 8)?)?;
    Some(day_us + clock_us(two(text, 11)?, two(text, 14)?, 0)?)
}

fn short(text: &[u8]) -> Option<(Stamp, usize)> {
    let year = two(text, 0)?;
    let century = if year < 70 { 2000 } else { 1900 };
    let day_us = day_us(century + year, two(text, 2)?, two(text, 4)?)?;
    let blank = text
        .get(6..)?
        .iter()
        .take_while(|byte| **byte == b' ')
        .count();
    let hour_digits = text
        .get(6 + blank..)?
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let at = 6 + blank + hour_digits;
    let hour = match hour_digits {
        1 => i64::from(text[at - 1] - b'0'),
        2 => two(text, at - 2)?,
        _ => return None,
    };
    if blank == 0 || text.get(at) != Some(&b':') || text.get(at + 3) != Some(&b':') {
        return None;
    }
    let us = day_us + clock_us(hour, two(text, at + 1)?, two(text, at + 4)?)?;
    Some((Stamp::Local(us), at + 6))
}

#[inline]
fn two(text: &[u8], at: usize) -> Option<i64> {
    match text.get(at..at + 2)? {
        [a, b] if a.is_ascii_digit() && b.is_ascii_digit() => {
            Some(i64::from(a - b'0') * 10 + i64::from(b - b'0'))
        }
        _ => None,
    }
}

fn clock_us(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let fits = hour < 24 && minute < 60 && second <= 60;
    fits.then_some(((hour * 60 + minute) * 60 + second) * SECOND_US)
}

/// Days since 1970 by the Gregorian calendar (H. Hinnant, "chrono-compatible low-level date
/// algorithms", 2013), in microseconds.
fn day_us(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * 86_400 * SECOND_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(Stamp, usize)> {
        Clock::default().read(text.as_bytes())
    }

    #[test]
    fn both_forms_are_read() {
        let at = 1_469_038_405_698_433;
        assert_eq!(
            read("2016-07-20T18:13:25.698433Z"),
            Some((Stamp::Exact(at), 27))
        );
        assert_eq!(
            read("2016-07-20T20:13:25.698433+02:00\n"),
            Some((Stamp::Exact(at), 32))
        );
        assert_eq!(
            read("2016-07-20 18:13:25"),
            Some((Stamp::Exact(1_469_038_405_000_000), 19))
        );
        assert_eq!(
            read("071015 21:43:52\n"),
            Some((Stamp::Local(1_192_484_632_000_000), 15))
        );
        assert_eq!(
            read("261121  1:41:22"),
            Some((Stamp::Local(1_795_225_282_000_000), 15))
        );
        assert_eq!(read("700101 00:00:00"), Some((Stamp::Local(0), 15)));
    }

    #[test]
    fn nonsense_is_none() {
        for text in [
            "",
            "2016",
            "2016-13-01T00:00:00",
            "071015",
            "07101521:43:52",
            "071015 25:00:00",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_minute_is_remembered_only_for_itself() {
        let mut clock = Clock::default();
        let mut second = |text: &str| match clock.read(text.as_bytes()) {
            Some((Stamp::Exact(us), _)) => us / SECOND_US,
            other => panic!("{other:?}"),
        };
        let first = second("2020-02-29T23:59:59Z");
        assert_eq!(second("2020-02-29T23:59:00Z"), first - 59);
        assert_eq!(second("2020-03-01T00:00:01Z"), first + 2);
    }
}
