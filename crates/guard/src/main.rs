//! `mydyno-guard`: the part of a lease on the host that it changes.
//!
//! It changes the host on trial, confirms or reverts, and ends by itself what nobody confirms: by a
//! timer, at a reboot, after a crash of any of its steps.

mod act;
mod change;
#[cfg(test)]
mod commands;
mod fault;
mod health;
mod lease;
mod system;
mod undo;
mod units;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::act::Host;
use crate::fault::{At as _, Fault, Result};
use crate::lease::FOLDER;

/// Exit code of `verify` where something is not as it is kept.
const DRIFT: u8 = 1;

/// A trial on this host that ends by itself unless it is confirmed.
#[derive(Parser)]
#[command(name = "mydyno-guard", version)]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Change the host on trial; a lease as JSON comes by standard input
    Begin,
    /// Keep what is on trial
    Confirm {
        id: String,
        #[arg(long)]
        who: String,
    },
    /// Restore everything
    Revert {
        id: String,
        #[arg(long)]
        why: String,
        /// As the timer does it: end another act that does not give the lock back
        #[arg(long)]
        takeover: bool,
    },
    /// Move the end of a trial, in seconds from now
    Extend { id: String, seconds: u64 },
    /// Note what production shows: keep, wait or revert
    Judge {
        id: String,
        #[arg(value_parser = ["keep", "wait", "revert"])]
        verdict: String,
        text: String,
    },
    /// End what an earlier boot has left, arm what was stopped; its unit calls it
    Boot,
    /// Print the leases as JSON
    Status,
    /// Compare kept leases with the host; exit code 1 where they differ
    Verify,
    /// Remove leases, units and this program
    Forget,
}

fn main() -> ExitCode {
    match run(Options::parse().task) {
        Ok(code) => code,
        Err(fault) => {
            let _ = writeln!(io::stderr(), "mydyno-guard: {}", fault.text);
            ExitCode::from(fault.code)
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    let takeover = matches!(task, Task::Revert { takeover: true, .. });
    let host = Host::new(Path::new(FOLDER), takeover)?;
    match task {
        Task::Begin => {
            let lease = serde_json::from_reader(io::stdin().lock())
                .map_err(|error| Fault::wrong(format!("standard input: {error}")))?;
            host.begin(lease)?;
        }
        Task::Confirm { id, who } => host.confirm(&id, &who)?,
        Task::Revert { id, why, .. } if takeover => host.expire(&id, &why)?,
        Task::Revert { id, why, .. } => host.revert(&id, &why)?,
        Task::Extend { id, seconds } => host.extend(&id, seconds)?,
        Task::Judge { id, verdict, text } => host.judge(&id, &verdict, &text)?,
        Task::Boot => host.boot()?,
        Task::Status => {
            let all = serde_json::to_string(&host.all()?).at("the leases")?;
            let _ = writeln!(io::stdout(), "{all}");
        }
        Task::Verify => {
            let found = host.drift()?;
            for place in &found {
                let _ = writeln!(io::stdout(), "{place}: not as it is kept");
            }
            if !found.is_empty() {
                return Ok(ExitCode::from(DRIFT));
            }
        }
        Task::Forget => host.forget()?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The timer would start it again every five seconds, forever.
    #[test]
    fn the_end_of_a_lease_that_was_never_recorded_is_no_failure() {
        let folder = std::env::temp_dir().join(format!("mydyno-expire-{}", std::process::id()));
        let host = Host::new(&folder, true).unwrap();
        assert!(host.expire("l-1", "the lease ended").is_ok());
        assert!(host.revert("l-1", "by hand").is_err());
        std::fs::write(folder.join("l-1.jsonl"), "damaged\n").unwrap();
        assert!(host.expire("l-1", "the lease ended").is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
