//! What requests pay, at each disk and at the VM.

use std::time::{Duration, Instant};

use crate::bucket::Cap;
use crate::classes::Class;
use crate::pacer::Caps;
use crate::stripe::Stripe;
use crate::throttle::{Limits, Throttle};

const KIB: usize = 1024;

fn limits(iops: f64, vm: Option<f64>) -> Limits {
    let caps = |rate| Caps {
        ios: Some(Cap::flat(rate)),
        bytes: None,
    };
    Limits {
        disk: caps(iops),
        io_unit: 256 * 1024,
        vm: vm.map(|rate| Class {
            name: "vm".into(),
            caps: caps(rate),
            io_unit: 256 * 1024,
        }),
        on: true,
        credits: 0.0,
    }
}

/// When the last of `count` requests may be answered, each `len` bytes long.
fn last_due(throttle: &Throttle, len: usize, count: u64) -> f64 {
    let now = Instant::now();
    let due = (0..count)
        .map(|number| throttle.admit(number * len as u64, len, now, Duration::ZERO))
        .max();
    due.map_or(0.0, |due| due.duration_since(now).as_secs_f64())
}

#[test]
fn a_large_io_counts_per_unit() {
    let one = |len, count| {
        let throttle = Throttle::new(Stripe::new(1, 4096), &limits(100.0, None));
        last_due(&throttle, len, count)
    };
    assert!((one(256 * KIB, 101) - 1.0).abs() < 0.01);
    assert!((one(260 * KIB, 51) - 1.0).abs() < 0.01);
    assert!((one(1024 * KIB, 26) - 1.0).abs() < 0.01);
}

#[test]
fn four_disks_give_four_times_as_much() {
    let throttle = Throttle::new(Stripe::new(4, 16 * 1024), &limits(100.0, None));
    assert!((last_due(&throttle, 16 * KIB, 404) - 1.0).abs() < 0.01);
}

#[test]
fn all_disks_share_what_the_vm_may() {
    let throttle = Throttle::new(Stripe::new(4, 16 * 1024), &limits(100.0, Some(200.0)));
    assert!((last_due(&throttle, 16 * KIB, 202) - 1.0).abs() < 0.02);
}

#[test]
fn a_request_over_chunks_pays_at_each_disk_and_for_each_at_the_vm() {
    let over_two = |vm| {
        let throttle = Throttle::new(Stripe::new(2, 8 * 1024), &limits(100.0, vm));
        last_due(&throttle, 16 * KIB, 101)
    };
    assert!((over_two(None) - 1.0).abs() < 0.01);
    assert!((over_two(Some(100.0)) - 2.0).abs() < 0.02);
}

#[test]
fn what_a_request_has_on_one_disk_is_one_io() {
    let throttle = Throttle::new(Stripe::new(4, 64 * 1024), &limits(100.0, None));
    // 1 MiB is four chunks a disk, which lie there side by side.
    assert!((last_due(&throttle, 1024 * KIB, 101) - 1.0).abs() < 0.01);
    let state = throttle.state(Instant::now());
    assert_eq!(state["disks"][3]["ios"], 101);
    assert_eq!(state["disks"][3]["bytes"], 101 * 256 * 1024);
}

#[test]
fn a_busy_disk_does_not_hold_up_another() {
    let throttle = Throttle::new(Stripe::new(2, 4096), &limits(10.0, None));
    let now = Instant::now();
    (0..50).for_each(|_| {
        throttle.admit(0, 4096, now, Duration::ZERO);
    });
    assert_eq!(throttle.admit(4096, 4096, now, Duration::ZERO), now);
}

#[test]
fn credits_are_each_disks_own_and_the_vms() {
    let bursting = Caps {
        ios: Some(Cap::bursting(100.0, 300.0, 10.0)),
        bytes: None,
    };
    let mut limits = limits(100.0, Some(1000.0));
    limits.disk = bursting;
    let throttle = Throttle::new(Stripe::new(2, 4096), &limits);
    let now = Instant::now();
    throttle.set_level(1.0, now);
    (0..30).for_each(|_| {
        throttle.admit(4096, 4096, now, Duration::ZERO);
    });
    let state = throttle.state(now);
    assert_eq!(state["disks"][0]["credits"]["iops"], 2000.0);
    let left = state["disks"][1]["credits"]["iops"]
        .as_f64()
        .expect("a number");
    assert!((left - 1980.0).abs() < 1.0, "{left}");
    assert_eq!(state["credits"]["iops"], left);
    assert_eq!(state["vm"]["class"], "vm");
    throttle.switch(false, now);
    assert_eq!(throttle.state(now)["capped"], false);
}

#[test]
fn a_scale_slows_disks_and_vm_alike() {
    let throttle = Throttle::new(Stripe::new(4, 16 * 1024), &limits(100.0, Some(200.0)));
    throttle.set_scale(0.8);
    assert!((last_due(&throttle, 16 * KIB, 162) - 1.0).abs() < 0.02);
    let throttle = Throttle::new(Stripe::new(1, 4096), &limits(100.0, None));
    throttle.set_scale(1.25);
    assert!((last_due(&throttle, 4096, 126) - 1.0).abs() < 0.01);
}
