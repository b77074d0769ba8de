//! What the commands of `mydyno-probe` have in common: ending signals, lengths of time, exit codes.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::thread;

pub use nix::sys::signal::Signal;

use nix::sys::signal::SigSet;

/// Exit code of a request that was wrong, as clap's own.
pub const WRONG: u8 = 2;
/// Exit code of a host or a file that failed.
pub const FAILED: u8 = 3;
/// Exit code of a program that a signal ended.
pub const INTERRUPTED: u8 = 130;

/// Stack of the thread that waits for signals.
const STACK_BYTES: usize = 32 * 1024;

/// Writes a message to standard error, behind the program's name; where that is closed or full, it
/// is lost.
pub fn report(message: &str) {
    let _ = writeln!(io::stderr(), "mydyno-probe: {message}");
}

/// Reports why the command ends, and returns its exit code.
#[must_use]
pub fn fail(message: &str, code: u8) -> ExitCode {
    report(message);
    ExitCode::from(code)
}

/// Keeps these signals from ending this thread and those it creates later; a thread of its own calls
/// `act` for each that comes.  Call it before there is another thread.
pub fn on_signals(signals: &[Signal], mut act: impl FnMut() + Send + 'static) {
    let set: SigSet = signals.iter().copied().collect();
    // It can fail only for a wrong argument.
    let _ = set.thread_block();
    let wait = move || loop {
        if set.wait().is_ok() {
            act();
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned());
    if thread.stack_size(STACK_BYTES).spawn(wait).is_err() {
        // A program that dies of a signal is better than one that ignores it.
        let _ = set.thread_unblock();
    }
}

/// A number and its unit, such as `1.5h`: the number times the size of the unit among `units`; none
/// if it is not a number with one of these units.  The unit `""` allows a bare number.
///
/// The result may be negative, infinite or no number: the caller knows which range is allowed.
#[must_use]
pub fn length(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let unit_at = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
    Some(number.parse::<f64>().ok()? * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_a_number_with_a_known_unit() {
        let units = [("", 1.0), ("ms", 1e-3), ("h", 3600.0)];
        assert_eq!(length("1.5h", &units), Some(5400.0));
        assert_eq!(length("250ms", &units), Some(0.25));
        assert_eq!(length("7", &units), Some(7.0));
        assert_eq!(length("7", &units[1..]), None);
        for wrong in ["", "h", "1d", "1 h", "1h2", "nan", "one"] {
            assert_eq!(length(wrong, &units), None, "{wrong}");
        }
    }
}
