//! The lines that `ctl` understands.

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
}

/// Reads one line; the error lists what is accepted.
pub fn parse(line: &str) -> Result<Command, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["cap", "on"] => Ok(Command::Cap(true)),
        ["cap", "off"] => Ok(Command::Cap(false)),
        ["credits", level] => parse_level(level).map(Command::Credits),
        ["drop"] => Ok(Command::Drop),
        ["freeze"] => Ok(Command::Freeze),
        _ => Err(format!(
            "{line:?}: not one of: cap on|off, credits empty|full|<0..1>, drop, freeze"
        )),
    }
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
        ];
        for line in lines {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
