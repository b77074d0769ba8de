//! The command line of `mydyno-probe`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mydyno_probe::{digest, sample};

/// Exit code of a host or a file that failed.
const FAILED: u8 = 3;

/// Sees what a host and its database server do each second, and what a slow log says.
#[derive(Parser)]
#[command(name = "mydyno-probe", version, args_override_self = true)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Sample(sample::options::Options),
    Digest(Box<digest::options::Options>),
}

fn main() -> ExitCode {
    let done = match Command::parse().task {
        Task::Sample(options) => sample::run(&options),
        Task::Digest(options) => digest::run(&options),
    };
    done.unwrap_or_else(|words| {
        eprintln!("mydyno-probe: {words}");
        ExitCode::from(FAILED)
    })
}
