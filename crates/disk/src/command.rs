//! The lines that `ctl` understands.

use std::ops::Range;
use std::time::Duration;

use crate::faults::{CacheMode, Order};
use crate::power::{Fate, Trap};

/// One order to the disk.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Switch the caps on or off.
    Cap(bool),
    /// Set the credits to a share of their maximum.
    Credits(f64),
    /// Set the credits to what they were set to last.
    Refill,
    /// Throw the overlay away.
    Drop,
    /// Make what is written so far the base.
    Freeze,
    /// Do all at this share of the caps.
    Scale(f64),
    /// Take so much longer for each read, write and flush.
    Latency([Duration; 3]),
    /// Answer nothing for so long.
    Stall(Duration),
    /// Break it, or mend it.
    Fault(Order),
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
        ["credits", "again"] => Ok(Command::Refill),
        ["credits", level] => parse_level(level).map(Command::Credits),
        ["stall", time] => parse_stall(time).map(Command::Stall),
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
        _ => fault(&words)?.map(Command::Fault).ok_or_else(|| {
            format!(
                "{line:?}: not one of: cap on|off, credits empty|full|<0..1>|again, drop, freeze, \
                 scale <0.1..10>, latency READ WRITE FLUSH (microseconds), cache on|off|lies, \
                 cut lost|drawn SEED, trap SEED FROM-TO ..., power on, \
                 errors READ WRITE FLUSH (0..1), stall SECONDS"
            )
        }),
    }
}

/// Reads an order about faults; none where it is another.
fn fault(words: &[&str]) -> Result<Option<Order>, String> {
    let order = match words {
        ["cache", "off"] => Order::Cache(CacheMode::Off),
        ["cache", "on"] => Order::Cache(CacheMode::On),
        ["cache", "lies"] => Order::Cache(CacheMode::Lies),
        ["cut", "lost"] => Order::Cut(Fate::Lost),
        ["cut", "drawn", seed] => Order::Cut(Fate::Drawn(parse_seed(seed)?)),
        ["trap", seed, ranges @ ..] if !ranges.is_empty() => Order::Trap(Trap {
            seed: parse_seed(seed)?,
            ranges: ranges
                .iter()
                .map(|one| parse_range(one))
                .collect::<Result<_, _>>()?,
        }),
        ["power", "on"] => Order::PowerOn,
        ["errors", read, write, flush] => {
            Order::Errors([parse_level(read)?, parse_level(write)?, parse_level(flush)?])
        }
        _ => return Ok(None),
    };
    Ok(Some(order))
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("{text:?}: a seed is a whole number"))
}

/// Reads bytes FROM-TO of the device.
fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let found = text.split_once('-').and_then(|(from, to)| {
        let range = from.parse().ok()?..to.parse().ok()?;
        (range.start < range.end).then_some(range)
    });
    found.ok_or_else(|| format!("{text:?}: a range is FROM-TO in bytes"))
}

/// Reads seconds, up to an hour.
fn parse_stall(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .filter(|s| (0.0..=3600.0).contains(s))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{text:?}: a stall is between 0 and 3600 seconds"))
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
            ("credits again", Command::Refill),
            ("drop", Command::Drop),
            ("freeze", Command::Freeze),
            ("scale 0.8", Command::Scale(0.8)),
            ("cache lies", Command::Fault(Order::Cache(CacheMode::Lies))),
            ("cut drawn 7", Command::Fault(Order::Cut(Fate::Drawn(7)))),
            ("power on", Command::Fault(Order::PowerOn)),
            (
                "errors 0 0.5 1",
                Command::Fault(Order::Errors([0.0, 0.5, 1.0])),
            ),
            ("stall 1.5", Command::Stall(Duration::from_millis(1500))),
            (
                "trap 3 0-512 4096-8192",
                Command::Fault(Order::Trap(Trap {
                    seed: 3,
                    ranges: vec![0..512, 4096..8192],
                })),
            ),
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
            "cache",
            "cut",
            "cut drawn x",
            "trap 1",
            "trap 1 9-9",
            "trap 1 512",
            "power off",
            "errors 0 0 2",
            "stall -1",
            "stall NaN",
        ];
        for line in lines {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
