//! Answers that are due later, sent by a thread of their own so that no worker sleeps.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Something to be done once, when its time has come.
type Answer = Box<dyn FnOnce() + Send>;

struct Due {
    at: Instant,
    order: u64,
    answer: Answer,
}

impl Ord for Due {
    /// The earliest is the greatest, since the heap gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

#[derive(Default)]
struct Waiting {
    heap: BinaryHeap<Due>,
    order: u64,
    /// Until then nothing is answered; and when such a time ended last.
    held: Option<Instant>,
    released: Option<Instant>,
}

#[derive(Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    late_ns: AtomicU64,
    is_held: AtomicBool,
}

/// Sends answers when they are due.
pub struct Timer(Arc<Shared>);

impl Timer {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        thread::Builder::new()
            .name("timer".into())
            .spawn(move || own.run())?;
        Ok(Self(shared))
    }

    /// By how much the last answer that had to wait missed its time.
    pub fn late(&self) -> Duration {
        Duration::from_nanos(self.0.late_ns.load(Relaxed))
    }

    /// Sends nothing until then, whatever is due.
    pub fn hold(&self, until: Instant) {
        let mut waiting = self.0.lock();
        waiting.held = Some(until);
        self.0.is_held.store(true, Relaxed);
        drop(waiting);
        self.0.changed.notify_one();
    }

    /// Sends `answer` at `at`, or at once, from the calling thread, if that has passed.
    pub fn at(&self, at: Instant, answer: impl FnOnce() + Send + 'static) {
        if at <= Instant::now() && !self.0.is_held.load(Relaxed) {
            return answer();
        }
        let mut waiting = self.0.lock();
        waiting.order += 1;
        let due = Due {
            at,
            order: waiting.order,
            answer: Box::new(answer),
        };
        let first = waiting.heap.peek().is_none_or(|next| at < next.at);
        waiting.heap.push(due);
        drop(waiting);
        if first {
            self.0.changed.notify_one();
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            (self.next())();
        }
    }

    /// Waits for the next answer that is due.
    fn next(&self) -> Answer {
        let mut waiting = self.lock();
        loop {
            let now = Instant::now();
            if waiting.held.is_some_and(|until| until <= now) {
                waiting.released = waiting.held.take();
                self.is_held.store(false, Relaxed);
            }
            let wait = match (waiting.held, waiting.heap.peek()) {
                (Some(until), _) => until.saturating_duration_since(now),
                (None, None) => Duration::MAX,
                (None, Some(due)) => due.at.saturating_duration_since(now),
            };
            if wait.is_zero() {
                if let Some(due) = waiting.heap.pop() {
                    let wanted = waiting.released.map_or(due.at, |end| due.at.max(end));
                    let late = now.saturating_duration_since(wanted);
                    let late_ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
                    self.late_ns.store(late_ns, Relaxed);
                    return due.answer;
                }
            }
            let woken = self.changed.wait_timeout(waiting, wait);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn answers_come_in_the_order_of_their_times() {
        let timer = Timer::start().expect("a thread");
        let (sender, receiver) = mpsc::channel();
        let start = Instant::now();
        for ms in [530_u64, 510, 0, 520, 510] {
            let sender = sender.clone();
            timer.at(start + Duration::from_millis(ms), move || {
                sender.send((ms, start.elapsed())).expect("a receiver");
            });
        }
        drop(sender);
        let got: Vec<_> = receiver.iter().collect();
        let order: Vec<_> = got.iter().map(|(ms, _)| *ms).collect();
        assert_eq!(order, [0, 510, 510, 520, 530]);
        assert!(got.iter().all(|(ms, at)| *at >= Duration::from_millis(*ms)));
    }

    #[test]
    fn nothing_is_answered_before_a_stall_ends_and_that_is_no_lateness() {
        let timer = Timer::start().expect("a thread");
        let (sender, receiver) = mpsc::channel();
        let start = Instant::now();
        let later = sender.clone();
        timer.at(start + Duration::from_millis(520), move || {
            later.send(start.elapsed()).expect("a receiver");
        });
        timer.hold(start + Duration::from_secs(3));
        timer.at(start, move || {
            sender.send(start.elapsed()).expect("a receiver");
        });
        let got: Vec<_> = receiver.iter().collect();
        assert!(got.iter().all(|at| *at >= Duration::from_secs(3)));
        assert_eq!(got.len(), 2);
        assert!(timer.late() < Duration::from_secs(2));
    }
}
