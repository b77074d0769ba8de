//! A sampler that is hardly ever on a CPU goes before those that always are.

use std::fs;

use rustix::process::{
    getpid, getrlimit, getsid, setpriority_process, setrlimit, Resource, Rlimit,
};

/// At 10 Hz on two cores that were never idle, 0 of 1201 ticks were missed in a session of its
/// own; without such a session 8 to 16.
const NICE: i32 = -15;

/// Lets ticks come in time on a busy host, and many files be kept open; without the rights for
/// that it goes without.
pub fn raise() {
    let _ = setpriority_process(None, NICE);
    // Where the kernel shares the CPUs among sessions, what counts is the session's own weight;
    // a session of others is not ours to change.
    if getsid(None) == Ok(getpid()) {
        let _ = fs::write("/proc/self/autogroup", NICE.to_string());
    }
    let files = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: files.maximum,
        ..files
    };
    let _ = setrlimit(Resource::Nofile, all);
}
