//! The caps of all disks and of the VM they hang on: each request pays at every one it touches.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::bucket::Cap;
use crate::classes::{cap_json, Class};
use crate::pacer::{Caps, Demand, Pacer};
use crate::stripe::Stripe;

/// What a throttle is started with.
#[derive(Debug, Clone)]
pub struct Limits {
    /// What each disk may do, and up to which size an I/O counts as one.
    pub disk: Caps,
    pub io_unit: u32,
    /// What all disks together may do.
    pub vm: Option<Class>,
    pub on: bool,
    /// The credits at the start, of disks and VM: a share between 0 and 1.
    pub credits: f64,
}

#[derive(Default)]
struct Counters {
    ios: AtomicU64,
    bytes: AtomicU64,
}

/// One disk's caps, and what it was asked for so far.
struct Lane {
    pacer: Mutex<Pacer>,
    counters: Counters,
}

/// Decides when each request may be answered.
pub struct Throttle {
    stripe: Stripe,
    /// The share of all caps that is in force, as the bits of a float.
    scale: AtomicU64,
    /// The share of their maximum that the credits were set to last, as the bits of a float.
    level: AtomicU64,
    io_unit: usize,
    lanes: Vec<Lane>,
    vm: Option<(String, Mutex<Pacer>)>,
}

impl Throttle {
    /// A throttle over the disks of `stripe`.
    pub fn new(stripe: Stripe, limits: &Limits) -> Self {
        let pacer = |caps| Mutex::new(Pacer::new(caps, limits.credits, limits.on));
        let lane = |_| Lane {
            pacer: pacer(limits.disk),
            counters: Counters::default(),
        };
        Self {
            stripe,
            scale: AtomicU64::new(1f64.to_bits()),
            level: AtomicU64::new(limits.credits.to_bits()),
            io_unit: usize::try_from(limits.io_unit).unwrap_or(usize::MAX),
            lanes: (0..stripe.disks()).map(lane).collect(),
            vm: limits
                .vm
                .as_ref()
                .map(|class| (class.name.clone(), pacer(class.caps))),
        }
    }

    /// Admits a request of `len` bytes at `at`; returns when it may be answered.
    ///
    /// Each disk it touches is asked for its share, the VM for all of them; the last one decides.
    pub fn admit(&self, at: u64, len: usize, now: Instant, late: Duration) -> Instant {
        let mut due = now;
        let mut all = Demand::default();
        for (lane, share) in self.lanes.iter().zip(self.stripe.shares(at, len)) {
            if share == 0 {
                continue;
            }
            let demand = self.demand(share);
            lane.counters.ios.fetch_add(1, Ordering::Relaxed);
            lane.counters
                .bytes
                .fetch_add(share as u64, Ordering::Relaxed);
            due = due.max(lock(&lane.pacer).admit(demand, now, late));
            all += demand;
        }
        match &self.vm {
            Some((_, pacer)) if all != Demand::default() => {
                due.max(lock(pacer).admit(all, now, late))
            }
            _ => due,
        }
    }

    /// Does everything at this share of the caps from now on: each I/O counts for more or less.
    pub fn set_scale(&self, share: f64) {
        self.scale.store(share.to_bits(), Ordering::Relaxed);
    }

    /// The share of the caps that is in force.
    pub fn scale(&self) -> f64 {
        f64::from_bits(self.scale.load(Ordering::Relaxed))
    }

    /// Switches all caps on or off.
    pub fn switch(&self, on: bool, now: Instant) {
        self.each(|pacer| pacer.switch(on, now));
    }

    /// Sets all credits, the VM's too, to `level` (0 to 1) of their maximum.
    pub fn set_level(&self, level: f64, now: Instant) {
        self.level.store(level.to_bits(), Ordering::Relaxed);
        self.each(|pacer| pacer.set_level(level, now));
    }

    /// The share of their maximum that the credits were set to last.
    pub fn level(&self) -> f64 {
        f64::from_bits(self.level.load(Ordering::Relaxed))
    }

    /// What each disk may do and has left, and what the VM may.
    ///
    /// `credits` at the top are those of the disk that has the fewest.
    pub fn state(&self, now: Instant) -> Value {
        let lanes: Vec<_> = self.lanes.iter().map(|lane| lane.look(now)).collect();
        let least = |kind: usize| {
            lanes
                .iter()
                .filter_map(|lane| lane.credits[kind])
                .reduce(f64::min)
        };
        let caps = lanes.first().map_or([None; 2], |lane| lane.caps);
        json!({
            "capped": lanes.first().is_some_and(|lane| lane.on),
            "caps": pair(caps.map(cap_json)),
            "credits": pair([least(0), least(1)]),
            "disks": lanes.iter().map(Look::json).collect::<Vec<_>>(),
            "vm": self.vm.as_ref().map(|(name, pacer)| {
                let look = Look::at(&lock(pacer), now);
                json!({
                    "class": name,
                    "caps": pair(look.caps.map(cap_json)),
                    "credits": pair(look.credits),
                })
            }),
        })
    }

    /// An I/O of up to the unit counts as one; a larger one counts per unit.
    fn demand(&self, share: usize) -> Demand {
        let count = |n: usize| u32::try_from(n).map_or(f64::from(u32::MAX), f64::from);
        let scale = self.scale();
        Demand {
            ios: count(share.div_ceil(self.io_unit)) / scale,
            bytes: count(share) / scale,
        }
    }

    fn each(&self, act: impl Fn(&mut Pacer)) {
        let vm = self.vm.iter().map(|(_, pacer)| pacer);
        for pacer in self.lanes.iter().map(|lane| &lane.pacer).chain(vm) {
            act(&mut lock(pacer));
        }
    }
}

/// The state of one pacer, and of the lane it belongs to.
struct Look {
    on: bool,
    caps: [Option<Cap>; 2],
    credits: [Option<f64>; 2],
    counted: [u64; 2],
}

impl Look {
    fn at(pacer: &Pacer, now: Instant) -> Self {
        let state = pacer.state(now);
        Self {
            on: pacer.on(),
            caps: state.map(|one| one.map(|(cap, _)| cap)),
            credits: state.map(|one| one.map(|(_, left)| left)),
            counted: [0; 2],
        }
    }

    fn json(&self) -> Value {
        json!({
            "credits": pair(self.credits),
            "ios": self.counted[0],
            "bytes": self.counted[1],
        })
    }
}

impl Lane {
    fn look(&self, now: Instant) -> Look {
        let counted = [&self.counters.ios, &self.counters.bytes];
        Look {
            counted: counted.map(|counter| counter.load(Ordering::Relaxed)),
            ..Look::at(&lock(&self.pacer), now)
        }
    }
}

fn pair<T: Into<Value>>([ios, bytes]: [T; 2]) -> Value {
    json!({"iops": ios.into(), "bytes_per_s": bytes.into()})
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
