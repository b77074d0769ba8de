//! The server's counters: asked when it is time by a thread of its own, and never waited for.

mod handshake;
mod login;
mod meaning;
mod rows;
mod session;
mod wire;
mod worker;

use std::collections::HashMap;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender, TryRecvError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::options;
use crate::schedule::monotonic_ns;
use crate::server::login::Login;
use crate::server::worker::Answer;
use crate::table::{Column, Source, Table};

/// How long the end waits for the connection to be closed in order; a server that does not
/// answer is left.
const FAREWELL: Duration = Duration::from_millis(200);
const STACK: usize = 512 * 1024;
const NANOSECOND: f64 = 1e-9;

/// What the server last listed, for who looks at its threads.
pub type Connections = Arc<Mutex<Listing>>;

/// The threads of connections as the server last listed them.
#[derive(Debug, Default)]
pub struct Listing {
    /// By their numbers; none as long as the server does not list them.
    pub threads: Option<HashMap<u32, Listed>>,
    /// It rises as the threads change.
    pub round: u64,
}

impl Listing {
    /// What the server lists of a thread, if it does.
    #[must_use]
    pub fn of(&self, tid: u32) -> Option<Listed> {
        self.threads.as_ref()?.get(&tid).copied()
    }
}

/// What the server lists of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// It has a client: it is not our own, a daemon's or one of replication.
    pub serves: bool,
    /// It waits for its client.
    pub asleep: bool,
}

/// The server as a source; one question is under way at a time.
pub struct Server {
    questions: Option<SyncSender<Answer>>,
    answers: Receiver<Answer>,
    interval_ns: i64,
    deadline_ns: i64,
    /// When the next question is due; none before the first tick.
    due_ns: Option<i64>,
    asked_ns: Option<i64>,
    /// The answer that is not under way.
    spare: Option<Answer>,
    columns: Vec<Seen>,
    round: u32,
    read_at: Option<i64>,
    own: Option<Own>,
}

/// A column of the server's, and the last round that had a value for it.
struct Seen {
    id: usize,
    round: u32,
}

/// The columns about the answers themselves.
struct Own {
    up: usize,
    status_s: usize,
    innodb_s: usize,
}

impl Server {
    /// Reads the option file and starts the thread; nothing if there is no file.  The server
    /// need not be there.  Where there are `connections`, it is asked for them as well.
    ///
    /// # Errors
    /// The option file cannot be used, or there can be no further thread.
    pub fn start(
        options: &options::Server,
        connections: Option<Connections>,
    ) -> Result<Option<Self>, String> {
        let Some(path) = &options.defaults else {
            return Ok(None);
        };
        let login = Login::read(path)?;
        let (questions, asked) = sync_channel(1);
        let (answering, answers) = channel();
        thread::Builder::new()
            .name("server".to_owned())
            .stack_size(STACK)
            .spawn(move || worker::serve(login, connections, &asked, &answering))
            .map_err(|error| format!("the thread that asks the server: {error}"))?;
        Ok(Some(Self {
            questions: Some(questions),
            answers,
            interval_ns: nanoseconds(options.interval),
            deadline_ns: nanoseconds(options.deadline),
            due_ns: None,
            asked_ns: None,
            spare: Some(Answer::default()),
            columns: Vec::new(),
            round: 0,
            read_at: None,
            own: None,
        }))
    }

    /// Takes the answer if there is one; one that is late is dropped.
    fn take(&mut self, now_ns: i64, table: &mut Table) -> Result<bool, String> {
        let Some(asked_ns) = self.asked_ns else {
            return Ok(false);
        };
        match self.answers.try_recv() {
            Ok(mut answer) => {
                self.asked_ns = None;
                let taken = self.accept(&mut answer, asked_ns, table);
                self.spare = Some(answer);
                taken
            }
            Err(TryRecvError::Empty) if now_ns - asked_ns > self.deadline_ns => {
                Err(format!("no answer within {} s", self.deadline_s()))
            }
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => Err("the thread that asks has ended".to_owned()),
        }
    }

    fn accept(
        &mut self,
        answer: &mut Answer,
        asked_ns: i64,
        table: &mut Table,
    ) -> Result<bool, String> {
        for column in answer.fresh.drain(..) {
            let id = table.define(column);
            self.columns.push(Seen { id, round: 0 });
        }
        for (event, of, text) in &answer.notes {
            table.note("server", *event, of, text);
        }
        if let Some(fault) = answer.fault.take() {
            return Err(fault);
        }
        if answer.end_ns - asked_ns > self.deadline_ns {
            return Err(format!("answered later than {} s", self.deadline_s()));
        }
        self.set(answer, table);
        Ok(true)
    }

    fn set(&mut self, answer: &Answer, table: &mut Table) {
        self.round = self.round.wrapping_add(1);
        for &(column, value) in &answer.values {
            let seen = &mut self.columns[column];
            seen.round = self.round;
            table.set(seen.id, value);
        }
        for seen in &self.columns {
            if seen.round != self.round {
                table.gone(seen.id);
            }
        }
        let own = self.own.get_or_insert_with(|| Own::define(table));
        table.set(own.up, 1);
        table.set(own.status_s, answer.status_ns - answer.begin_ns);
        table.set(own.innodb_s, answer.end_ns - answer.status_ns);
        self.read_at = Some(answer.begin_ns + (answer.end_ns - answer.begin_ns) / 2);
    }

    /// Asks if it is time and nothing is under way.  A tick may come a little early.
    fn ask(&mut self, now_ns: i64) {
        let due_ns = self.due_ns.unwrap_or(now_ns);
        if self.asked_ns.is_some() || now_ns < due_ns - self.interval_ns / 10 {
            return;
        }
        let (Some(questions), Some(answer)) = (&self.questions, self.spare.take()) else {
            return;
        };
        // Once the thread is gone, `take` reports it.
        let _ = questions.send(answer);
        self.asked_ns = Some(now_ns);
        self.due_ns = Some((due_ns + self.interval_ns).max(now_ns));
    }

    fn deadline_s(&self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // a time of hours at most
        let deadline = self.deadline_ns as f64;
        deadline * NANOSECOND
    }
}

impl Source for Server {
    fn name(&self) -> &'static str {
        "server"
    }

    fn read(&mut self, table: &mut Table) -> Result<bool, String> {
        let now_ns = monotonic_ns();
        let taken = self.take(now_ns, table);
        if let (Err(_), Some(own)) = (&taken, &self.own) {
            table.set(own.up, 0);
        }
        self.ask(now_ns);
        taken
    }

    fn is_asked_for(&self) -> bool {
        true
    }

    fn read_at(&self) -> Option<i64> {
        self.read_at
    }
}

impl Drop for Server {
    /// Lets the thread close the connection, so that the server counts no aborted client.
    fn drop(&mut self) {
        self.questions = None;
        let end = Instant::now() + FAREWELL;
        while self
            .answers
            .recv_timeout(end.saturating_duration_since(Instant::now()))
            .is_ok()
        {}
    }
}

impl Own {
    fn define(table: &mut Table) -> Self {
        let answer_s = || Column::gauge("server.answer_s", "s", NANOSECOND);
        Self {
            up: table.define(Column::gauge("server.up", "", 1.0)),
            status_s: table.define(answer_s().of("status")),
            innodb_s: table.define(answer_s().of("innodb")),
        }
    }
}

fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}
