//! The device that is served: its bytes, its caps, its counters, and the orders it takes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::command::{parse, Command};
use crate::faults::Faults;
use crate::store::Store;
use crate::throttle::{Limits, Throttle};
use crate::timer::Timer;

/// Time that each kind of request takes beyond the caps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latency {
    pub read: Duration,
    pub write: Duration,
    pub flush: Duration,
}

/// What a device is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    pub class: Option<String>,
    pub limits: Limits,
    pub latency: Latency,
}

#[derive(Default)]
struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    flushes: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
}

/// A device that can be read, written and ordered about from any thread.
pub struct Disk {
    pub store: Store,
    pub timer: Timer,
    pub faults: Faults,
    class: Option<String>,
    latency: Latency,
    /// What each kind of request takes longer, while a dose is in force.
    dose: Mutex<Latency>,
    throttle: Throttle,
    counters: Counters,
    last_error: Mutex<String>,
}

impl Disk {
    /// A device over `store`.
    pub fn new(store: Store, timer: Timer, setup: Setup) -> Self {
        Self {
            throttle: Throttle::new(store.stripe(), &setup.limits),
            store,
            timer,
            faults: Faults::default(),
            class: setup.class,
            latency: setup.latency,
            dose: Mutex::default(),
            counters: Counters::default(),
            last_error: Mutex::default(),
        }
    }

    /// Counts a read of `len` bytes at `at`; returns when it may be answered.
    pub fn admit_read(&self, at: u64, len: u32) -> Instant {
        count(&self.counters.reads, 1);
        count(&self.counters.bytes_read, u64::from(len));
        self.admit(at, len, self.latency.read + lock(&self.dose).read)
    }

    /// Counts a write of `len` bytes at `at`; returns when it may be answered.
    pub fn admit_write(&self, at: u64, len: u32) -> Instant {
        count(&self.counters.writes, 1);
        count(&self.counters.bytes_written, u64::from(len));
        self.admit(at, len, self.latency.write + lock(&self.dose).write)
    }

    /// Counts a flush, which no cloud counts as an I/O; returns when it may be answered.
    ///
    /// It goes to all disks at once, which take the same time for it.
    pub fn admit_flush(&self) -> Instant {
        count(&self.counters.flushes, 1);
        Instant::now() + self.latency.flush + lock(&self.dose).flush
    }

    /// Obeys each line of `text`, up to the first that cannot be obeyed.
    pub fn order(&self, text: &str) -> io::Result<()> {
        let done = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .try_for_each(|line| self.obey(line));
        let words = done.as_ref().err().map(ToString::to_string);
        *lock(&self.last_error) = words.unwrap_or_default();
        done
    }

    /// The state as one JSON object and a newline.
    pub fn state(&self) -> String {
        let stripe = self.store.stripe();
        let pages = self.store.overlay_pages();
        let mut state = self.throttle.state(Instant::now());
        state["pid"] = json!(std::process::id());
        state["size"] = json!(self.store.size());
        state["chunk"] = json!(stripe.chunk());
        state["mode"] = json!(if pages.is_some() { "overlay" } else { "direct" });
        state["class"] = json!(self.class);
        state["scale"] = json!(self.throttle.scale());
        state["credits_level"] = json!(self.throttle.level());
        let dose = *lock(&self.dose);
        state["dose_us"] =
            json!([dose.read, dose.write, dose.flush].map(|d| d.as_secs_f64() * 1e6));
        state["counters"] = self.counters.json();
        state["faults"] = self.faults.json();
        state["overlay_pages"] = json!(pages.unwrap_or(0));
        state["last_error"] = json!(*lock(&self.last_error));
        format!("{state}\n")
    }

    fn admit(&self, at: u64, len: u32, latency: Duration) -> Instant {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let late = self.timer.late();
        self.throttle.admit(at, len, Instant::now(), late) + latency
    }

    fn obey(&self, line: &str) -> io::Result<()> {
        let now = Instant::now();
        match parse(line).map_err(refused)? {
            Command::Cap(on) => self.throttle.switch(on, now),
            Command::Credits(level) => self.throttle.set_level(level, now),
            Command::Refill => self.throttle.set_level(self.throttle.level(), now),
            Command::Drop if !self.store.drop_overlay()? => {
                return Err(refused(
                    "drop: nothing is frozen yet, so nothing to go back to",
                ));
            }
            Command::Freeze if !self.faults.is_safe() => {
                return Err(refused("freeze: cache off first"));
            }
            Command::Freeze if !self.store.freeze()? => {
                return Err(refused("freeze: the base is frozen already"));
            }
            Command::Drop => self.faults.reset(),
            Command::Freeze => {}
            Command::Scale(share) => self.throttle.set_scale(share),
            Command::Stall(time) => self.timer.hold(Instant::now() + time),
            Command::Fault(order) => self.faults.order(order, &self.store)?,
            Command::Latency([read, write, flush]) => {
                *lock(&self.dose) = Latency { read, write, flush };
            }
        }
        Ok(())
    }
}

impl Counters {
    fn json(&self) -> Value {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        json!({
            "reads": read(&self.reads),
            "writes": read(&self.writes),
            "flushes": read(&self.flushes),
            "bytes_read": read(&self.bytes_read),
            "bytes_written": read(&self.bytes_written),
        })
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

fn refused(words: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words.into())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
