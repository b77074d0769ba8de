//! The text about one class.

use std::io::{self, Write};
use std::sync::Arc;

use super::{units, write_metrics, Page};
use crate::figures::{base, decades, share};
use crate::legible::{cut, line, lines};
use crate::paste::paste;
use crate::result::{Class, Digest, Metric};
use crate::time::plain;

const DECADES: [&str; 8] = [
    "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s+",
];

/// Writes the class that is `place.0` of the `place.1` shown.
pub fn write(
    out: &mut impl Write,
    digest: &Digest,
    class: &Class,
    place: (usize, usize),
    page: Page,
) -> io::Result<()> {
    let width = page.width;
    let time = class.metric("query_time_s").map_or(0, |metric| metric.sum);
    let of_all = units::percent(share(time, digest.summary.totals.query_time_us));
    let title = format!(
        "{} of {}: {:016X}{:016X}, {of_all} of the query time ",
        place.0, place.1, class.id_high, class.id
    );
    writeln!(
        out,
        "\n{title}{}\n",
        "-".repeat(width.saturating_sub(title.len()))
    )?;
    write_text(out, &class.fingerprint, page)?;
    write_calls(out, class)?;
    let all = class.metrics.iter().map(|(name, metric)| (&**name, metric));
    write_metrics(out, all, width)?;
    if let Some(metric) = class.metric("query_time_s") {
        write_histogram(out, metric, width)?;
    }
    write_counts(out, class, width)?;
    write_example(out, class, page)
}

fn write_text(out: &mut impl Write, text: &str, page: Page) -> io::Result<()> {
    let width = if page.fold { page.width } else { usize::MAX };
    let all = lines(text, width.saturating_sub(2));
    all.iter().try_for_each(|one| writeln!(out, "  {one}"))
}

fn write_calls(out: &mut impl Write, class: &Class) -> io::Result<()> {
    let plural = if class.events == 1 { "" } else { "s" };
    write!(out, "\n{} call{plural}", class.events)?;
    if class.events_weighted != class.events {
        write!(out, " ({} by the rate limit)", class.events_weighted)?;
    }
    if let (Some(first), Some(last)) = (class.span.first_us, class.span.last_us) {
        write!(out, ", {} to {}", plain(first), plain(last))?;
    }
    writeln!(out)
}

fn write_histogram(out: &mut impl Write, metric: &Metric, width: usize) -> io::Result<()> {
    let counts = decades(&metric.histogram, metric.decimals);
    let most = counts.iter().max().copied().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    writeln!(out, "query time")?;
    let room = width.saturating_sub(22);
    for (name, count) in DECADES.iter().zip(counts) {
        let full = usize::try_from(u128::from(count) * room as u128 / u128::from(most));
        let bar = "#".repeat(full.unwrap_or(0).max(usize::from(count > 0)));
        let figure = if count > 0 {
            units::count(base(count.into(), 0))
        } else {
            String::new()
        };
        writeln!(
            out,
            "{}",
            format!("{name:>10}{figure:>9}  {bar}").trim_end()
        )?;
    }
    Ok(())
}

fn write_counts(out: &mut impl Write, class: &Class, width: usize) -> io::Result<()> {
    let counts = &class.counts;
    let flags: Vec<_> = counts
        .flags
        .iter()
        .filter(|(_, count)| *count > 0)
        .cloned()
        .collect();
    for (title, counts) in [
        ("flags", &flags),
        ("users", &counts.users),
        ("hosts", &counts.hosts),
        ("databases", &counts.databases),
    ] {
        if !counts.is_empty() {
            writeln!(
                out,
                "{}",
                cut(&format!("{title:10}{}", listed(counts)), width)
            )?;
        }
    }
    Ok(())
}

/// Names with their counts, the most frequent first.
fn listed(counts: &[(Arc<str>, u64)]) -> String {
    let mut counts: Vec<_> = counts.iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let one = |(name, count): &&(Arc<str>, u64)| {
        let name = if name.is_empty() {
            "(none)".to_owned()
        } else {
            line(name)
        };
        format!("{name} {}", units::count(base((*count).into(), 0)))
    };
    counts.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn write_example(out: &mut impl Write, class: &Class, page: Page) -> io::Result<()> {
    let Some(example) = &class.example else {
        return Ok(());
    };
    let took = units::time(base(example.query_time_us.into(), 6));
    let at = example
        .at_us
        .map_or_else(String::new, |at| format!(", {}", plain(at)));
    writeln!(out, "slowest: {took}{at}")?;
    write_text(out, &example.query, page)?;
    let lines = paste(example);
    if lines.is_empty() {
        return Ok(());
    }
    // Folded, a literal would be another one.
    writeln!(out, "to paste into a client:")?;
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}
