//! The head of the file: which host, which boot, which clocks.

use std::fs;

use serde_json::{json, Value};

use super::root::{clock_ticks, page_size};

/// The head of a file whose times count from `mono_ns`, which was `wall_ns` for people.
#[must_use]
pub fn head(mono_ns: i64, wall_ns: i64, interval_ns: i64) -> Value {
    json!({
        "wall_ns": wall_ns,
        "mono_ns": mono_ns,
        "interval_ns": interval_ns,
        "host": rustix::system::uname().nodename().to_string_lossy(),
        "boot_id": boot_id(),
        "hz": clock_ticks(),
        "page_size": page_size(),
        "cpus": cpus(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// How many CPUs are at work, whichever of them this process may use.
fn cpus() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    stat.lines().filter(is_cpu).count()
}
