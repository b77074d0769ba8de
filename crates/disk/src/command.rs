//! The lines that `ctl` understands.

use std::time::Duration;

/// One order to the disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command {
    /// Switch the caps on or off.
    Cap(bool),
    /// Set the credits to a share of their maximum.
    Credits(f64),
    /// Throw the overlay away.
    Drop,
    /// Make what is written so far the base.
    Freeze,
    /// Do all at this share of the caps.
    Scale(f64),
    /// Take so much longer for each read, write and flush.
    Latency([Duration; 3]),
}

/// Beyond these a dose would be a fault.
const SCALES: std::ops::RangeInclusive<f64> = 0.1..=10.0;
const LONGEST_US: f64 = 1e6;

/// Reads one line; the error lists what is accepted.
pub fn parse(line: &str) -> Result<Command, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["cap", "on"] => Ok(Command::Cap(true)),
        ["cap", "off"] => Ok(Command::Cap(false)),
        ["credits", level] => parse_level(level).map(Command::Credits),
        ["drop"] => Ok(Command::Drop),
        ["freeze"] => Ok(Command::Freeze),
        ["scale", share] => share
            .parse()
            .ok()
            .filter(|share| SCALES.contains(share))
            .map(Command::Scale)
            .ok_or_else(|| format!("{share:?}: a scale is between 0.1 and 10")),
        ["latency", read, write, flush] => Ok(Command::Latency([
            parse_us(read)?,
            parse_us(write)?,
            parse_us(flush)?,
        ])),
        _ => Err(format!(
            "{line:?}: not one of: cap on|off, credits empty|full|<0..1>, drop, freeze, \
             scale <0.1..10>, latency READ WRITE FLUSH (microseconds)"
        )),
    }
}

/// Reads microseconds, up to a second.
fn parse_us(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|us| (0.0..=LONGEST_US).contains(us))
        .map(|us| Duration::from_secs_f64(us * 1e-6))
        .ok_or_else(|| format!("{text:?}: a latency is between 0 and 1000000 microseconds"))
}

/// Reads `empty`, `full` or a share between 0 and 1.
pub fn parse_level(text: &str) -> Result<f64, String> {
    match text {
        "empty" => Ok(0.0),
        "full" => Ok(1.0),
        _ => text
            .parse()
            .ok()
            .filter(|level| (0.0..=1.0).contains(level))
            .ok_or_else(|| format!("{text:?}: credits are empty, full, or between 0 and 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_read() {
        let cases = [
            ("cap on", Command::Cap(true)),
            ("cap off\n", Command::Cap(false)),
            ("credits empty", Command::Credits(0.0)),
            (" credits  full ", Command::Credits(1.0)),
            ("credits 0.25", Command::Credits(0.25)),
            ("drop", Command::Drop),
            ("freeze", Command::Freeze),
            ("scale 0.8", Command::Scale(0.8)),
            (
                "latency 0 0 250.5",
                Command::Latency([
                    Duration::ZERO,
                    Duration::ZERO,
                    Duration::from_nanos(250_500),
                ]),
            ),
        ];
        for (line, want) in cases {
            assert_eq!(parse(line), Ok(want), "{line:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let lines = [
            "",
            "cap",
            "cap maybe",
            "credits",
            "credits 1.1",
            "credits -1",
            "credits NaN",
            "drop it",
            "scale 0",
            "scale NaN",
            "scale 11",
            "latency 1 2",
            "latency -1 0 0",
            "latency 0 0 1e7",
        ];
        for line in lines {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
