//! The caps of one disk or one VM: I/Os and bytes per second, each with its own bucket.

use std::time::{Duration, Instant};

use crate::bucket::{Bucket, Cap};

/// How far behind the clock a bucket may lag, in seconds: a few late requests cost no throughput.
const SLACK_S: f64 = 0.004;
/// How much lateness of our own is made good, in seconds.
const FORGIVEN_S: f64 = 0.1;

/// What a disk or a VM may do; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Caps {
    pub ios: Option<Cap>,
    pub bytes: Option<Cap>,
}

/// What is asked for at once, in units of the caps.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Demand {
    pub ios: f64,
    pub bytes: f64,
}

impl std::ops::AddAssign for Demand {
    fn add_assign(&mut self, other: Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
    }
}

/// Decides when each I/O may be answered.
#[derive(Debug)]
pub struct Pacer {
    origin: Instant,
    on: bool,
    ios: Option<Bucket>,
    bytes: Option<Bucket>,
}

impl Pacer {
    /// A pacer with its credits at `level` (0 to 1).
    pub fn new(caps: Caps, level: f64, on: bool) -> Self {
        Self {
            origin: Instant::now(),
            on,
            ios: caps.ios.map(|cap| Bucket::new(cap, level, 0.0)),
            bytes: caps.bytes.map(|cap| Bucket::new(cap, level, 0.0)),
        }
    }

    /// Admits what is asked for at `now`; returns when it may be answered.
    ///
    /// `late` is by how much our last answer missed its time.  Who waited for it asks later
    /// than he would have asked a real disk, which is not slower because the processor is busy.
    pub fn admit(&mut self, demand: Demand, now: Instant, late: Duration) -> Instant {
        if !self.on {
            return now;
        }
        let now_s = self.seconds(now);
        let slack_s = SLACK_S + late.as_secs_f64().min(FORGIVEN_S);
        let mut due_s = now_s;
        for (bucket, units) in [(&mut self.ios, demand.ios), (&mut self.bytes, demand.bytes)] {
            if let Some(bucket) = bucket {
                due_s = due_s.max(bucket.admit(units, now_s, slack_s));
            }
        }
        now + Duration::from_secs_f64(due_s - now_s)
    }

    /// Switches the caps on or off.
    pub fn switch(&mut self, on: bool, now: Instant) {
        let now_s = self.seconds(now);
        self.on = on;
        for bucket in self.buckets_mut() {
            bucket.restart(now_s);
        }
    }

    /// Sets all credits to `level` (0 to 1) of their maximum.
    pub fn set_level(&mut self, level: f64, now: Instant) {
        let now_s = self.seconds(now);
        for bucket in self.buckets_mut() {
            bucket.set_level(level, now_s);
        }
    }

    /// Whether the caps are on.
    pub fn on(&self) -> bool {
        self.on
    }

    /// The two caps and the credits left at `now`, I/Os first.
    pub fn state(&self, now: Instant) -> [Option<(Cap, f64)>; 2] {
        let now_s = self.seconds(now);
        [&self.ios, &self.bytes].map(|bucket| {
            bucket
                .as_ref()
                .map(|bucket| (bucket.cap(), bucket.credits(now_s)))
        })
    }

    fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.origin).as_secs_f64()
    }

    fn buckets_mut(&mut self) -> impl Iterator<Item = &mut Bucket> {
        self.ios.iter_mut().chain(self.bytes.iter_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(len: u32) -> Demand {
        Demand {
            ios: 1.0,
            bytes: f64::from(len),
        }
    }

    fn last_due(caps: Caps, len: u32, count: u32) -> f64 {
        let mut pacer = Pacer::new(caps, 0.0, true);
        let now = Instant::now();
        let mut due = now;
        for _ in 0..count {
            due = pacer.admit(one(len), now, Duration::ZERO);
        }
        due.duration_since(now).as_secs_f64()
    }

    fn ios(rate: f64) -> Caps {
        Caps {
            ios: Some(Cap::flat(rate)),
            bytes: None,
        }
    }

    #[test]
    fn the_tighter_cap_decides() {
        let caps = Caps {
            ios: Some(Cap::flat(1000.0)),
            bytes: Some(Cap::flat(1e6)),
        };
        assert!((last_due(caps, 10_000, 101) - 1.0).abs() < 0.01);
        assert!((last_due(caps, 512, 1001) - 1.0).abs() < 0.01);
    }

    #[test]
    fn switched_off_nothing_waits() {
        let mut pacer = Pacer::new(ios(10.0), 0.0, false);
        let now = Instant::now();
        assert!((0..100).all(|_| pacer.admit(one(4096), now, Duration::ZERO) == now));
    }

    #[test]
    fn switched_on_again_it_starts_afresh() {
        let mut pacer = Pacer::new(ios(10.0), 0.0, true);
        let now = Instant::now();
        (0..100).for_each(|_| {
            pacer.admit(one(4096), now, Duration::ZERO);
        });
        pacer.switch(false, now);
        pacer.switch(true, now);
        assert_eq!(pacer.admit(one(4096), now, Duration::ZERO), now);
    }

    #[test]
    fn lateness_of_our_own_is_made_good_once() {
        let mut pacer = Pacer::new(ios(1000.0), 0.0, true);
        let now = Instant::now() + Duration::from_secs(60);
        let late = Duration::from_millis(50);
        let passed = (0..200)
            .filter(|_| pacer.admit(one(4096), now, late) == now)
            .count();
        assert!((54..=55).contains(&passed), "{passed}");
        let later = now + Duration::from_millis(1);
        assert!(pacer.admit(one(4096), later, late) > later);
    }

    #[test]
    fn no_more_than_a_tenth_of_a_second_is_made_good() {
        let mut pacer = Pacer::new(ios(1000.0), 0.0, true);
        let now = Instant::now() + Duration::from_secs(60);
        let passed = (0..1000)
            .filter(|_| pacer.admit(one(4096), now, Duration::from_secs(9)) == now)
            .count();
        assert!((104..=105).contains(&passed), "{passed}");
    }
}
