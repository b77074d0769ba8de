//! The digest as text for people: head, profile, windows, metrics, then each class.

mod class;
mod units;

use std::io::{self, Write};

use crate::figures::{base, overall, share};
use crate::legible::{cut, line};
use crate::options::Group;
use crate::result::{Class, Digest, Metric, Span, Summary, Total, Window};
use crate::time::plain;

/// How the text is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The most columns of a line.
    pub width: usize,
    /// Statements are folded to the width; without it they are as they are, to be searched.
    pub fold: bool,
    pub group: Option<Group>,
}

/// Writes the digest with these of its classes; statements are complete.
///
/// # Errors
/// What `out` reports.
pub fn write(
    out: &mut impl Write,
    total: &Total,
    classes: &[&Class],
    page: Page,
) -> io::Result<()> {
    let width = page.width;
    write_head(out, total, width)?;
    write_profile(out, &total.digest, classes, page)?;
    write_windows(out, &total.digest, width)?;
    for (at, class) in classes.iter().enumerate() {
        class::write(out, &total.digest, class, (at + 1, classes.len()), page)?;
    }
    Ok(())
}

/// The metrics that are shown for the entire log; every server writes the first four.
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
fn write_head(out: &mut impl Write, total: &Total, width: usize) -> io::Result<()> {
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
    write_metrics(
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
        (odd.unknown_lines, "# line of no event"),
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
        (_, "#") => format!("{count} # lines of no event"),
        (_, "impossible") => format!("{count} {noun}s"),
        _ => format!("{count} {first}s{rest}"),
    }
}

/// Columns before the statement.
const FIGURES: usize = 66;

/// Writes the table, and what the classes that are not in it come to.
fn write_profile(
    out: &mut impl Write,
    digest: &Digest,
    classes: &[&Class],
    page: Page,
) -> io::Result<()> {
    let head = page
        .group
        .map_or("statement", |group| Group::name(Some(group)));
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>4}  {:16}{:>9}{:>9}{:>9}{:>8}{:>9}  {head}",
        "rank", "id", "share", "total", "calls", "mean", "p99"
    )?;
    for (at, class) in classes.iter().enumerate() {
        write_class(out, digest, at + 1, class, page.width)?;
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
    let total_us = digest.summary.totals.query_time_us;
    let mean = metric.map_or(0.0, Metric::mean);
    let p99 = metric.map_or(0.0, |metric| {
        base(metric.percentile(0.99).into(), metric.decimals)
    });
    writeln!(
        out,
        "{rank:>4}  {:016X}{:>9}{:>9}{:>9}{:>8}{:>9}  {}",
        class.id,
        units::percent(share(time(class), total_us)),
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

/// Columns before the statement.
const WINDOW_FIGURES: usize = 49;

/// Writes the table if windows were asked for.
fn write_windows(out: &mut impl Write, digest: &Digest, width: usize) -> io::Result<()> {
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
                width.saturating_sub(WINDOW_FIGURES).max(8)
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

const LABEL: usize = 26;
const COLUMN: usize = 10;

type Cell = fn(&str, &Metric) -> String;

/// The columns in order, each with its rank: the least needed goes first where it is narrow.
const COLUMNS: [(&str, u8, Cell); 7] = [
    ("total", 0, |name, metric| sum(name, metric)),
    ("min", 5, |name, metric| shown(name, metric, metric.min)),
    ("mean", 1, |name, metric| units::value(name, metric.mean())),
    ("p50", 4, |name, metric| {
        shown(name, metric, metric.percentile(0.5))
    }),
    ("p95", 3, |name, metric| {
        shown(name, metric, metric.percentile(0.95))
    }),
    ("p99", 6, |name, metric| {
        shown(name, metric, metric.percentile(0.99))
    }),
    ("max", 2, |name, metric| shown(name, metric, metric.max)),
];

/// Writes one row a metric; those that were always 0 share the last line.
fn write_metrics<'a>(
    out: &mut impl Write,
    metrics: impl Iterator<Item = (&'a str, &'a Metric)>,
    width: usize,
) -> io::Result<()> {
    let (zero, some): (Vec<_>, Vec<_>) = metrics
        .filter(|(_, metric)| metric.count > 0)
        .partition(|(_, metric)| metric.sum == 0);
    let fitting = width.saturating_sub(LABEL) / COLUMN;
    let shown = || {
        COLUMNS
            .iter()
            .filter(|(_, rank, _)| usize::from(*rank) < fitting)
    };
    if !some.is_empty() {
        write!(out, "{:LABEL$}", "")?;
        shown().try_for_each(|(title, ..)| write!(out, "{title:>COLUMN$}"))?;
        writeln!(out)?;
    }
    for (name, metric) in some {
        let label = cut(&line(&units::words(name)), LABEL - 1);
        write!(out, "{label:LABEL$}")?;
        shown().try_for_each(|(_, _, cell)| write!(out, "{:>COLUMN$}", cell(name, metric)))?;
        writeln!(out)?;
    }
    if zero.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = zero
        .iter()
        .map(|(name, _)| line(&units::words(name)))
        .collect();
    writeln!(
        out,
        "{}",
        cut(&format!("always 0: {}", names.join(", ")), width)
    )
}

fn sum(name: &str, metric: &Metric) -> String {
    units::value(name, base(metric.sum, metric.decimals))
}

fn shown(name: &str, metric: &Metric, value: u64) -> String {
    units::value(name, base(value.into(), metric.decimals))
}
