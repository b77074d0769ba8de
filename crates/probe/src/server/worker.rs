//! The thread that owns the connection: connects, asks, and after a failure waits before a retry.

use std::collections::HashMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use crate::file::number;
use crate::schedule::{monotonic_ns, wall_ns};
use crate::server::login::Login;
use crate::server::meaning;
use crate::server::rows::Rows;
use crate::server::session::{Session, Sign};
use crate::server::wire::Fault;
use crate::server::{Connections, Listed};
use crate::table::{Column, Event};

const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Questions come at their times give or take this.
const EARLY: Duration = Duration::from_millis(100);
/// A message no longer than this goes into the file.
const LONGEST_WORDS: usize = 400;

/// Answers each question until nobody asks any more; then the connection is closed in order.
pub fn serve(
    login: Login,
    connections: Option<Connections>,
    asked: &Receiver<Answer>,
    answers: &Sender<Answer>,
) {
    let mut worker = Worker::new(login, connections);
    for mut answer in asked {
        answer.clear();
        worker.answer(&mut answer);
        if answers.send(answer).is_err() {
            return;
        }
    }
}

struct Worker {
    login: Login,
    /// Where the threads of connections are listed, if anybody wants them.
    connections: Option<Connections>,
    session: Option<Session>,
    before: Option<Sign>,
    /// Why there are no metrics of the engine, as it was noted.
    refused: Option<String>,
    status: Rows,
    metrics: Rows,
    /// The column of how many wait for a lock of the server's, once it has listed any.
    locked: Option<usize>,
    retry: Retry,
}

/// When to try again after a failure, and what it was.
struct Retry {
    not_before: Instant,
    wait: Duration,
    fault: String,
}

impl Worker {
    fn new(login: Login, connections: Option<Connections>) -> Self {
        Self {
            login,
            connections,
            session: None,
            before: None,
            refused: None,
            status: Rows::new("status."),
            metrics: Rows::new("innodb."),
            locked: None,
            retry: Retry {
                not_before: Instant::now(),
                wait: FIRST_WAIT,
                fault: String::new(),
            },
        }
    }

    fn answer(&mut self, answer: &mut Answer) {
        answer.begin_ns = monotonic_ns();
        // A key that is none makes the library that encrypts by it panic.
        let done = catch_unwind(AssertUnwindSafe(|| self.ask(answer))).unwrap_or_else(|_| {
            self.session = None;
            Err(self
                .retry
                .later("it does not answer as a server does".to_owned()))
        });
        if self.session.is_none() {
            self.share(None); // the server that comes next has other threads
        }
        answer.end_ns = monotonic_ns();
        answer.fault = done
            .err()
            .map(|fault| fault.chars().take(LONGEST_WORDS).collect());
    }

    fn ask(&mut self, answer: &mut Answer) -> Result<(), String> {
        let (mut session, fresh) = match self.session.take() {
            Some(session) => (session, false),
            None => (self.connect(answer)?, true),
        };
        match self.read(&mut session, answer) {
            Ok(sign) => {
                self.retry.wait = FIRST_WAIT;
                self.session = Some(session);
                if fresh
                    && self
                        .before
                        .is_some_and(|before| sign.is_after_restart(&before))
                {
                    let note = format!("up for {} s", sign.uptime_s);
                    answer.notes.push((Event::Restart, "", note));
                }
                self.before = Some(sign);
                Ok(())
            }
            // The connection is good: the server only refused this question.
            Err(fault @ Fault::Refused(..)) => {
                self.session = Some(session);
                Err(fault.words())
            }
            Err(lost) => Err(lost.words()),
        }
    }

    fn connect(&mut self, answer: &mut Answer) -> Result<Session, String> {
        if Instant::now() + EARLY < self.retry.not_before {
            return Err(self.retry.fault.clone());
        }
        let session = Session::open(&self.login).map_err(|fault| self.retry.later(fault))?;
        if self.refused != session.refused {
            self.refused.clone_from(&session.refused);
            if let Some(refused) = &session.refused {
                let note = format!("no InnoDB metrics: {refused}");
                answer.notes.push((Event::Gap, "innodb", note));
            }
        }
        answer.begin_ns = monotonic_ns();
        Ok(session)
    }

    fn read(&mut self, session: &mut Session, answer: &mut Answer) -> Result<Sign, Fault> {
        let mut uptime_s = None;
        self.status.begin();
        session.status(|[name, value]| {
            if name.eq_ignore_ascii_case(b"uptime") {
                uptime_s = number(value);
            }
            self.status.take(name, value, meaning::of_status, answer);
        })?;
        answer.status_ns = monotonic_ns();
        self.metrics.begin();
        session.metrics(|[name, value, kind]| {
            let meaning = |name: &str| meaning::of_metric(name, kind);
            self.metrics.take(name, value, meaning, answer);
        })?;
        if self.connections.is_some() {
            let mut roll = Roll::default();
            session.connections(|row| roll.take(row))?;
            let locked = roll.locked;
            let threads = roll.threads();
            if threads.is_some() {
                let gauge = || Column::gauge("session.locked", "count", 1.0);
                let column = *self.locked.get_or_insert_with(|| answer.define(gauge()));
                answer.values.push((column, locked));
            }
            self.share(threads);
        }
        Ok(Sign {
            connection: session.number,
            uptime_s: uptime_s.unwrap_or_default(),
            monotonic_ns: answer.status_ns,
            wall_ns: wall_ns(),
        })
    }

    /// Shows who looks at the threads which of them are the server's connections.
    fn share(&self, threads: Option<HashMap<u32, Listed>>) {
        let Some(Ok(mut shown)) = self.connections.as_ref().map(|shown| shown.lock()) else {
            return;
        };
        if shown.threads != threads {
            shown.threads = threads;
            shown.round += 1;
        }
    }
}

/// The rows of the server's list of connections.
#[derive(Default)]
struct Roll {
    threads: HashMap<u32, Listed>,
    /// How many that serve a client wait for a lock.
    locked: i64,
}

impl Roll {
    fn take(&mut self, [tid, serves, asleep, waits]: [&[u8]; 4]) {
        let [serves, asleep, waits] = [serves, asleep, waits].map(|cell| cell == b"1");
        self.locked += i64::from(serves && waits);
        let Some(tid) = number(tid).and_then(|tid| u32::try_from(tid).ok()) else {
            return;
        };
        let listed = self.threads.entry(tid).or_default();
        // A thread of a pool may have several connections, and ours among them.
        if serves || !listed.serves {
            *listed = Listed { serves, asleep };
        }
    }

    /// The threads; none where not even our own is listed: the server does not list them.
    fn threads(self) -> Option<HashMap<u32, Listed>> {
        (!self.threads.is_empty()).then_some(self.threads)
    }
}

impl Retry {
    /// Puts the next attempt off, each time twice as long, and returns the fault.
    fn later(&mut self, fault: String) -> String {
        self.not_before = Instant::now() + self.wait;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        self.fault.clone_from(&fault);
        fault
    }
}

/// What one question brought; used again for the next.
#[derive(Debug, Default)]
pub struct Answer {
    /// Columns that are new, in order; they carry on the numbers of those before.
    pub fresh: Vec<Column>,
    /// Numbers of columns and their values.
    pub values: Vec<(usize, i64)>,
    /// What is to be noted, with what it concerns.
    pub notes: Vec<(Event, &'static str, String)>,
    /// Why there are no values.
    pub fault: Option<String>,
    /// When the questions were asked and answered, in nanoseconds of `CLOCK_MONOTONIC`.
    pub begin_ns: i64,
    pub status_ns: i64,
    pub end_ns: i64,
    defined: usize,
}

impl Answer {
    /// Empties it for the next question; what is known of columns stays.
    pub fn clear(&mut self) {
        self.values.clear();
        self.notes.clear();
        self.fault = None;
    }

    /// Adds a column and returns its number.
    pub fn define(&mut self, column: Column) -> usize {
        self.fresh.push(column);
        self.defined += 1;
        self.defined - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::login::Place;

    fn roll(rows: &[[&str; 4]]) -> Roll {
        let mut roll = Roll::default();
        for row in rows {
            roll.take(row.map(str::as_bytes));
        }
        roll
    }

    #[test]
    fn a_server_that_lists_our_own_connection_only_serves_nobody() {
        let listed = roll(&[["7", "0", "0", "0"]]).threads().unwrap();
        assert!(!listed[&7].serves);
        assert_eq!(roll(&[]).threads(), None, "it does not list them");
    }

    #[test]
    fn only_connections_that_serve_a_client_are_locked() {
        let rows = [
            ["7", "1", "0", "1"],
            ["8", "0", "0", "1"],
            ["9", "1", "1", "0"],
        ];
        assert_eq!(roll(&rows).locked, 1);
    }

    #[test]
    fn a_thread_that_has_a_client_too_serves_it() {
        for rows in [
            [["7", "1", "1", "0"], ["7", "0", "0", "0"]],
            [["7", "0", "0", "0"], ["7", "1", "1", "0"]],
        ] {
            let served = Listed {
                serves: true,
                asleep: true,
            };
            assert_eq!(roll(&rows).threads().unwrap()[&7], served);
        }
    }

    #[test]
    fn a_list_that_changes_is_of_another_round() {
        let shown = Connections::default();
        let login = Login {
            user: String::new(),
            password: String::new(),
            place: Place::Socket("socket".into()),
        };
        let worker = Worker::new(login, Some(Connections::clone(&shown)));
        let rounds = [None, Some(7), Some(7), Some(8), None].map(|tid| {
            worker.share(tid.map(|tid| HashMap::from([(tid, Listed::default())])));
            shown.lock().unwrap().round
        });
        assert_eq!(rounds, [0, 1, 1, 2, 3]);
    }
}
