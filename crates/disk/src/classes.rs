//! The disk classes of the clouds, as their providers publish them.
//!
//! Azure Premium SSD: "Virtual machine and disk performance" and the disk type tables (2023);
//! MB are 10^6 bytes.  AWS EBS: "Amazon EBS volume types" (2023); MiB are 2^20 bytes.
//! Neither publishes a latency that could be relied on, so none is given here.

use serde_json::{json, Value};

use crate::bucket::Cap;
use crate::pacer::Caps;

const MB: f64 = 1e6;
const MIB: f64 = 1_048_576.0;
const GIB: u64 = 1 << 30;

/// Azure credits last 30 minutes of full burst.
const AZURE_BURST_S: f64 = 1800.0;
/// The burst of every Premium SSD of up to 512 GiB.
const AZURE_BURST_IOPS: f64 = 3500.0;
const AZURE_BURST_MB: f64 = 170.0;

/// The credits of a gp2 volume, in I/Os.
const GP2_CREDITS: f64 = 5.4e6;
const GP2_BURST_IOPS: f64 = 3000.0;

/// Name, IOPS, MB/s, and whether credits let it burst.
const AZURE_PREMIUM: [(&str, f64, f64, bool); 11] = [
    ("azure-p4", 120.0, 25.0, true),
    ("azure-p6", 240.0, 50.0, true),
    ("azure-p10", 500.0, 100.0, true),
    ("azure-p15", 1100.0, 125.0, true),
    ("azure-p20", 2300.0, 150.0, true),
    ("azure-p30", 5000.0, 200.0, false),
    ("azure-p40", 7500.0, 250.0, false),
    ("azure-p50", 7500.0, 250.0, false),
    ("azure-p60", 16_000.0, 500.0, false),
    ("azure-p70", 18_000.0, 750.0, false),
    ("azure-p80", 20_000.0, 900.0, false),
];

/// Name, IOPS, MiB/s; io1 and io2 are sold by the IOPS, so theirs are the most a volume can have.
const AWS_FLAT: [(&str, f64, f64); 3] = [
    ("aws-gp3", 3000.0, 125.0),
    ("aws-io1", 64_000.0, 1000.0),
    ("aws-io2", 256_000.0, 4000.0),
];

/// The caps of a class; `aws-gp2` depends on the disk's size in bytes, and `aws-gp2-334` is a
/// volume of 334 GiB whatever the size.
pub fn find(name: &str, size: u64) -> Option<Caps> {
    azure(name).or_else(|| flat(name)).or_else(|| {
        let given = name.strip_prefix("aws-gp2")?;
        match given.strip_prefix('-') {
            Some(gib) => gib.parse().ok().filter(|gib| *gib > 0).map(gp2),
            None if given.is_empty() => Some(gp2(u32::try_from(size.div_ceil(GIB)).ok()?)),
            None => None,
        }
    })
}

fn azure(name: &str) -> Option<Caps> {
    let (_, iops, mb, bursts) = AZURE_PREMIUM.iter().find(|row| row.0 == name)?;
    let cap = |base: f64, burst: f64| {
        if *bursts {
            Cap::bursting(base, burst, AZURE_BURST_S)
        } else {
            Cap::flat(base)
        }
    };
    Some(Caps {
        ios: Some(cap(*iops, AZURE_BURST_IOPS)),
        bytes: Some(cap(mb * MB, AZURE_BURST_MB * MB)),
    })
}

fn flat(name: &str) -> Option<Caps> {
    let (_, iops, mib) = AWS_FLAT.iter().find(|row| row.0 == name)?;
    Some(Caps {
        ios: Some(Cap::flat(*iops)),
        bytes: Some(Cap::flat(mib * MIB)),
    })
}

fn gp2(gib: u32) -> Caps {
    let base = (3.0 * f64::from(gib)).clamp(100.0, 16_000.0);
    let ios = if base < GP2_BURST_IOPS {
        Cap {
            base,
            burst: GP2_BURST_IOPS,
            credits: GP2_CREDITS,
        }
    } else {
        Cap::flat(base)
    };
    let mib = if gib <= 170 { 128.0 } else { 250.0 };
    Caps {
        ios: Some(ios),
        bytes: Some(Cap::flat(mib * MIB)),
    }
}

/// Every name, with its caps; gp2 at three sizes that show its rule.
pub fn all() -> Vec<(String, Caps)> {
    let azure = AZURE_PREMIUM.iter().map(|row| row.0.to_owned());
    let gp2 = [100, 334, 1000].map(|gib| format!("aws-gp2-{gib}"));
    let flat = AWS_FLAT.iter().map(|row| row.0.to_owned());
    azure
        .chain(gp2)
        .chain(flat)
        .filter_map(|name| find(&name, GIB).map(|caps| (name, caps)))
        .collect()
}

/// One cap as JSON, in units per second and units; null is no limit.
pub fn cap_json(cap: Option<Cap>) -> Value {
    cap.map_or(
        Value::Null,
        |cap| json!({"base": cap.base, "burst": cap.burst, "credits": cap.credits}),
    )
}

/// The table as JSON.
pub fn json() -> Value {
    let row = |(name, caps): (String, Caps)| json!({"name": name, "iops": cap_json(caps.ios), "bytes_per_s": cap_json(caps.bytes)});
    Value::Array(all().into_iter().map(row).collect())
}

/// The table as text.
pub fn text() -> String {
    let mut lines = vec![format!(
        "{:<14}{:>10}{:>12}{:>10}{:>12}{:>12}",
        "class", "IOPS", "burst IOPS", "MB/s", "burst MB/s", "credits"
    )];
    for (name, caps) in all() {
        let ios = caps.ios.unwrap_or(Cap::flat(f64::INFINITY));
        let bytes = caps.bytes.unwrap_or(Cap::flat(f64::INFINITY));
        lines.push(format!(
            "{name:<14}{:>10}{:>12}{:>10.1}{:>12.1}{:>12}",
            ios.base,
            ios.burst,
            bytes.base / MB,
            bytes.burst / MB,
            ios.credits
        ));
    }
    lines.push("aws-gp2 takes its caps from the size of the disk, aws-gp2-N from N GiB.".into());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_p15_bursts_for_half_an_hour() {
        let caps = find("azure-p15", GIB).expect("known");
        let want = Cap {
            base: 1100.0,
            burst: 3500.0,
            credits: 4.32e6,
        };
        assert_eq!(caps.ios, Some(want));
        assert_eq!(caps.bytes.map(|cap| cap.burst), Some(170e6));
    }

    #[test]
    fn gp2_follows_its_size() {
        let at = |name: &str, size| find(name, size).and_then(|caps| caps.ios);
        assert_eq!(at("aws-gp2", 8 * GIB).map(|cap| cap.base), Some(100.0));
        assert_eq!(at("aws-gp2", 334 * GIB).map(|cap| cap.base), Some(1002.0));
        assert_eq!(at("aws-gp2-334", GIB).map(|cap| cap.base), Some(1002.0));
        assert_eq!(at("aws-gp2-9000", GIB), Some(Cap::flat(16_000.0)));
    }

    #[test]
    fn a_name_that_is_not_known_is_not_guessed() {
        for name in [
            "azure-p5",
            "aws-gp2-",
            "aws-gp2-x",
            "aws-gp2-0",
            "aws-gp22",
            "",
        ] {
            assert_eq!(find(name, GIB), None, "{name}");
        }
    }

    #[test]
    fn the_table_holds_every_class() {
        assert_eq!(all().len(), 17);
        assert_eq!(text().lines().count(), 19);
    }
}
