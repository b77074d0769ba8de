//! Times: as slow logs write them, as options give them, as the digest writes them.

use mydyno_command::length;

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

/// The start of a day, in microseconds since 1970.
fn day_us(year: i64, month: i64, day: i64) -> Option<i64> {
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day);
    fits.then(|| days_from_civil(year, month, day) * DAY_S * SECOND_US)
}

/// The units of a length of time, in microseconds.
const UNITS_US: [(&str, f64); 8] = [
    ("us", 1.0),
    ("ms", 1e3),
    ("", 1e6),
    ("s", 1e6),
    ("m", 60e6),
    ("min", 60e6),
    ("h", 3600e6),
    ("d", 86_400e6),
];
const DAY_S: i64 = 86_400;

/// A length of time such as `500ms`, `90s`, `1.5h` or `2d`, in microseconds; a bare number is
/// seconds.
///
/// # Errors
/// Not a number with one of these units, or longer than 1000 years.
pub fn length_us(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text}: write a time such as 0.5, 500ms, 90s, 15m, 1h or 2d");
    let us = length(text, &UNITS_US).ok_or_else(wrong)?.round();
    if !(0.0..=3.2e16).contains(&us) {
        return Err(wrong());
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the range just checked"
    )]
    Ok(us as u64)
}

/// A point in time, in microseconds since 1970.
///
/// It is a date with or without a time (`2026-11-21`, `2026-11-21 10:30`, `2026-11-21T10:30:00.5Z`,
/// `2026-11-21T10:30:00+02:00`, `261121 10:30:00`), or a length of time before `now_us` (`1h`).
/// A time without a zone is UTC.
///
/// # Errors
/// Neither of these, or a day that is not in the calendar.
pub fn point_us(text: &str, now_us: i64) -> Result<i64, String> {
    let trimmed = text.trim();
    let bare = trimmed.bytes().all(|c| c.is_ascii_digit());
    if !bare {
        if let Ok(ago) = length_us(trimmed) {
            return Ok(now_us.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX)));
        }
    }
    moment(trimmed).ok_or_else(|| {
        format!("{text}: write a time such as 2026-11-21, \"2026-11-21 10:30:00\" or 1h (ago)")
    })
}

fn moment(text: &str) -> Option<i64> {
    let split = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let days = day(&text[..split])?;
    let (clock, zone_s) = zone(text.get(split + 1..).unwrap_or("").trim())?;
    Some((days * DAY_S - zone_s) * SECOND_US + time_of_day(clock)?)
}

/// Days since 1970 of `2026-11-21` or `261121`.
fn day(text: &str) -> Option<i64> {
    let (year, month, day) = if text.len() == 6 && text.is_ascii() {
        let year = number(&text[..2])?;
        let century = if year < 70 { 2000 } else { 1900 };
        (century + year, number(&text[2..4])?, number(&text[4..])?)
    } else {
        let mut parts = text.splitn(3, '-').map(number);
        (parts.next()??, parts.next()??, parts.next()??)
    };
    let days = days_from_civil(year, month, day);
    (civil_from_days(days) == (year, month, day)).then_some(days)
}

/// Splits `10:30Z`, `10:30+02:00` or `10:30` into the time and the zone's seconds east.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let Some(at) = text.rfind(['+', '-']) else {
        return Some((text, 0));
    };
    let (hours, minutes) = text[at + 1..]
        .split_once(':')
        .unwrap_or((&text[at + 1..], "0"));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = hours * 3600 + minutes * 60;
    let sign = if text[at..].starts_with('-') { -1 } else { 1 };
    (hours <= 15 && minutes < 60).then_some((&text[..at], sign * seconds))
}

/// Microseconds since midnight of `10:30`, `10:30:15` or `10:30:15.25`; nothing is midnight.
fn time_of_day(text: &str) -> Option<i64> {
    if text.is_empty() {
        return Some(0);
    }
    let mut parts = text.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let (second, part) = match parts.next() {
        None => (0, 0),
        Some(second) => {
            let (integer, part) = second.split_once('.').unwrap_or((second, "0"));
            let digits: String = part.chars().chain("000000".chars()).take(6).collect();
            (number(integer)?, number(&digits)?)
        }
    };
    (hour < 24 && minute < 60 && second <= 60)
        .then_some(((hour * 60 + minute) * 60 + second) * SECOND_US + part)
}

fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.len() <= 6 && text.bytes().all(|c| c.is_ascii_digit());
    if digits {
        text.parse().ok()
    } else {
        None
    }
}

/// A point in time as ISO 8601 in UTC, with microseconds.
#[must_use]
pub fn iso(us: i64) -> String {
    written(us, 'T', &format!(".{:06}Z", us.rem_euclid(SECOND_US)))
}

/// A point in time for people, in UTC, to the second.
#[must_use]
pub fn plain(us: i64) -> String {
    written(us, ' ', "")
}

fn written(us: i64, between: char, end: &str) -> String {
    let seconds = us.div_euclid(SECOND_US);
    let (year, month, day) = civil_from_days(seconds.div_euclid(DAY_S));
    let second = seconds.rem_euclid(DAY_S);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}{end}")
}

/// Days since 1970 (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", 2013).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a day since 1970 (as above).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let moved_month = (5 * day_of_year + 2) / 153;
    let month = (moved_month + 2) % 12 + 1;
    let year = year_of_era + days.div_euclid(146_097) * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * moved_month + 2) / 5 + 1)
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

    const NOON: i64 = 1_795_262_400_000_000; // 2026-11-21 12:00:00 UTC

    #[test]
    fn points_in_time_are_read() {
        let cases = [
            ("2026-11-21", NOON - 12 * 3600 * SECOND_US),
            ("2026-11-21 12:00", NOON),
            ("2026-11-21T12:00:00.25Z", NOON + 250_000),
            ("2026-11-21T14:00:00+02:00", NOON),
            ("2026-11-21T07:30:00-04:30", NOON),
            ("261121 12:00:00", NOON),
            ("700101", 0),
            ("1h", NOON - 3600 * SECOND_US),
            ("90s", NOON - 90 * SECOND_US),
        ];
        for (text, want) in cases {
            assert_eq!(point_us(text, NOON), Ok(want), "{text}");
        }
        for wrong in [
            "",
            "x",
            "2026",
            "2026-02-30",
            "2026-11-21 25:00",
            "-1h",
            "2026-11-21 10",
        ] {
            assert!(point_us(wrong, NOON).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lengths_are_read() {
        assert_eq!(length_us("0.5"), Ok(500_000));
        assert_eq!(length_us("10ms"), Ok(10_000));
        assert_eq!(length_us("2d"), Ok(172_800_000_000));
        for wrong in ["", "s", "-1", "nan", "inf", "1y", "1e30"] {
            assert!(length_us(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for us in [
            0,
            -1,
            NOON,
            951_782_400_000_000,
            253_402_300_799_999_999,
            -86_400_000_001,
        ] {
            assert_eq!(moment(&iso(us)), Some(us), "{}", iso(us));
        }
        assert_eq!(iso(NOON + 7), "2026-11-21T12:00:00.000007Z");
        assert_eq!(plain(NOON), "2026-11-21 12:00:00");
    }
}
