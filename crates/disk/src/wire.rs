//! A wire: two network interfaces, and frames that take a given time from one to the other.
//!
//! Kernels without `netem` have no such link.  It should run with real-time priority
//! (`chrt --fifo 1`), as what the kernel does with a frame waits for no CPU either.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sched::{setns, CloneFlags};
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::order::{follow, number};

/// The longest round trip in microseconds: around the earth and back.
const LONGEST_US: f64 = 1e6;
/// Bytes on their way in one direction; what does not fit is lost, as in a full queue.
const MOST: usize = 64 << 20;
/// Larger than any frame.
const FRAME: usize = 65_536;
/// Frames that are taken before those that are due are sent.
const BATCH: usize = 64;

/// The options of `mydyno-disk wire`.
#[derive(Debug, Args)]
pub struct Wire {
    /// A folder with the file `order`: a line `delay` and the microseconds that a round trip takes
    /// longer (`delay 500`); `state` is written there, what is in force.
    #[arg(long)]
    dir: PathBuf,
    /// The name of the interface that is made here.
    #[arg(long)]
    here: String,
    /// The name of the interface that is made in the namespace.
    #[arg(long)]
    there: String,
    /// The namespace: a file below `/run/netns`.
    #[arg(long)]
    namespace: PathBuf,
    /// End, and remove both interfaces, when this process has ended.
    #[arg(long)]
    owner_pid: u32,
}

/// Makes both interfaces and carries frames until the owner is gone; they go with this process.
pub fn run(wire: &Wire) -> Result<()> {
    let here = Arc::new(interface(&wire.here)?);
    let there = Arc::new(inside(&wire.namespace, wire.there.clone())?);
    let one_way_ns = Arc::new(AtomicU64::new(0));
    let (sender, failed) = mpsc::channel();
    for (from, to) in [(&here, &there), (&there, &here)] {
        let (from, to, delay) = (Arc::clone(from), Arc::clone(to), Arc::clone(&one_way_ns));
        let sender = sender.clone();
        thread::spawn(move || {
            let _ = sender.send(carry(&from, &to, &delay));
        });
    }
    follow(&wire.dir, wire.owner_pid, |order| {
        match failed.try_recv() {
            Ok(error) => return Err(error),
            Err(TryRecvError::Disconnected) => return Err(Error::other("a direction has ended")),
            Err(TryRecvError::Empty) => {}
        }
        let round_trip_us = number(order, "delay", 0.0, LONGEST_US).unwrap_or(0.0);
        let one_way = Duration::from_secs_f64(round_trip_us / 2e6);
        let ns = u64::try_from(one_way.as_nanos()).unwrap_or(u64::MAX);
        one_way_ns.store(ns, Ordering::Relaxed);
        Ok(format!("delay {round_trip_us}\n"))
    })
}

fn interface(name: &str) -> Result<SyncDevice> {
    let made = DeviceBuilder::new()
        .name(name)
        .layer(Layer::L2)
        .build_sync()?;
    made.set_nonblocking(true)?;
    Ok(made)
}

/// Makes an interface in another namespace, from a thread that enters it and ends.
fn inside(namespace: &PathBuf, name: String) -> Result<SyncDevice> {
    let namespace = File::open(namespace)?;
    let made = thread::spawn(move || {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        interface(&name)
    });
    made.join()
        .unwrap_or_else(|_| Err(Error::other("the namespace cannot be entered")))
}

/// Carries frames in one direction; returns the error that ended it.
fn carry(from: &SyncDevice, to: &SyncDevice, one_way_ns: &AtomicU64) -> Error {
    let mut queue = Queue::default();
    let mut frame = vec![0; FRAME];
    loop {
        // An end that is down takes no frames, as one that is unplugged.
        while let Some(due) = queue.due(Instant::now()) {
            let _ = to.send(&due);
        }
        if let Err(error) = await_frame(from, queue.wait(Instant::now())) {
            return error;
        }
        for _ in 0..BATCH {
            match from.recv(&mut frame) {
                Ok(length) => {
                    let delay = Duration::from_nanos(one_way_ns.load(Ordering::Relaxed));
                    if delay.is_zero() && queue.frames.is_empty() {
                        let _ = to.send(&frame[..length]);
                    } else {
                        queue.push(Instant::now() + delay, &frame[..length]);
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return error,
            }
        }
    }
}

/// Returns when there is a frame to take, or after `wait`.
fn await_frame(from: &SyncDevice, wait: Option<Duration>) -> Result<()> {
    let mut watched = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut watched, wait.map(TimeSpec::from_duration), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The frames on their way, in the order in which they came: none overtakes another.
#[derive(Default)]
struct Queue {
    frames: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, due: Instant, frame: &[u8]) {
        if self.bytes + frame.len() <= MOST {
            self.bytes += frame.len();
            self.frames.push_back((due, frame.to_vec()));
        }
    }

    fn due(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.wait(now)?.is_zero() {
            let (_, frame) = self.frames.pop_front()?;
            self.bytes -= frame.len();
            return Some(frame);
        }
        None
    }

    /// How long until the next frame is due; none where there is none.
    fn wait(&self, now: Instant) -> Option<Duration> {
        let (due, _) = self.frames.front()?;
        Some(due.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_due_after_its_delay_and_none_overtakes() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let later = now + Duration::from_millis(5);
        queue.push(later, b"first");
        queue.push(now, b"second"); // the delay was shortened meanwhile
        assert_eq!(queue.due(now), None);
        assert_eq!(queue.wait(now), Some(Duration::from_millis(5)));
        assert_eq!(queue.due(later).as_deref(), Some(&b"first"[..]));
        assert_eq!(queue.due(later).as_deref(), Some(&b"second"[..]));
        assert_eq!((queue.due(later), queue.wait(later)), (None, None));
    }

    #[test]
    fn what_does_not_fit_is_lost_and_room_comes_back() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let frame = vec![7; FRAME];
        for _ in 0..MOST / FRAME + 5 {
            queue.push(now, &frame);
        }
        assert_eq!(queue.bytes, MOST);
        assert!(queue.due(now).is_some());
        queue.push(now, b"fits again");
        assert_eq!(queue.frames.len(), MOST / FRAME);
    }
}
