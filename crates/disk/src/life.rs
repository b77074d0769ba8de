//! How the daemon ends: by a signal, with its owner, or with its mount.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{umount2, MntFlags};
use nix::sys::signal::{SigSet, Signal};

/// How often the owner is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often, and how many times, a mount that is still in use is tried again.
const RETRY: Duration = Duration::from_millis(50);
const RETRIES: u32 = 20;

/// Keeps the ending signals from killing any thread, so that `end_on_signal` can wait for them.
pub fn hold_signals() -> SigSet {
    let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    // It can fail only for a wrong argument.
    let _ = signals.thread_block();
    signals
}

/// Unmounts and ends the process when one of `signals` comes.
pub fn end_on_signal(signals: SigSet, mount: PathBuf) {
    thread::spawn(move || {
        while signals.wait().is_err() {}
        end(&mount);
    });
}

/// Unmounts and ends the process when process `owner` is gone, or `started` no longer fits it.
pub fn end_with_owner(owner: u32, started: u64, mount: PathBuf) {
    thread::spawn(move || {
        while start_time(owner) == Some(started) {
            thread::sleep(LOOK);
        }
        end(&mount);
    });
}

/// When a living process started, in clock ticks since boot; with its id it names a process
/// for good, since ids are used again.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_start_time(&stat)
}

/// Reads field 22 of /proc/PID/stat; the name in field 2 may contain anything.  A zombie,
/// state `Z`, has ended.
fn parse_start_time(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Unmounts if nobody uses the mount, then ends the process, which ends the mount's service.
///
/// A mount in use (a loop device stands on it) stays, dead, in the mount table: detached it
/// could no longer be seen which loop device is ours to remove.
fn end(mount: &PathBuf) -> ! {
    for _ in 0..RETRIES {
        match umount2(mount, MntFlags::empty()) {
            Err(Errno::EBUSY) => thread::sleep(RETRY),
            _ => std::process::exit(0),
        }
    }
    eprintln!("{}: still in use, not unmounted", mount.display());
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9";

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        assert_eq!(parse_start_time(STAT), Some(4242));
    }

    #[test]
    fn a_zombie_or_a_torn_line_is_no_process() {
        assert_eq!(parse_start_time(&STAT.replace(") S ", ") Z ")), None);
        assert_eq!(parse_start_time("7 (a) S 1 7"), None);
        assert_eq!(parse_start_time(""), None);
    }

    #[test]
    fn this_process_lives_and_process_zero_does_not() {
        assert!(start_time(std::process::id()).is_some());
        assert_eq!(start_time(0), None);
    }
}
