//! Takes slices of CPUs, so that all else on them runs at a known share of its speed: a dose.
//!
//! It must run with real-time priority (`chrt --fifo 1`); it ends with its owner.

use std::fmt::Write;
use std::io::{Error, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sched::{sched_setaffinity, CpuSet};
use nix::unistd::Pid;

use crate::order::{follow, number, LOOK};

/// One slice in each of these: short beside a segment, and rare, as each costs the others their
/// caches: with 2 ms they lost 5 % more than was taken.
const PERIOD: Duration = Duration::from_millis(5);
/// The least share that is left to the others.
const LEAST: f64 = 0.7;

/// The options of `mydyno-disk spin`.
#[derive(Debug, Args)]
pub struct Spin {
    /// A folder with the file `order`: lines of a role and the share of its CPUs that others keep
    /// (`server 0.8`); `state` is written there, what is in force.
    #[arg(long)]
    dir: PathBuf,
    /// A role and its CPUs: `server=0,1`; once for each role.
    #[arg(long, required = true, value_parser = parse_role)]
    cpus: Vec<Role>,
    /// End when this process has ended.
    #[arg(long)]
    owner_pid: u32,
}

#[derive(Debug, Clone)]
struct Role {
    name: String,
    cpus: Vec<usize>,
}

/// Spins as ordered until the owner is gone.
pub fn run(spin: &Spin) -> Result<()> {
    let shares: Vec<Arc<AtomicU64>> = spin
        .cpus
        .iter()
        .map(|_| Arc::new(AtomicU64::new(1f64.to_bits())))
        .collect();
    for (role, share) in spin.cpus.iter().zip(&shares) {
        for cpu in &role.cpus {
            let (cpu, share) = (*cpu, Arc::clone(share));
            let (sender, receiver) = std::sync::mpsc::channel();
            thread::spawn(move || {
                let pinned = pin(cpu);
                let failed = pinned.is_err();
                let _ = sender.send(pinned);
                if !failed {
                    take(&share);
                }
            });
            receiver.recv().map_err(Error::other)??;
        }
    }
    follow(&spin.dir, spin.owner_pid, |order| {
        let mut now = String::new();
        for (role, share) in spin.cpus.iter().zip(&shares) {
            let wanted = number(order, &role.name, LEAST, 1.0).unwrap_or(1.0);
            share.store(wanted.to_bits(), Ordering::Relaxed);
            // Writing to a text cannot fail.
            let _ = writeln!(now, "{} {wanted}", role.name);
        }
        Ok(now)
    })
}

fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Keeps this thread's CPU busy for its part of each period.
fn take(share: &AtomicU64) {
    loop {
        let begun = Instant::now();
        let busy = PERIOD.mul_f64(1.0 - f64::from_bits(share.load(Ordering::Relaxed)));
        if busy.is_zero() {
            thread::sleep(LOOK);
            continue;
        }
        while begun.elapsed() < busy {
            std::hint::spin_loop();
        }
        thread::sleep(PERIOD.saturating_sub(begun.elapsed()));
    }
}

fn parse_role(text: &str) -> std::result::Result<Role, String> {
    let wrong = || format!("{text:?}: write ROLE=CPU,CPU");
    let (name, list) = text.split_once('=').ok_or_else(wrong)?;
    let cpus: Vec<usize> = list
        .split(',')
        .map(|cpu| cpu.parse().map_err(|_| wrong()))
        .collect::<std::result::Result<_, _>>()?;
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    if !plain {
        return Err(wrong());
    }
    Ok(Role {
        name: name.to_owned(),
        cpus,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read() {
        assert_eq!(parse_role("server=0,1").map(|r| r.cpus), Ok(vec![0, 1]));
        for text in [
            "", "server", "=0", "server=", "server=a", "Server=0", "a b=0",
        ] {
            assert!(parse_role(text).is_err(), "{text:?}");
        }
    }
}
