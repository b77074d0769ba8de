//! The clocks: monotonic for deadlines, wall for people, and the probe's own CPU time.

use rustix::time::{clock_gettime, ClockId, Timespec};

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
