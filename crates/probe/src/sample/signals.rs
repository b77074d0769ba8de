//! The signals that end a sample in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;

use nix::sys::signal::{SigSet, Signal};

/// Whether one of the ending signals came.
#[derive(Debug)]
pub struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Keeps the ending signals from killing this thread and those it makes later, and has this
    /// one woken from `park` when one comes.
    pub fn hold() -> Self {
        let set = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
        // It can fail only for a wrong argument.
        let _ = set.thread_block();
        let came = Arc::new(AtomicBool::new(false));
        let (told, sleeper) = (Arc::clone(&came), thread::current());
        let wait = move || {
            while set.wait().is_err() {}
            told.store(true, Ordering::Release);
            sleeper.unpark();
        };
        let thread = thread::Builder::new().name("signals".to_owned());
        if thread.stack_size(32 * 1024).spawn(wait).is_err() {
            // Rather killed without an end than not to be stopped at all.
            let _ = set.thread_unblock();
        }
        Self(came)
    }

    /// Whether it is time to end.
    pub fn came(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
