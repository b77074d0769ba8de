//! The clocks, and the deadlines: which one is due, which were missed, when there are no more.

use std::time::Duration;

use rustix::time::{clock_gettime, ClockId, Timespec};

/// The deadlines of one run; times are nanoseconds since its start.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    pub interval_ns: i64,
    last: u64,
    /// The deadline that is due, or comes next.
    pub due: u64,
    /// The last one that had its tick.
    pub ticked: u64,
    pub ticks: u64,
    pub missed: u64,
}

impl Schedule {
    /// From 0 on, each `interval`, up to and with `duration`.
    #[must_use]
    pub fn new(interval: Duration, duration: Option<Duration>) -> Self {
        let last = duration.map_or(u128::MAX, |all| all.as_nanos() / interval.as_nanos());
        Self {
            interval_ns: i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX),
            last: u64::try_from(last).unwrap_or(u64::MAX),
            due: 0,
            ticked: 0,
            ticks: 0,
            missed: 0,
        }
    }

    /// When the due deadline is.
    #[must_use]
    pub fn deadline_ns(&self) -> i64 {
        let due = i64::try_from(self.due).unwrap_or(i64::MAX);
        due.saturating_mul(self.interval_ns)
    }

    /// The due tick is done: when the next one is; none when that was the last.
    pub fn done(&mut self, now_ns: i64) -> Option<i64> {
        self.ticked = self.due;
        self.ticks += 1;
        self.due += 1;
        self.skip(now_ns).then(|| self.deadline_ns())
    }

    /// Skips the deadlines whose interval is over; false when none is left.
    pub fn skip(&mut self, now_ns: i64) -> bool {
        let now = u64::try_from(now_ns / self.interval_ns).unwrap_or(0);
        let next = self.due.max(now);
        let beyond = self.last.saturating_add(1);
        self.missed += next.min(beyond).saturating_sub(self.due);
        self.due = next;
        self.due <= self.last
    }
}

const SECOND: i64 = 1_000_000_000;

/// Nanoseconds of `CLOCK_MONOTONIC`.
#[must_use]
pub fn monotonic_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// Nanoseconds since 1970.
#[must_use]
pub fn wall_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// CPU time that all threads of this process used so far, in nanoseconds.
#[must_use]
pub fn cpu_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::ProcessCPUTime))
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * SECOND + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(last: u64) -> Schedule {
        Schedule::new(
            Duration::from_nanos(10),
            Some(Duration::from_nanos(last * 10)),
        )
    }

    #[test]
    fn a_late_tick_is_not_missed() {
        let mut schedule = schedule(9);
        assert_eq!(schedule.done(4), Some(10));
        assert!(schedule.skip(19));
        assert_eq!((schedule.due, schedule.missed), (1, 0));
        assert_eq!(schedule.done(25), Some(20));
        assert_eq!(schedule.missed, 0);
    }

    #[test]
    fn deadlines_that_passed_are_missed_not_caught_up() {
        let mut schedule = schedule(9);
        assert_eq!(schedule.done(4), Some(10));
        assert!(schedule.skip(57));
        assert_eq!((schedule.due, schedule.missed), (5, 4));
        assert_eq!(schedule.done(58), Some(60));
        assert_eq!((schedule.ticks, schedule.missed), (2, 4));
    }

    #[test]
    fn the_last_deadline_is_the_end() {
        let mut schedule = schedule(2);
        assert_eq!(schedule.done(0), Some(10));
        assert_eq!(schedule.done(11), Some(20));
        assert_eq!(schedule.done(20), None);
        assert_eq!((schedule.ticks, schedule.missed), (3, 0));
    }

    #[test]
    fn what_is_missed_ends_with_the_last_deadline() {
        let mut schedule = schedule(4);
        assert_eq!(schedule.done(0), Some(10));
        assert!(!schedule.skip(1000));
        assert_eq!(schedule.missed, 4);
    }
}
