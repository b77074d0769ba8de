//! The volumes of AWS EBS and its EBS-optimized instances, as AWS's documentation lists them.
//!
//! Volumes: "Amazon EBS volume types" and "Throughput Optimized HDD and Cold HDD volumes" (2023);
//! MiB are 2^20 bytes.  Instances: "Amazon EBS-optimized instances" (2022); MB are 10^6 bytes.

use super::{Class, MB};
use crate::bucket::Cap;
use crate::pacer::Caps;

const MIB: f64 = 1_048_576.0;
/// GiB in a TiB.
const TIB: f64 = 1024.0;

/// Up to which size an I/O counts as one: on SSD, and on HDD.
const SSD_UNIT: u32 = 256 * 1024;
const HDD_UNIT: u32 = 1024 * 1024;

/// The credits of a gp2 volume, in I/Os.
const GP2_CREDITS: f64 = 5.4e6;
const GP2_BURST_IOPS: f64 = 3000.0;

/// The maximum is promised for 30 minutes at least once in 24 hours.
const INSTANCE_BURST_S: f64 = 1800.0;

/// Name, IOPS, MiB/s; a volume that is sold by the IOPS at the most it can have.
const FLAT: [(&str, f64, f64); 4] = [
    ("aws-gp3", 3000.0, 125.0),
    ("aws-gp3-max", 16_000.0, 1000.0),
    ("aws-io1", 64_000.0, 1000.0),
    ("aws-io2", 256_000.0, 4000.0),
];

/// Name, MiB/s per TiB and their most, the same while there are credits, IOPS.
const HDD: [(&str, [f64; 2], [f64; 2], f64); 2] = [
    ("aws-st1", [40.0, 500.0], [250.0, 500.0], 500.0),
    ("aws-sc1", [12.0, 192.0], [80.0, 250.0], 250.0),
];

/// Name, IOPS and MB/s, and both at the most.
#[rustfmt::skip]
const INSTANCES: [(&str, f64, f64, f64, f64); 17] = [
    ("aws-m5.large", 3600.0, 81.25, 18_750.0, 593.75),
    ("aws-m5.xlarge", 6000.0, 143.75, 18_750.0, 593.75),
    ("aws-m5.2xlarge", 12_000.0, 287.5, 18_750.0, 593.75),
    ("aws-m5.4xlarge", 18_750.0, 593.75, 18_750.0, 593.75),
    ("aws-m5.8xlarge", 30_000.0, 850.0, 30_000.0, 850.0),
    ("aws-m5.12xlarge", 40_000.0, 1187.5, 40_000.0, 1187.5),
    ("aws-m5.16xlarge", 60_000.0, 1700.0, 60_000.0, 1700.0),
    ("aws-m5.24xlarge", 80_000.0, 2375.0, 80_000.0, 2375.0),
    ("aws-m6i.large", 3600.0, 81.25, 40_000.0, 1250.0),
    ("aws-m6i.xlarge", 6000.0, 156.25, 40_000.0, 1250.0),
    ("aws-m6i.2xlarge", 12_000.0, 312.5, 40_000.0, 1250.0),
    ("aws-m6i.4xlarge", 20_000.0, 625.0, 40_000.0, 1250.0),
    ("aws-m6i.8xlarge", 40_000.0, 1250.0, 40_000.0, 1250.0),
    ("aws-m6i.12xlarge", 60_000.0, 1875.0, 60_000.0, 1875.0),
    ("aws-m6i.16xlarge", 80_000.0, 2500.0, 80_000.0, 2500.0),
    ("aws-m6i.24xlarge", 120_000.0, 3750.0, 120_000.0, 3750.0),
    ("aws-m6i.32xlarge", 160_000.0, 5000.0, 160_000.0, 5000.0),
];

/// Every volume type, those that depend on their size at sizes that show the rule.
pub fn disks() -> impl Iterator<Item = Class> {
    let sized = |name: &'static str, sizes: [u32; 3]| {
        sizes
            .into_iter()
            .filter_map(move |gib| disk(&format!("{name}-{gib}"), 1))
    };
    sized("aws-gp2", [100, 334, 1000])
        .chain(FLAT.iter().map(flat))
        .chain(sized("aws-st1", [128, 1024, 2048]))
        .chain(sized("aws-sc1", [128, 1024, 4096]))
}

/// Every instance.
pub fn vms() -> impl Iterator<Item = Class> {
    INSTANCES.iter().map(|(name, iops, mb, most, most_mb)| {
        let cap = |base: f64, most: f64| Cap::bursting(base, most, INSTANCE_BURST_S);
        Class {
            name: (*name).to_owned(),
            caps: Caps {
                ios: Some(cap(*iops, *most)),
                bytes: Some(cap(mb * MB, most_mb * MB)),
            },
            io_unit: SSD_UNIT,
        }
    })
}

/// The volume of a name; `aws-gp2`, `aws-st1` and `aws-sc1` are of `gib` GiB unless the name gives
/// so: `aws-gp2-334`.
pub fn disk(name: &str, gib: u32) -> Option<Class> {
    if let Some(row) = FLAT.iter().find(|row| row.0 == name) {
        return Some(flat(row));
    }
    let (kind, gib) = match name.rsplit_once('-') {
        Some((kind, given)) if kind != "aws" => (kind, given.parse().ok()?),
        _ => (name, gib),
    };
    let class = |caps, io_unit| Class {
        name: name.to_owned(),
        caps,
        io_unit,
    };
    match (gib, kind) {
        (0, _) => None,
        (_, "aws-gp2") => Some(class(gp2(gib), SSD_UNIT)),
        _ => {
            let row = HDD.iter().find(|row| row.0 == kind)?;
            Some(class(hdd(row, gib), HDD_UNIT))
        }
    }
}

fn flat((name, iops, mib): &(&str, f64, f64)) -> Class {
    Class {
        name: (*name).to_owned(),
        caps: Caps {
            ios: Some(Cap::flat(*iops)),
            bytes: Some(Cap::flat(mib * MIB)),
        },
        io_unit: SSD_UNIT,
    }
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

/// A full bucket holds the volume's own size, enough for one scan of it.
fn hdd(row: &(&str, [f64; 2], [f64; 2], f64), gib: u32) -> Caps {
    let tib = f64::from(gib) / TIB;
    let rate = |[each, most]: [f64; 2]| (each * tib).min(most) * MIB;
    let (base, burst) = (rate(row.1), rate(row.2));
    let bytes = if burst > base {
        Cap {
            base,
            burst,
            credits: f64::from(gib) * TIB * MIB,
        }
    } else {
        Cap::flat(base)
    };
    Caps {
        ios: Some(Cap::flat(row.3)),
        bytes: Some(bytes),
    }
}
