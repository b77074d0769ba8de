//! The digest as text for people: head, profile, windows, then each class.

mod class;
mod head;
mod metrics;
mod profile;
mod units;
mod windows;

use std::io::{self, Write};

use super::result::Class;
use super::total::Total;

/// Writes the digest with these of its classes, in lines of at most `width` columns.
///
/// # Errors
/// What `out` reports.
pub fn write(
    out: &mut impl Write,
    total: &Total,
    classes: &[&Class],
    width: usize,
) -> io::Result<()> {
    head::write(out, total, width)?;
    profile::write(out, &total.digest, classes, width)?;
    windows::write(out, &total.digest, width)?;
    for (at, class) in classes.iter().enumerate() {
        class::write(out, &total.digest, class, (at + 1, classes.len()), width)?;
    }
    Ok(())
}
