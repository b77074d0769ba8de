//! Figures as people read them.

/// A time in seconds with three figures: `904 µs`, `1.19 ms`, `34.2 s`, `27.8 min`, `3.4 h`.
#[must_use]
pub fn time(seconds: f64) -> String {
    let steps = [
        (1e-6, "µs", 1e-3),
        (1e-3, "ms", 1.0),
        (1.0, "s", 600.0),
        (60.0, "min", 7200.0),
        (3600.0, "h", 172_800.0),
        (86_400.0, "d", f64::INFINITY),
    ];
    if seconds == 0.0 {
        return "0".to_owned();
    }
    let fits =
        |(unit, _, end): &&(f64, &str, f64)| three(seconds / unit) * unit < *end * (1.0 - 1e-9);
    let (unit, name, _) = steps.iter().find(fits).unwrap_or(&steps[5]);
    format!("{} {name}", figures(seconds / unit))
}

/// A count: exact to five figures, above with three and a letter: `65176`, `652 k`, `1.23 M`.
#[must_use]
pub fn count(value: f64) -> String {
    if value < 100_000.0 {
        return figures(value);
    }
    scaled(value, 1000.0, &["", " k", " M", " G", " T", " P", " E"])
}

/// A size in bytes: `512 B`, `1.23 MiB`.
#[must_use]
pub fn bytes(value: f64) -> String {
    scaled(
        value,
        1024.0,
        &[" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"],
    )
}

/// A ratio in per cent, to a tenth.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A metric's value, by the unit in its name.
#[must_use]
pub fn value(name: &str, value: f64) -> String {
    if name.ends_with("_s") {
        time(value)
    } else if name.contains("bytes") {
        bytes(value)
    } else {
        count(value)
    }
}

/// A metric's name in words, without its unit.
#[must_use]
pub fn words(name: &str) -> String {
    name.strip_suffix("_s").unwrap_or(name).replace('_', " ")
}

fn scaled(value: f64, step: f64, names: &[&str]) -> String {
    let mut scaled = value;
    let mut at = 0;
    while three(scaled).max(scaled.round()) >= step && at + 1 < names.len() {
        scaled /= step;
        at += 1;
    }
    format!("{}{}", figures(scaled), names[at])
}

/// Rounded to three figures, so that 999.9 is scaled as the 1000 it is shown as.
fn three(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Three figures, never in exponents; integers stay integers.
fn figures(value: f64) -> String {
    if value >= 100.0 || (value - value.round()).abs() < 1e-9 {
        return format!("{value:.0}");
    }
    if value < 0.0005 {
        return "<0.001".to_owned();
    }
    let rounded = three(value);
    let decimals = if rounded >= 100.0 {
        0
    } else if rounded >= 10.0 {
        1
    } else if rounded >= 1.0 {
        2
    } else {
        3
    };
    let text = format!("{rounded:.decimals$}");
    if text.contains('.') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_at_a_glance() {
        let cases = [
            (0.0, "0"),
            (0.000_001, "1 µs"),
            (0.000_904, "904 µs"),
            (0.000_999_9, "1 ms"),
            (0.001_19, "1.19 ms"),
            (34.24, "34.2 s"),
            (589.0, "589 s"),
            (1668.0, "27.8 min"),
            (12_240.0, "3.4 h"),
            (1e6, "11.6 d"),
            (0.000_000_25, "0.25 µs"),
        ];
        for (seconds, want) in cases {
            assert_eq!(time(seconds), want);
        }
    }

    #[test]
    fn counts_and_sizes_are_scaled() {
        assert_eq!(count(65_176.0), "65176");
        assert_eq!(count(651_763.0), "652 k");
        assert_eq!(count(0.666), "0.666");
        assert_eq!(count(1e9), "1 G");
        assert_eq!(count(0.000_4), "<0.001");
        assert_eq!(bytes(1023.9), "1 KiB");
        assert_eq!(bytes(2_621_440.0), "2.5 MiB");
        assert_eq!(percent(0.8123), "81.2 %");
    }

    #[test]
    fn a_metric_has_its_unit_in_its_name() {
        assert_eq!(value("lock_time_s", 0.5), "500 ms");
        assert_eq!(value("innodb_io_r_bytes", 16384.0), "16 KiB");
        assert_eq!(value("rows_sent", 3.0), "3");
        assert_eq!(words("query_time_s"), "query time");
    }
}
