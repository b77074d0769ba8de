//! Why a step failed, with the exit code of its kind.

use std::fmt::Display;

/// Exit code of a request that was wrong, as clap's own.
pub const WRONG: u8 = 2;
/// Exit code of a host that failed.
pub const FAILED: u8 = 3;
/// Exit code of what was refused for safety.
pub const REFUSED: u8 = 4;

/// A failure: what it was, the next step, and its exit code.
#[derive(Debug)]
pub struct Fault {
    pub code: u8,
    pub text: String,
}

pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    pub fn failed(text: impl Into<String>) -> Self {
        Self {
            code: FAILED,
            text: text.into(),
        }
    }

    pub fn refused(text: impl Into<String>) -> Self {
        Self {
            code: REFUSED,
            text: text.into(),
        }
    }

    pub fn wrong(text: impl Into<String>) -> Self {
        Self {
            code: WRONG,
            text: text.into(),
        }
    }
}

/// Names the place of an error of the system.
pub trait At<T> {
    fn at(self, place: impl Display) -> Result<T>;
}

impl<T, E: Display> At<T> for std::result::Result<T, E> {
    fn at(self, place: impl Display) -> Result<T> {
        self.map_err(|error| Fault::failed(format!("{place}: {error}")))
    }
}
