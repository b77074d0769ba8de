//! What the text says of the whole log.

use std::io::{self, Write};

use super::super::figures::{base, overall};
use super::super::legible::{cut, line};
use super::super::result::{Span, Summary};
use super::super::total::Total;
use super::super::when::plain;
use super::{metrics, units};

/// The metrics that are shown for the whole log; every server writes the first four.
const SHOWN: [&str; 6] = [
    "query_time_s",
    "lock_time_s",
    "rows_sent",
    "rows_examined",
    "rows_affected",
    "bytes_sent",
];
/// Of more logs than these only the number is shown.
const NAMED: usize = 8;

/// Writes the logs, the events, the time they span, and the overall metrics.
pub fn write(out: &mut impl Write, total: &Total, width: usize) -> io::Result<()> {
    let summary = &total.digest.summary;
    write_logs(out, total, width)?;
    let classes = total.digest.classes.len();
    let events = summary.totals.events;
    write!(
        out,
        "{}, {}",
        counted(events, "event"),
        counted(classes as u64, "class")
    )?;
    if summary.totals.events_weighted != events {
        write!(
            out,
            "; {} by the rate limit",
            summary.totals.events_weighted
        )?;
    }
    if summary.filtered > 0 {
        write!(out, "; {} left out by the filter", summary.filtered)?;
    }
    writeln!(out)?;
    write_span(out, summary)?;
    write_oddities(out, summary, width)?;
    let all = SHOWN.iter().filter_map(|name| {
        overall(&total.digest.classes, name).map(|metric| ((*name).to_owned(), metric))
    });
    let all: Vec<_> = all.collect();
    if !all.is_empty() {
        writeln!(out)?;
    }
    metrics::write(
        out,
        all.iter().map(|(name, metric)| (name.as_str(), metric)),
        width,
    )
}

fn write_logs(out: &mut impl Write, total: &Total, width: usize) -> io::Result<()> {
    if total.logs.len() > NAMED {
        #[allow(clippy::cast_precision_loss, reason = "a size for people")]
        let size = units::bytes(total.digest.summary.bytes as f64);
        return writeln!(out, "{} logs, {size}", total.logs.len());
    }
    for log in &total.logs {
        #[allow(clippy::cast_precision_loss, reason = "a size for people")]
        let size = units::bytes(log.bytes as f64);
        let name = cut(&line(&log.name), width.saturating_sub(size.len() + 2));
        writeln!(out, "{name}, {size}")?;
    }
    Ok(())
}

fn write_span(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    let Span {
        first_us: Some(first),
        last_us: Some(last),
    } = summary.span
    else {
        return Ok(());
    };
    let seconds = base(u128::from(last.abs_diff(first)), 6);
    write!(out, "{} to {}", plain(first), plain(last))?;
    if seconds < 1.0 {
        return writeln!(out);
    }
    let events = base(summary.totals.events.into(), 0) / seconds;
    let load = base(summary.totals.query_time_us, 6) / seconds;
    writeln!(
        out,
        " ({})\n{} events/s, {} running at a time",
        units::time(seconds),
        units::count(events),
        units::count(load)
    )
}

fn write_oddities(out: &mut impl Write, summary: &Summary, width: usize) -> io::Result<()> {
    let odd = &summary.oddities;
    let all = [
        (odd.headers_without_statement, "header without a statement"),
        (
            odd.forged_headers,
            "header inside of a statement, taken for text",
        ),
        (odd.cut_events, "event without its end"),
        (odd.unreadable_bytes, "byte of no event"),
        (odd.impossible_values, "impossible value"),
    ];
    let found = all.iter().filter(|(count, _)| *count > 0);
    let words: Vec<String> = found.map(|(count, name)| counted(*count, name)).collect();
    if words.is_empty() {
        return Ok(());
    }
    writeln!(out, "{}", cut(&format!("odd: {}", words.join("; ")), width))
}

/// A number with its noun, whose first word is made plural: `1 class`, `2 headers without …`.
fn counted(count: u64, noun: &str) -> String {
    let (first, rest) = noun.split_at(noun.find(' ').unwrap_or(noun.len()));
    match (count, first) {
        (1, _) => format!("1 {noun}"),
        (_, "class") => format!("{count} classes{rest}"),
        (_, "impossible") => format!("{count} {noun}s"),
        _ => format!("{count} {first}s{rest}"),
    }
}
