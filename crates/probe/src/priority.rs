//! A sampler that is hardly ever on a CPU goes before those that always are.

use std::fs;
use std::process::{Command, Stdio};

use rustix::process::{
    getpid, getrlimit, getsid, setpriority_process, setrlimit, Resource, Rlimit,
};

/// Where real time is refused.  At 10 Hz on two cores that were never idle, one tick in a hundred
/// was 32 ms late so; in real time 0.1 ms.
const NICE: i32 = -15;

/// Lets ticks come in time on a busy host, and many files be kept open; without the rights for
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
