//! The disk and VM classes of the clouds, as their providers publish them.
//!
//! None publishes a latency that could be relied on (for io2, "under 500 microseconds on
//! average"), so none is given here.

mod aws;
mod azure;

use serde_json::{json, Value};

use crate::bucket::Cap;
use crate::pacer::Caps;

const MB: f64 = 1e6;
const GIB: u64 = 1 << 30;

/// What a disk or a VM of a name may do.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    pub name: String,
    pub caps: Caps,
    /// An I/O of up to this size counts as one; a larger one counts per this size.
    pub io_unit: u32,
}

/// The disk class of a name; some depend on the disk's size in bytes unless the name has one.
pub fn disk(name: &str, size: u64) -> Option<Class> {
    let gib = u32::try_from(size.div_ceil(GIB)).unwrap_or(u32::MAX);
    azure::disks()
        .find(|class| class.name == name)
        .or_else(|| aws::disk(name, gib))
}

/// The VM class of a name.
pub fn vm(name: &str) -> Option<Class> {
    azure::vms()
        .chain(aws::vms())
        .find(|class| class.name == name)
}

/// One cap as JSON, in units per second and units; null is no limit.
pub fn cap_json(cap: Option<Cap>) -> Value {
    cap.map_or(
        Value::Null,
        |cap| json!({"base": cap.base, "burst": cap.burst, "credits": cap.credits}),
    )
}

/// The tables as JSON.
pub fn json() -> Value {
    let row = |class: Class| {
        json!({
            "name": class.name,
            "iops": cap_json(class.caps.ios),
            "bytes_per_s": cap_json(class.caps.bytes),
            "io_unit": class.io_unit,
        })
    };
    json!({
        "disks": disks().map(row).collect::<Vec<_>>(),
        "vms": vms().map(row).collect::<Vec<_>>(),
    })
}

/// The tables as text.
pub fn text() -> String {
    let mut lines = vec![head("disk")];
    lines.extend(disks().map(|class| line(&class)));
    lines.push(String::new());
    lines.push("aws-gp2, aws-st1 and aws-sc1 without a number take the size of each disk.".into());
    lines.push(String::new());
    lines.push(head("VM, over all its disks"));
    lines.extend(vms().map(|class| line(&class)));
    lines.join("\n")
}

fn disks() -> impl Iterator<Item = Class> {
    azure::disks().chain(aws::disks())
}

fn vms() -> impl Iterator<Item = Class> {
    azure::vms().chain(aws::vms())
}

fn head(what: &str) -> String {
    format!(
        "{what:<24}{:>8}{:>11}{:>9}{:>12}{:>15}",
        "IOPS", "burst", "MB/s", "burst", "full burst, s"
    )
}

fn line(class: &Class) -> String {
    let ios = class.caps.ios.unwrap_or(Cap::flat(f64::INFINITY));
    let bytes = class.caps.bytes.unwrap_or(Cap::flat(f64::INFINITY));
    let seconds = [ios, bytes]
        .into_iter()
        .filter(|cap| cap.credits > 0.0)
        .map(|cap| cap.credits / (cap.burst - cap.base))
        .reduce(f64::min);
    format!(
        "{:<24}{:>8}{:>11}{:>9.0}{:>12}{:>15}",
        class.name,
        ios.base,
        or_dash(ios.burst > ios.base, ios.burst),
        bytes.base / MB,
        or_dash(bytes.burst > bytes.base, bytes.burst / MB),
        or_dash(seconds.is_some(), seconds.unwrap_or(0.0)),
    )
}

fn or_dash(known: bool, value: f64) -> String {
    if known {
        format!("{value:.0}")
    } else {
        "-".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn ios(name: &str, size: u64) -> Option<Cap> {
        disk(name, size).and_then(|class| class.caps.ios)
    }

    fn bytes(name: &str) -> Option<Cap> {
        disk(name, GIB).and_then(|class| class.caps.bytes)
    }

    #[test]
    fn a_p15_bursts_for_half_an_hour() {
        let want = Cap {
            base: 1100.0,
            burst: 3500.0,
            credits: 4.32e6,
        };
        assert_eq!(ios("azure-p15", GIB), Some(want));
        assert_eq!(bytes("azure-p15").map(|cap| cap.burst), Some(170e6));
    }

    #[test]
    fn what_does_not_burst_has_no_credits() {
        assert_eq!(ios("azure-p30", GIB), Some(Cap::flat(5000.0)));
        assert_eq!(ios("azure-s80", GIB), Some(Cap::flat(2000.0)));
        assert_eq!(ios("azure-e30", GIB).map(|cap| cap.burst), Some(1000.0));
    }

    #[test]
    fn gp2_follows_its_size() {
        let base = |name: &str, size| ios(name, size).map(|cap| cap.base);
        assert_eq!(base("aws-gp2", 8 * GIB), Some(100.0));
        assert_eq!(base("aws-gp2", 334 * GIB), Some(1002.0));
        assert_eq!(base("aws-gp2-334", GIB), Some(1002.0));
        assert_eq!(ios("aws-gp2-9000", GIB), Some(Cap::flat(16_000.0)));
        // From full, 750 GiB last 7200 s at 3000 IOPS (AWS's own example).
        let cap = ios("aws-gp2-750", GIB).expect("known");
        assert!((cap.credits / (cap.burst - cap.base) - 7200.0).abs() < 1e-6);
    }

    #[test]
    fn st1_and_sc1_follow_their_size_up_to_their_most() {
        let mib = |name: &str| {
            let cap = bytes(name).expect("known");
            (cap.base / 1_048_576.0, cap.burst / 1_048_576.0)
        };
        assert_eq!(mib("aws-st1-512"), (20.0, 125.0));
        assert_eq!(mib("aws-st1-2048"), (80.0, 500.0));
        assert_eq!(mib("aws-st1-16384"), (500.0, 500.0));
        assert_eq!(mib("aws-sc1-16384"), (192.0, 250.0));
        let credits = bytes("aws-st1-1024").map(|cap| cap.credits);
        assert_eq!(credits, Some(1024.0 * 1024.0 * 1_048_576.0));
        assert_eq!(
            disk("aws-st1", GIB).map(|class| class.io_unit),
            Some(1 << 20)
        );
    }

    #[test]
    fn vms_have_bursts_where_the_cloud_has_them() {
        let ios = |name: &str| vm(name).and_then(|class| class.caps.ios);
        assert_eq!(ios("azure-d8s-v3"), Some(Cap::flat(12_800.0)));
        assert_eq!(
            ios("azure-d8s-v5"),
            Some(Cap::bursting(12_800.0, 20_000.0, 1800.0))
        );
        assert_eq!(ios("aws-m5.large").map(|cap| cap.burst), Some(18_750.0));
        assert_eq!(ios("azure-p15"), None);
    }

    #[test]
    fn a_name_that_is_not_known_is_not_guessed() {
        for name in [
            "azure-p5",
            "aws-gp2-",
            "aws-gp2-x",
            "aws-gp2-0",
            "aws-gp22",
            "aws-gp2-1-2",
            "aws",
            "",
        ] {
            assert_eq!(disk(name, GIB), None, "{name}");
            assert_eq!(vm(name), None, "{name}");
        }
    }

    #[test]
    fn every_name_in_the_tables_is_found_and_there_once() {
        let mut seen = HashSet::new();
        for class in disks() {
            assert_eq!(disk(&class.name, 1), Some(class.clone()));
            assert!(seen.insert(class.name));
        }
        for class in vms() {
            assert_eq!(vm(&class.name), Some(class.clone()));
            assert!(seen.insert(class.name));
        }
        assert!(seen.iter().all(|name| text().contains(name.as_str())));
    }

    #[test]
    fn a_burst_is_never_below_the_base() {
        for class in disks().chain(vms()) {
            for cap in [class.caps.ios, class.caps.bytes].into_iter().flatten() {
                assert!(
                    cap.burst >= cap.base && cap.credits >= 0.0,
                    "{}",
                    class.name
                );
            }
        }
    }
}
