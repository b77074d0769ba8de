//! `mydyno-disk`: lab disks with the caps and bursts of cloud disks, striped, served over FUSE.

mod bucket;
mod caps;
mod classes;
mod command;
mod disk;
mod faults;
mod filesystem;
mod life;
mod options;
mod order;
mod overlay;
mod pacer;
mod pages;
mod power;
mod spin;
mod store;
#[cfg(test)]
mod store_tests;
mod stripe;
mod throttle;
#[cfg(test)]
mod throttle_tests;
mod timer;
mod wire;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use fuser::{Config, MountOption, Session};

use crate::disk::Disk;
use crate::filesystem::Files;
use crate::options::{Options, Serve, Task};
use crate::store::Store;
use crate::timer::Timer;

/// Exit code of a request that was wrong, as clap's own.
const WRONG: u8 = 2;

fn main() -> ExitCode {
    let table = match Options::parse().task {
        Task::Classes { json: true } => classes::json().to_string(),
        Task::Classes { json: false } => classes::text(),
        Task::Serve(serve) => return run(&serve),
        Task::Spin(options) => return ended("spin", spin::run(&options)),
        Task::Wire(options) => return ended("wire", wire::run(&options)),
    };
    match writeln!(std::io::stdout(), "{table}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("mydyno-disk: standard output: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn ended(task: &str, result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mydyno-disk: {task}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(serve: &Serve) -> ExitCode {
    let setup = match serve.setup() {
        Ok(setup) => setup,
        Err(words) => {
            eprintln!("mydyno-disk: {words}");
            return ExitCode::from(WRONG);
        }
    };
    ended(&serve.mount.display().to_string(), mount(serve, setup))
}

/// Mounts, prints `ready`, and serves until the mount is gone.
fn mount(serve: &Serve, setup: disk::Setup) -> std::io::Result<()> {
    end_on_panic();
    // Before any thread is made, so that all of them have it: memory that is wanted while the disk
    // is busy must not wait for that disk.  An older kernel, or one without the right, goes on.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    // So that all of them hold the signals.
    let signals = life::hold_signals();
    let owner = owner(serve)?;
    let store = Store::open(&serve.files(), serve.stripe(), serve.size, serve.frozen)?;
    let disk = Arc::new(Disk::new(store, Timer::start()?, setup));
    let session = Session::new(Files::new(disk), &serve.mount, &config(serve))?;
    life::end_on_signal(signals, serve.mount.clone());
    if let Some((pid, started)) = owner {
        life::end_with_owner(pid, started, serve.mount.clone());
    }
    // Nobody may be listening, which is no reason not to serve.
    let _ = writeln!(std::io::stdout(), "ready");
    session.run()
}

fn config(serve: &Serve) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("mydyno-disk".into()),
        MountOption::NoExec,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(serve.workers.into());
    config.clone_fd = true;
    config
}

/// The owner and when it started; an owner that is gone already is an error.
fn owner(serve: &Serve) -> std::io::Result<Option<(u32, u64)>> {
    let Some(pid) = serve.owner_pid else {
        return Ok(None);
    };
    match life::start_time(pid) {
        Some(started) => Ok(Some((pid, started))),
        None => Err(std::io::Error::other(format!(
            "--owner-pid {pid}: no such process"
        ))),
    }
}

/// A worker that is lost would leave its requests unanswered for ever: rather end, so that the
/// kernel answers them all with an error.
fn end_on_panic() {
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        default(info);
        std::process::abort();
    }));
}
