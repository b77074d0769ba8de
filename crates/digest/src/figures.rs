//! A metric's figures: exact decimals, means, percentiles, and the same over all classes.

use super::histogram::Histogram;
use super::result::{Class, Metric};

/// An integer of 10^-`decimals` as a decimal, exactly: `1.234567`, `0.0`; `12` without decimals.
#[must_use]
pub fn decimal(value: u128, decimals: u8) -> String {
    if decimals == 0 {
        return value.to_string();
    }
    let unit = 10_u128.pow(u32::from(decimals));
    let part = format!("{:0width$}", value % unit, width = usize::from(decimals));
    let part = part.trim_end_matches('0');
    format!(
        "{}.{}",
        value / unit,
        if part.is_empty() { "0" } else { part }
    )
}

/// An integer of 10^-`decimals` in base units, as near as a float comes to it.
#[must_use]
#[allow(
    clippy::cast_precision_loss,
    reason = "for sorting and for people; exact sums are decimals"
)]
pub fn base(value: u128, decimals: u8) -> f64 {
    value as f64 / 10_f64.powi(i32::from(decimals))
}

/// `part` of `total`; 0 of nothing.
#[must_use]
#[allow(clippy::cast_precision_loss, reason = "a share for people")]
pub fn share(part: u128, total: u128) -> f64 {
    if total == 0 {
        0.0
    } else {
        part as f64 / total as f64
    }
}

impl Metric {
    /// The mean, in base units.
    #[must_use]
    pub fn mean(&self) -> f64 {
        share(self.sum, u128::from(self.count)) / base_of(self.decimals)
    }

    /// The value of rank ⌈share × count⌉ (nearest rank), to within 0.8 %; the first and the last
    /// rank exactly.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a rank is far below 2^52")]
    pub fn percentile(&self, share: f64) -> u64 {
        let rank = share * self.count as f64;
        if rank <= 1.0 {
            return self.min;
        }
        if rank > (self.count - 1) as f64 {
            return self.max;
        }
        self.histogram
            .percentile(share)
            .unwrap_or(0)
            .clamp(self.min, self.max)
    }
}

fn base_of(decimals: u8) -> f64 {
    10_f64.powi(i32::from(decimals))
}

/// One metric over all classes; none if no class has it.
#[must_use]
pub fn overall(classes: &[Class], name: &str) -> Option<Metric> {
    let (mut found, mut room): (Option<Metric>, _) = (None, i64::MAX);
    for metric in classes.iter().filter_map(|class| class.metric(name)) {
        match &mut found {
            None => found = Some(metric.clone()),
            Some(all) if all.decimals == metric.decimals => all.merge(metric, &mut room),
            Some(_) => {}
        }
    }
    found
}

/// How many values of a time lie in each decade from 1 µs on, the last without an end; 0 and less
/// than 1 µs count in the first.
#[must_use]
pub fn decades(histogram: &Histogram, decimals: u8) -> [u64; 8] {
    let unit = 10_u64.pow(u32::from(decimals.saturating_sub(6)));
    let mut counts = [0; 8];
    for (low, high, count) in histogram.buckets() {
        let us = (low + (high - low) / 2) / unit;
        let decade = us.checked_ilog10().unwrap_or(0) as usize;
        counts[decade.min(7)] += count;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let cases = [
            (1_234_567, 6, "1.234567"),
            (0, 6, "0.0"),
            (10, 6, "0.00001"),
            (12, 0, "12"),
            (9_007_199_254_740_993_000_001, 6, "9007199254740993.000001"),
        ];
        for (value, decimals, want) in cases {
            assert_eq!(decimal(value, decimals), want);
        }
    }

    #[test]
    fn a_percentile_never_leaves_the_values() {
        let mut histogram = Histogram::default();
        histogram.add(1_000_001, &mut 1000);
        let one = Metric {
            decimals: 6,
            count: 1,
            sum: 1_000_001,
            min: 1_000_001,
            max: 1_000_001,
            histogram,
        };
        assert_eq!(one.percentile(0.5), 1_000_001);
        assert!((one.mean() - 1.000_001).abs() < 1e-12);
    }

    #[test]
    fn decades_hold_every_value() {
        let mut histogram = Histogram::default();
        for value in [0, 1, 9, 10, 99_000, 10_000_000, 3_000_000_000] {
            histogram.add(value, &mut 1000);
        }
        assert_eq!(decades(&histogram, 6), [3, 1, 0, 0, 1, 0, 0, 2]);
    }
}
