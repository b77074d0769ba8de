//! When following ends: its time is over, or SIGINT or SIGTERM came.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

/// Waits that end early when following is to end.
pub struct Stop {
    signal: Receiver<()>,
    end: Option<Instant>,
}

impl Stop {
    /// Begins to hold the signals; to be made before any thread.  A second signal ends at once.
    #[must_use]
    pub fn after(duration: Option<Duration>) -> Self {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT]);
        // It can fail only for a wrong argument.
        let _ = signals.thread_block();
        let (sender, signal) = channel();
        thread::spawn(move || {
            while signals.wait().is_err() {}
            let _ = sender.send(());
            while signals.wait().is_err() {}
            std::process::exit(130);
        });
        Self {
            signal,
            end: duration.and_then(|duration| Instant::now().checked_add(duration)),
        }
    }

    /// Waits so long; true when following is to end.
    #[must_use]
    pub fn wait(&self, time: Duration) -> bool {
        let left = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        match self
            .signal
            .recv_timeout(left.map_or(time, |left| left.min(time)))
        {
            Err(RecvTimeoutError::Timeout) => left.is_some_and(|left| left <= time),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
        }
    }
}
