//! Azure's disks and VM sizes, as Microsoft's documentation lists them; MB are 10^6 bytes.
//!
//! Disks: the size tables of Premium SSD (March 2023), Standard SSD (February 2023) and Standard
//! HDD (2019, unchanged since), "Azure managed disk types".  VMs: the uncached limits of the
//! Dsv3 (2020) and Dsv5 (2021) series; Esv3 and Esv5 have those of the same number of vCPUs.

use super::{Class, MB};
use crate::bucket::Cap;
use crate::pacer::Caps;

/// An I/O of up to this size counts as one; a larger one counts per this size.
const IO_UNIT: u32 = 256 * 1024;
/// Credits last 30 minutes of full burst, on disks and on VMs.
const BURST_S: f64 = 1800.0;

/// One row: name, IOPS and MB/s, and both while there are credits; 0 is no burst.
type Row = (&'static str, f64, f64, f64, f64);

#[rustfmt::skip]
const DISKS: [Row; 49] = [
    ("azure-p1", 120.0, 25.0, 3500.0, 170.0),
    ("azure-p2", 120.0, 25.0, 3500.0, 170.0),
    ("azure-p3", 120.0, 25.0, 3500.0, 170.0),
    ("azure-p4", 120.0, 25.0, 3500.0, 170.0),
    ("azure-p6", 240.0, 50.0, 3500.0, 170.0),
    ("azure-p10", 500.0, 100.0, 3500.0, 170.0),
    ("azure-p15", 1100.0, 125.0, 3500.0, 170.0),
    ("azure-p20", 2300.0, 150.0, 3500.0, 170.0),
    ("azure-p30", 5000.0, 200.0, 0.0, 0.0),
    ("azure-p40", 7500.0, 250.0, 0.0, 0.0),
    ("azure-p50", 7500.0, 250.0, 0.0, 0.0),
    ("azure-p60", 16_000.0, 500.0, 0.0, 0.0),
    ("azure-p70", 18_000.0, 750.0, 0.0, 0.0),
    ("azure-p80", 20_000.0, 900.0, 0.0, 0.0),
    // On-demand bursting is paid for and has no credits: it is simply a faster disk.
    ("azure-p30-ondemand", 30_000.0, 1000.0, 0.0, 0.0),
    ("azure-p40-ondemand", 30_000.0, 1000.0, 0.0, 0.0),
    ("azure-p50-ondemand", 30_000.0, 1000.0, 0.0, 0.0),
    ("azure-p60-ondemand", 30_000.0, 1000.0, 0.0, 0.0),
    ("azure-p70-ondemand", 30_000.0, 1000.0, 0.0, 0.0),
    ("azure-p80-ondemand", 30_000.0, 1000.0, 0.0, 0.0),
    ("azure-e1", 500.0, 60.0, 600.0, 150.0),
    ("azure-e2", 500.0, 60.0, 600.0, 150.0),
    ("azure-e3", 500.0, 60.0, 600.0, 150.0),
    ("azure-e4", 500.0, 60.0, 600.0, 150.0),
    ("azure-e6", 500.0, 60.0, 600.0, 150.0),
    ("azure-e10", 500.0, 60.0, 600.0, 150.0),
    ("azure-e15", 500.0, 60.0, 600.0, 150.0),
    ("azure-e20", 500.0, 60.0, 600.0, 150.0),
    ("azure-e30", 500.0, 60.0, 1000.0, 250.0),
    ("azure-e40", 500.0, 60.0, 0.0, 0.0),
    ("azure-e50", 500.0, 60.0, 0.0, 0.0),
    ("azure-e60", 2000.0, 400.0, 0.0, 0.0),
    ("azure-e70", 4000.0, 600.0, 0.0, 0.0),
    ("azure-e80", 6000.0, 750.0, 0.0, 0.0),
    ("azure-s4", 500.0, 60.0, 0.0, 0.0),
    ("azure-s6", 500.0, 60.0, 0.0, 0.0),
    ("azure-s10", 500.0, 60.0, 0.0, 0.0),
    ("azure-s15", 500.0, 60.0, 0.0, 0.0),
    ("azure-s20", 500.0, 60.0, 0.0, 0.0),
    ("azure-s30", 500.0, 60.0, 0.0, 0.0),
    ("azure-s40", 500.0, 60.0, 0.0, 0.0),
    ("azure-s50", 500.0, 60.0, 0.0, 0.0),
    ("azure-s60", 1300.0, 300.0, 0.0, 0.0),
    ("azure-s70", 2000.0, 500.0, 0.0, 0.0),
    ("azure-s80", 2000.0, 500.0, 0.0, 0.0),
    // Sold by the IOPS and MB/s: what comes without extra, and the most there is.
    ("azure-premium-v2", 3000.0, 125.0, 0.0, 0.0),
    ("azure-premium-v2-max", 80_000.0, 2000.0, 0.0, 0.0),
    ("azure-ultra-min", 100.0, 25.0, 0.0, 0.0),
    ("azure-ultra-max", 400_000.0, 10_000.0, 0.0, 0.0),
];

#[rustfmt::skip]
const VMS: [Row; 15] = [
    ("azure-d2s-v3", 3200.0, 48.0, 0.0, 0.0),
    ("azure-d4s-v3", 6400.0, 96.0, 0.0, 0.0),
    ("azure-d8s-v3", 12_800.0, 192.0, 0.0, 0.0),
    ("azure-d16s-v3", 25_600.0, 384.0, 0.0, 0.0),
    ("azure-d32s-v3", 51_200.0, 768.0, 0.0, 0.0),
    ("azure-d48s-v3", 76_800.0, 1152.0, 0.0, 0.0),
    ("azure-d64s-v3", 80_000.0, 1200.0, 0.0, 0.0),
    ("azure-d2s-v5", 3750.0, 85.0, 10_000.0, 1200.0),
    ("azure-d4s-v5", 6400.0, 145.0, 20_000.0, 1200.0),
    ("azure-d8s-v5", 12_800.0, 290.0, 20_000.0, 1200.0),
    ("azure-d16s-v5", 25_600.0, 600.0, 40_000.0, 1200.0),
    ("azure-d32s-v5", 51_200.0, 865.0, 80_000.0, 2000.0),
    ("azure-d48s-v5", 76_800.0, 1315.0, 80_000.0, 3000.0),
    ("azure-d64s-v5", 80_000.0, 1735.0, 80_000.0, 3000.0),
    ("azure-d96s-v5", 80_000.0, 2600.0, 80_000.0, 4000.0),
];

/// Every disk, smallest first within its kind.
pub fn disks() -> impl Iterator<Item = Class> {
    DISKS.iter().map(class)
}

/// Every VM size.
pub fn vms() -> impl Iterator<Item = Class> {
    VMS.iter().map(class)
}

fn class(row: &Row) -> Class {
    let (name, iops, mb, burst_iops, burst_mb) = *row;
    let cap = |base: f64, burst: f64| {
        if burst > base {
            Cap::bursting(base, burst, BURST_S)
        } else {
            Cap::flat(base)
        }
    };
    Class {
        name: name.to_owned(),
        caps: Caps {
            ios: Some(cap(iops, burst_iops)),
            bytes: Some(cap(mb * MB, burst_mb * MB)),
        },
        io_unit: IO_UNIT,
    }
}
