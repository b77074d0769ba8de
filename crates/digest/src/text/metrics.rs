//! A table of metrics: total, mean and percentiles, as many columns as fit.

use std::io::{self, Write};

use super::super::figures::base;
use super::super::legible::{cut, line};
use super::super::result::Metric;
use super::units;

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
pub fn write<'a>(
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
