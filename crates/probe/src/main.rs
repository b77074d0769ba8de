//! The command line of `mydyno-probe`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mydyno_command::{fail, FAILED};

/// Sees what a host and its database server do each second, and what a slow log holds.
#[derive(Parser)]
#[command(name = "mydyno-probe", version, args_override_self = true)]
struct Command {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Sample(mydyno_probe::options::Options),
    Digest(Box<mydyno_digest::options::Options>),
}

fn main() -> ExitCode {
    let done = match Command::parse().task {
        Task::Sample(options) => mydyno_probe::run(&options),
        Task::Digest(options) => mydyno_digest::run(&options),
    };
    done.unwrap_or_else(|message| fail(&message, FAILED))
}
