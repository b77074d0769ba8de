//! The profile: one line a class.

use std::io::{self, Write};

use super::super::figures::{base, share};
use super::super::legible::{cut, line};
use super::super::result::{Class, Digest};
use super::units;

/// Columns before the statement.
const FIGURES: usize = 66;

/// Writes the table, and what the classes that are not in it come to.
pub fn write(
    out: &mut impl Write,
    digest: &Digest,
    classes: &[&Class],
    width: usize,
) -> io::Result<()> {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>4}  {:16}{:>9}{:>9}{:>9}{:>8}{:>9}  statement",
        "rank", "id", "share", "total", "calls", "mean", "p99"
    )?;
    for (at, class) in classes.iter().enumerate() {
        write_class(out, digest, at + 1, class, width)?;
    }
    let rest = digest.classes.len() - classes.len();
    if rest == 0 {
        return Ok(());
    }
    let time: u128 = classes.iter().map(|class| time(class)).sum();
    let events: u64 = classes.iter().map(|class| class.events).sum();
    let totals = &digest.summary.totals;
    let left = totals.query_time_us.saturating_sub(time);
    writeln!(
        out,
        "      {:16}{:>9}{:>9}{:>9}  (--limit 0 shows all)",
        format!("{rest} more"),
        units::percent(share(left, totals.query_time_us)),
        units::time(base(left, 6)),
        units::count(base(totals.events.saturating_sub(events).into(), 0))
    )
}

fn write_class(
    out: &mut impl Write,
    digest: &Digest,
    rank: usize,
    class: &Class,
    width: usize,
) -> io::Result<()> {
    let metric = class.metric("query_time_s");
    let whole = digest.summary.totals.query_time_us;
    let mean = metric.map_or(0.0, super::super::result::Metric::mean);
    let p99 = metric.map_or(0.0, |metric| {
        base(metric.percentile(0.99).into(), metric.decimals)
    });
    writeln!(
        out,
        "{rank:>4}  {:016X}{:>9}{:>9}{:>9}{:>8}{:>9}  {}",
        class.id,
        units::percent(share(time(class), whole)),
        units::time(base(time(class), 6)),
        units::count(base(class.events.into(), 0)),
        units::time(mean),
        units::time(p99),
        cut(
            &line(&class.fingerprint),
            width.saturating_sub(FIGURES + 2).max(8)
        )
    )
}

fn time(class: &Class) -> u128 {
    class.metric("query_time_s").map_or(0, |metric| metric.sum)
}
