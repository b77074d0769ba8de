//! How the sampler lives: its priority, and its end by time, a signal, or its owner's end.

use std::fs::File;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, thread};

use mydyno_command::{on_signals, Signal};
use rustix::process::{
    getpid, getrlimit, getsid, setpriority_process, setrlimit, Resource, Rlimit,
};

use crate::file::{Look, Root};
use crate::process::Stat;
use crate::schedule::monotonic_ns;

/// How often the owner is looked at while a long interval passes.
const LOOK: Duration = Duration::from_secs(1);
const SECOND_NS: i64 = 1_000_000_000;

/// Why the sampler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Signal,
    Duration,
    OwnerGone,
}

impl Reason {
    /// The word in the file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Duration => "duration",
            Self::OwnerGone => "owner-gone",
        }
    }
}

/// What ends the sampler before its time.
pub struct Life {
    /// Whether an ending signal came.
    signalled: Arc<AtomicBool>,
    owner: Option<Owner>,
    look: Look,
    /// When the owner was looked at last.
    looked_ns: i64,
}

struct Owner {
    stat: File,
    started: i64,
}

impl Life {
    /// A life that ends with process `owner`, if one is given; begins to hold the signals.
    ///
    /// # Errors
    /// The owner is gone already.
    pub fn new(root: &Root, owner: Option<u32>) -> Result<Self, String> {
        let mut look = Look::default();
        let owner = owner
            .map(|pid| Owner::find(root, pid, &mut look))
            .transpose()?;
        Ok(Self {
            signalled: signalled(),
            owner,
            look,
            looked_ns: 0,
        })
    }

    /// Waits until the deadline of the monotonic clock; or less long, and returns why.
    pub fn wait_until(&mut self, deadline_ns: i64) -> Option<Reason> {
        loop {
            if self.signalled.load(Ordering::Acquire) {
                return Some(Reason::Signal);
            }
            let now_ns = monotonic_ns();
            let left = u64::try_from(deadline_ns - now_ns).unwrap_or(0);
            // Where reading takes longer than the interval, every deadline is over already.
            if left > 0 || now_ns - self.looked_ns > SECOND_NS {
                self.looked_ns = now_ns;
                let owner = self.owner.as_ref();
                if owner.is_some_and(|owner| !owner.lives(&mut self.look)) {
                    return Some(Reason::OwnerGone);
                }
            }
            if left == 0 {
                return None;
            }
            let most = if self.owner.is_some() {
                LOOK
            } else {
                Duration::MAX
            };
            thread::park_timeout(Duration::from_nanos(left).min(most));
        }
    }
}

/// Holds the ending signals; one that comes sets the flag and wakes this thread from `park`.
fn signalled() -> Arc<AtomicBool> {
    let came = Arc::new(AtomicBool::new(false));
    let (flag, sleeper) = (Arc::clone(&came), thread::current());
    let ending = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    on_signals(&ending, move || {
        flag.store(true, Ordering::Release);
        sleeper.unpark();
    });
    came
}

impl Owner {
    fn find(root: &Root, pid: u32, look: &mut Look) -> Result<Self, String> {
        let gone = |_| format!("--owner {pid}: no such process");
        let stat = File::open(root.path(format!("proc/{pid}/stat"))).map_err(gone)?;
        match look.read_once(&stat).ok().and_then(Stat::parse) {
            Some(Stat { started, .. }) => Ok(Self { stat, started }),
            None => Err(format!("--owner {pid}: no such process")),
        }
    }

    fn lives(&self, look: &mut Look) -> bool {
        let stat = look.read_once(&self.stat).ok().and_then(Stat::parse);
        stat.is_some_and(|stat| stat.started == self.started)
    }
}

/// Where real time is refused.  At 10 Hz on two cores that were never idle, one tick in a hundred
/// was 32 ms late so; in real time 0.1 ms.
const NICE: i32 = -15;

/// Lets ticks come in time on a busy host, and many files be open; without the rights for
/// that it goes without.
pub fn raise() {
    if !real_time() {
        nicer();
    }
    let files = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: files.maximum,
        ..files
    };
    let _ = setrlimit(Resource::Nofile, all);
}

/// Goes before all that is not real time, at the lowest such priority; a tick is done within a
/// millisecond.  The program of util-linux or busybox does it, as that needs no unsafe code here.
fn real_time() -> bool {
    let own = getpid().as_raw_nonzero().to_string();
    Command::new("chrt")
        .args(["-f", "-p", "1", &own])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn nicer() {
    let _ = setpriority_process(None, NICE);
    // Where the kernel shares the CPUs among sessions, what counts is the session's own weight;
    // a session of others is not ours to change.
    if getsid(None) == Ok(getpid()) {
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without its start time, a process that got the owner's number would keep the sampler alive.
    #[test]
    fn a_process_with_the_number_of_the_owner_is_not_the_owner() {
        let folder = std::env::temp_dir().join(format!("mydyno-life-{}", std::process::id()));
        let stat = folder.join("proc/7/stat");
        fs::create_dir_all(stat.parent().unwrap()).unwrap();
        let started = |at: i64| {
            let text = format!("7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {at} 9000 99 1");
            fs::write(&stat, text).unwrap();
        };
        started(4242);
        let mut look = Look::default();
        let owner = Owner::find(&Root::at(&folder), 7, &mut look).unwrap();
        assert!(owner.lives(&mut look));
        started(4243);
        assert!(!owner.lives(&mut look));
        fs::remove_dir_all(folder).unwrap();
    }
}
