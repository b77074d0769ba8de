//! What /proc/PID/stat says of a process or of one of its threads.

use super::super::text::Words;

/// Totals of all threads of a process; CPU times in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    pub minor_faults: i64,
    pub major_faults: i64,
    pub user: i64,
    pub system: i64,
    pub threads: i64,
    /// In clock ticks since boot; with the number it names a process for good.
    pub started: i64,
}

impl Stat {
    /// None for a process that has ended but was not waited for, and for a torn line.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        // The name, in brackets, may contain anything.
        let name_ends = text.iter().rposition(|byte| *byte == b')')?;
        let mut words = Words(&text[name_ends + 1..]);
        if matches!(words.next()?, b"Z" | b"X") {
            return None;
        }
        Some(Self {
            minor_faults: words.nth_number(6)?,
            major_faults: words.nth_number(1)?,
            user: words.nth_number(1)?,
            system: words.number()?,
            threads: words.nth_number(4)?,
            started: words.nth_number(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "7 (a) b (c) S 1 7 7 0 -1 4194560 11 2 33 4 55 66 7 8 20 0 12 0 4242 9000 99 1";

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let stat = Stat {
            minor_faults: 11,
            major_faults: 33,
            user: 55,
            system: 66,
            threads: 12,
            started: 4242,
        };
        assert_eq!(Stat::parse(STAT.as_bytes()), Some(stat));
    }

    #[test]
    fn a_zombie_or_a_torn_line_is_no_process() {
        assert_eq!(Stat::parse(STAT.replace(") S ", ") Z ").as_bytes()), None);
        for torn in ["", "7 (a", "7 (a) S 1 7"] {
            assert_eq!(Stat::parse(torn.as_bytes()), None);
        }
    }
}
