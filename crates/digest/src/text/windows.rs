//! The windows: one line for each stretch of time.

use std::io::{self, Write};

use super::super::figures::base;
use super::super::legible::{cut, line};
use super::super::result::{Digest, Window};
use super::super::when::plain;
use super::units;

/// Columns before the statement.
const FIGURES: usize = 49;

/// Writes the table if windows were asked for.
pub fn write(out: &mut impl Write, digest: &Digest, width: usize) -> io::Result<()> {
    if digest.windows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:19}{:>9}{:>10}{:>9}  most time in",
        "window from", "events", "total", "running"
    )?;
    for window in &digest.windows {
        let seconds = base(window.end_us.abs_diff(window.start_us).into(), 6).max(1e-6);
        let time = base(window.query_time_us, 6);
        writeln!(
            out,
            "{:19}{:>9}{:>10}{:>9}  {}",
            plain(window.start_us),
            units::count(base(window.events.into(), 0)),
            units::time(time),
            units::count(time / seconds),
            cut(
                &heaviest(digest, window),
                width.saturating_sub(FIGURES).max(8)
            )
        )?;
    }
    Ok(())
}

fn heaviest(digest: &Digest, window: &Window) -> String {
    let most = window
        .classes
        .iter()
        .max_by_key(|class| (class.query_time_us, class.id));
    let class = most.and_then(|most| digest.classes.iter().find(|class| class.id == most.id));
    class.map_or_else(String::new, |class| line(&class.fingerprint))
}
