//! One disk: its bytes, its caps, its counters, and the orders it takes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::bucket::Cap;
use crate::classes::cap_json;
use crate::command::{parse, Command};
use crate::pacer::{Caps, Pacer};
use crate::store::Store;
use crate::timer::Timer;

/// Time that each kind of request takes beyond the caps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Latency {
    pub read: Duration,
    pub write: Duration,
    pub flush: Duration,
}

/// What a disk is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    pub class: Option<String>,
    pub caps: Caps,
    pub capped: bool,
    pub credits: f64,
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

/// A disk that can be read, written and ordered about from any thread.
pub struct Disk {
    pub store: Store,
    pub timer: Timer,
    class: Option<String>,
    latency: Latency,
    pacer: Mutex<Pacer>,
    counters: Counters,
    last_error: Mutex<String>,
}

impl Disk {
    /// A disk over `store`.
    pub fn new(store: Store, timer: Timer, setup: Setup) -> Self {
        Self {
            store,
            timer,
            class: setup.class,
            latency: setup.latency,
            pacer: Mutex::new(Pacer::new(setup.caps, setup.credits, setup.capped)),
            counters: Counters::default(),
            last_error: Mutex::default(),
        }
    }

    /// Counts a read of `len` bytes; returns when it may be answered.
    pub fn admit_read(&self, len: u32) -> Instant {
        count(&self.counters.reads, 1);
        count(&self.counters.bytes_read, u64::from(len));
        self.admit(len, self.latency.read)
    }

    /// Counts a write of `len` bytes; returns when it may be answered.
    pub fn admit_write(&self, len: u32) -> Instant {
        count(&self.counters.writes, 1);
        count(&self.counters.bytes_written, u64::from(len));
        self.admit(len, self.latency.write)
    }

    /// Counts a flush, which no cloud counts as an I/O; returns when it may be answered.
    pub fn admit_flush(&self) -> Instant {
        count(&self.counters.flushes, 1);
        Instant::now() + self.latency.flush
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
        let (capped, [ios, bytes]) = {
            let pacer = lock(&self.pacer);
            (pacer.on(), pacer.state(Instant::now()))
        };
        let chunks = self.store.overlay_chunks();
        let state = json!({
            "pid": std::process::id(),
            "size": self.store.size(),
            "mode": if chunks.is_some() { "overlay" } else { "direct" },
            "class": self.class,
            "capped": capped,
            "caps": {"iops": cap_json(cap(ios)), "bytes_per_s": cap_json(cap(bytes))},
            "credits": {"iops": credits(ios), "bytes_per_s": credits(bytes)},
            "counters": self.counters.json(),
            "overlay_chunks": chunks.unwrap_or(0),
            "last_error": *lock(&self.last_error),
        });
        format!("{state}\n")
    }

    fn admit(&self, len: u32, latency: Duration) -> Instant {
        let now = Instant::now();
        lock(&self.pacer).admit(len, now, self.timer.late()) + latency
    }

    fn obey(&self, line: &str) -> io::Result<()> {
        let now = Instant::now();
        match parse(line).map_err(refused)? {
            Command::Cap(on) => lock(&self.pacer).switch(on, now),
            Command::Credits(level) => lock(&self.pacer).set_level(level, now),
            Command::Drop if !self.store.drop_overlay()? => {
                return Err(refused(
                    "drop: nothing is frozen yet, so nothing to go back to",
                ));
            }
            Command::Freeze if !self.store.freeze()? => {
                return Err(refused("freeze: the base is frozen already"));
            }
            Command::Drop | Command::Freeze => {}
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

fn cap(state: Option<(Cap, f64)>) -> Option<Cap> {
    state.map(|(cap, _)| cap)
}

fn credits(state: Option<(Cap, f64)>) -> Option<f64> {
    state.map(|(_, left)| left)
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
