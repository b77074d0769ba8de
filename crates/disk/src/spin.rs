//! Takes slices of CPUs, so that all else on them runs at a known share of its speed: a dose.
//!
//! It must run with real-time priority (`chrt --fifo 1`); it ends with its owner.

use std::fmt::Write;
use std::fs;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use nix::sched::{sched_setaffinity, CpuSet};
use nix::unistd::Pid;

use crate::life::start_time;

/// One slice in each of these: short beside a segment, and rare, as each costs the others their
/// caches: with 2 ms they lost 5 % more than was taken.
const PERIOD: Duration = Duration::from_millis(5);
/// How often the order and the owner are looked at.
const LOOK: Duration = Duration::from_millis(50);
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
    let Some(started) = start_time(spin.owner_pid) else {
        return Err(Error::other("--owner-pid: no such process"));
    };
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
    let mut before = String::new();
    while start_time(spin.owner_pid) == Some(started) {
        let order = fs::read_to_string(spin.dir.join("order")).unwrap_or_default();
        let mut now = String::new();
        for (role, share) in spin.cpus.iter().zip(&shares) {
            let wanted = wanted(&order, &role.name);
            share.store(wanted.to_bits(), Ordering::Relaxed);
            // Writing to a text cannot fail.
            let _ = writeln!(now, "{} {wanted}", role.name);
        }
        if now != before {
            publish(&spin.dir, &now)?;
            before = now;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// The share that an order leaves to others on a role's CPUs; 1 where it has none, or a wrong one.
fn wanted(order: &str, role: &str) -> f64 {
    order
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(name, _)| *name == role)
        .and_then(|(_, share)| share.trim().parse().ok())
        .filter(|share| (LEAST..=1.0).contains(share))
        .unwrap_or(1.0)
}

/// Replaces the file `state` at once, so that no reader sees half of it.
fn publish(dir: &Path, text: &str) -> Result<()> {
    let part = dir.join("state.part");
    fs::write(&part, text)?;
    fs::rename(part, dir.join("state"))
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
    fn an_order_is_read_by_role_and_a_wrong_one_slows_nothing() {
        let order = "server 0.8\nload 0.9\n";
        assert!((wanted(order, "server") - 0.8).abs() < 1e-12);
        assert!((wanted(order, "load") - 0.9).abs() < 1e-12);
        for order in [
            "",
            "server",
            "server x",
            "server 0.1",
            "server NaN",
            "server 2",
        ] {
            assert!((wanted(order, "server") - 1.0).abs() < 1e-12, "{order:?}");
        }
    }

    #[test]
    fn roles_are_read() {
        assert_eq!(parse_role("server=0,1").map(|r| r.cpus), Ok(vec![0, 1]));
        for text in [
            "", "server", "=0", "server=", "server=a", "Server=0", "a b=0",
        ] {
            assert!(parse_role(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn it_ends_when_its_owner_is_gone() {
        let gone = Spin {
            dir: std::env::temp_dir(),
            cpus: vec![],
            owner_pid: 0,
        };
        assert!(run(&gone).is_err());
    }
}
