//! What can go wrong with a disk: its power is cut, requests fail.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::time::{clock_gettime, ClockId};
use serde_json::{json, Value};

use crate::power::{torn, Cache, Fate, Loss, Random, Trap};
use crate::store::Store;

/// What of a disk's faults is ordered.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Cache(CacheMode),
    Cut(Fate),
    Trap(Trap),
    PowerOn,
    /// Shares of reads, writes and flushes that fail.
    Errors([f64; 3]),
}

/// How a disk treats its writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    /// Each is durable at once.
    Off,
    /// It is durable after a flush.
    On,
    /// A flush is answered, and nothing is made durable.
    Lies,
}

enum Power {
    /// Without a cache: nothing can be lost.
    Safe,
    Cached {
        cache: Cache,
        trap: Option<Trap>,
        lies: bool,
    },
    Off,
}

/// When the power was cut, in seconds of the monotonic clock, and what that did.
struct LastCut {
    at_s: f64,
    loss: Loss,
}

struct State {
    power: Power,
    cuts: u64,
    last: Option<LastCut>,
    errors: [f64; 3],
    random: Random,
}

/// The faults of one disk.
pub struct Faults(Mutex<State>);

/// What a flush makes durable: of which life between two cuts, and up to which write.
#[derive(Clone, Copy)]
pub struct Mark {
    cuts: u64,
    write: u64,
}

impl Default for Faults {
    fn default() -> Self {
        Self(Mutex::new(State {
            power: Power::Safe,
            cuts: 0,
            last: None,
            errors: [0.0; 3],
            random: Random(1),
        }))
    }
}

impl Faults {
    /// Reads as the store does, unless it fails.
    pub fn read(&self, store: &Store, at: u64, len: u32) -> io::Result<Vec<u8>> {
        self.lock().fails(0)?;
        store.read(at, len)
    }

    /// Writes as the store does, unless it fails; a write into a trap is torn, and cuts the power.
    pub fn write(&self, store: &Store, at: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.fails(1)?;
        match &mut state.power {
            Power::Safe => {
                drop(state); // writers at once
                store.write(at, data)
            }
            Power::Cached { trap, .. }
                if trap.as_ref().is_some_and(|t| t.holds(at, data.len())) =>
            {
                let seed = trap.take().map_or(0, |one| one.seed);
                let mut random = Random(seed);
                state.cut(store, Fate::Drawn(seed))?;
                store.write(at, torn(data, &mut random))?;
                Err(failed())
            }
            Power::Cached { cache, .. } => {
                let old = store.read(at, u32::try_from(data.len()).unwrap_or(u32::MAX))?;
                store.write(at, data)?;
                cache.add(at, old, data);
                Ok(())
            }
            Power::Off => Err(failed()),
        }
    }

    /// Returns what a flush that begins now makes durable.
    pub fn begin_flush(&self) -> io::Result<Mark> {
        let mut state = self.lock();
        state.fails(2)?;
        let write = match &state.power {
            Power::Cached { cache, .. } => cache.mark(),
            Power::Safe | Power::Off => 0,
        };
        let cuts = state.cuts;
        Ok(Mark { cuts, write })
    }

    /// Makes durable what was written before the flush; fails if the power was cut meanwhile.
    pub fn end_flush(&self, mark: Mark) -> io::Result<()> {
        let mut state = self.lock();
        if state.cuts != mark.cuts {
            return Err(failed());
        }
        match &mut state.power {
            Power::Cached { cache, lies, .. } if !*lies => cache.flushed(mark.write),
            Power::Off => return Err(failed()),
            Power::Cached { .. } | Power::Safe => {}
        }
        Ok(())
    }

    /// Obeys an order; an error names what has to come first.
    pub fn order(&self, order: Order, store: &Store) -> io::Result<()> {
        let mut state = self.lock();
        match (order, &mut state.power) {
            (Order::Cache(_), Power::Off) => return Err(refused("cache: power on first")),
            (Order::Cache(mode), _) => state.power = Power::cached(mode),
            (Order::Cut(fate), Power::Cached { .. }) => state.cut(store, fate)?,
            (Order::Trap(new), Power::Cached { trap, .. }) => *trap = Some(new),
            (Order::Cut(_) | Order::Trap(_), _) => {
                return Err(refused("cut: cache on first, with the power on"));
            }
            (Order::PowerOn, Power::Off) => state.power = Power::cached(CacheMode::On),
            (Order::PowerOn, _) => return Err(refused("power: is on")),
            (Order::Errors(shares), _) => state.errors = shares,
        }
        Ok(())
    }

    /// Ends the cache, as the bytes are replaced.
    pub fn reset(&self) {
        self.lock().power = Power::Safe;
    }

    /// Returns whether all that was written is durable.
    pub fn is_safe(&self) -> bool {
        matches!(self.lock().power, Power::Safe)
    }

    /// The state, as `ctl` shows it.
    pub fn json(&self) -> Value {
        let state = self.lock();
        let (power, cache, unflushed) = match &state.power {
            Power::Safe => ("on", "off", 0),
            Power::Cached { cache, lies, .. } => {
                ("on", if *lies { "lies" } else { "on" }, cache.len())
            }
            Power::Off => ("off", "on", 0),
        };
        let cut = state.last.as_ref().map(|last| {
            let Loss { lost, kept, torn } = last.loss;
            json!({"at_s": last.at_s, "lost": lost, "kept": kept, "torn": torn})
        });
        json!({
            "power": power,
            "cache": cache,
            "unflushed": unflushed,
            "cuts": state.cuts,
            "cut": cut,
            "errors": state.errors,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Power {
    fn cached(mode: CacheMode) -> Self {
        match mode {
            CacheMode::Off => Self::Safe,
            CacheMode::On | CacheMode::Lies => Self::Cached {
                cache: Cache::default(),
                trap: None,
                lies: mode == CacheMode::Lies,
            },
        }
    }
}

impl State {
    fn cut(&mut self, store: &Store, fate: Fate) -> io::Result<()> {
        // A request that comes later finds the power off, whatever fails here.
        let Power::Cached { cache, .. } = std::mem::replace(&mut self.power, Power::Off) else {
            return Ok(());
        };
        self.cuts += 1;
        self.last = None; // until this one is complete
        let at_s = monotonic_s();
        let loss = cache.cut(fate, |at, data| store.write(at, data))?;
        self.last = Some(LastCut { at_s, loss });
        Ok(())
    }

    /// Returns an error without power, and for its share of the requests of a kind.
    fn fails(&mut self, kind: usize) -> io::Result<()> {
        let share = self.errors[kind];
        if matches!(self.power, Power::Off) || (share > 0.0 && self.random.comes(share)) {
            return Err(failed());
        }
        Ok(())
    }
}

fn monotonic_s() -> f64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0.0, |t| Duration::from(t).as_secs_f64())
}

fn failed() -> io::Error {
    io::Error::from_raw_os_error(nix::errno::Errno::EIO as i32)
}

fn refused(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}
