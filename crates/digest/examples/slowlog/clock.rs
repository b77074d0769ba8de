//! Seconds since 1970 as the dates that slow logs write.

use crate::text::{number, padded};

/// A date and a time of day, UTC.
pub struct Civil {
    year: u64,
    month: u64,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

/// The date of `unix` seconds since 1970 (H. Hinnant, `civil_from_days`).
pub fn civil(unix: u64) -> Civil {
    let days = unix / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    Civil {
        year: year_of_era + era * 400 + u64::from(month <= 2),
        month,
        day: day_of_year - (153 * march_month + 2) / 5 + 1,
        hour: unix / 3_600 % 24,
        minute: unix / 60 % 60,
        second: unix % 60,
    }
}

impl Civil {
    /// Appends `261121  1:41:22`, as `MySQL` before 5.7 and `MariaDB` do.
    pub fn short(&self, out: &mut Vec<u8>) {
        for part in [self.year, self.month, self.day] {
            padded::<2>(out, part);
        }
        out.push(b' ');
        if self.hour < 10 {
            out.push(b' ');
        }
        number(out, self.hour);
        self.after_the_hour(out);
    }

    /// Appends `2026-11-21T01:41:22.000123Z`.
    pub fn iso(&self, out: &mut Vec<u8>, us: u64) {
        padded::<4>(out, self.year);
        out.push(b'-');
        padded::<2>(out, self.month);
        out.push(b'-');
        padded::<2>(out, self.day);
        out.push(b'T');
        padded::<2>(out, self.hour);
        self.after_the_hour(out);
        out.push(b'.');
        padded::<6>(out, us);
        out.push(b'Z');
    }

    fn after_the_hour(&self, out: &mut Vec<u8>) {
        for part in [self.minute, self.second] {
            out.push(b':');
            padded::<2>(out, part);
        }
    }
}
