//! One connection: logged in, made quiet, asked its two questions.

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Error, OptsBuilder, Value};

use super::login::{Login, Place};

/// A connection that says nothing for so long is given up.  A server under duress has taken half
/// a minute for its status, and a second question beside the first would make that worse.
const PATIENCE: Duration = Duration::from_secs(120);
const CONNECT: Duration = Duration::from_secs(10);
const KEEPALIVE_MS: u32 = 30_000;
const LARGEST_PACKET: usize = 1024 * 1024;

/// So that our own questions neither enter the slow log and the general log nor wait for locks,
/// and the server's defaults change nothing of them.  Each is tried; an older server, or one
/// that does not let us, refuses it.
const QUIET: [&str; 5] = [
    "SET SESSION long_query_time = 3600",
    "SET SESSION sql_mode = '', SESSION autocommit = 1, SESSION wait_timeout = 86400",
    "SET SESSION lock_wait_timeout = 1",
    "SET SESSION sql_log_off = 1",
    "SET SESSION slow_query_log = 0",
];
/// Without this, however short they are, questions that use no index may be logged as slow.
const FEW_ROWS: &str = "SET SESSION min_examined_row_limit = 4294967295";
const LOGS_FEW_ROWS: &str =
    "SELECT @@GLOBAL.slow_query_log AND @@GLOBAL.log_queries_not_using_indexes";
const WOULD_BE_LOGGED: &str = "log_queries_not_using_indexes is on and would put each question \
    into the slow log: grant SESSION_VARIABLES_ADMIN";
const STATUS: &str = "SHOW GLOBAL STATUS";
// MySQL and MariaDB before 10.5 have a word, later ones a number.
const METRICS: [&str; 2] = [
    "SELECT NAME, COUNT, TYPE FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'",
    "SELECT NAME, COUNT, TYPE FROM information_schema.INNODB_METRICS WHERE ENABLED = 1",
];

const BAD_FIELD: u16 = 1054;
const ACCESS_DENIED: u16 = 1045;
// "Connections using insecure transport are prohibited", as MySQL and MariaDB number it.
const INSECURE: [u16; 2] = [3159, 4230];

/// Why there is no answer.
#[derive(Debug)]
pub enum Fault {
    /// The server refused; the connection is good.
    Refused(u16, String),
    /// The connection is not.
    Lost(String),
}

impl Fault {
    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Refused(code, said) => format!("error {code}: {said}"),
            Self::Lost(why) => why,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::MySqlError(error) => Self::Refused(error.code, error.message),
            Error::DriverError(error) => Self::Lost(error.to_string()),
            Error::IoError(error) => Self::Lost(error.to_string()),
            other => Self::Lost(other.to_string()),
        }
    }
}

/// A connection to the server.
pub struct Session {
    conn: Conn,
    /// The connection's number, which only grows while the server lives.
    pub number: u32,
    metrics: Option<&'static str>,
    /// Why there are no metrics of the engine.
    pub refused: Option<String>,
}

impl Session {
    /// Connects, and asks once which of its forms the second question has here.
    ///
    /// # Errors
    /// In words: nobody there, or the server's own message.
    pub fn open(login: &Login) -> Result<Self, String> {
        let conn =
            Conn::new(options(login)).map_err(|error| refusal(error.into(), &login.place))?;
        let mut session = Self {
            number: conn.connection_id(),
            conn,
            metrics: None,
            refused: None,
        };
        session.prepare().map_err(Fault::words)?;
        Ok(session)
    }

    /// Gives each name and value of the global status.
    ///
    /// # Errors
    /// Those of the connection and the server.
    pub fn status(&mut self, each: impl FnMut([&[u8]; 2])) -> Result<(), Fault> {
        self.ask(STATUS, each)
    }

    /// Gives each name, value and type of the engine's metrics that are counted.
    ///
    /// # Errors
    /// Those of the connection and the server.
    pub fn metrics(&mut self, each: impl FnMut([&[u8]; 3])) -> Result<(), Fault> {
        match self.metrics {
            Some(question) => self.ask(question, each),
            None => Ok(()),
        }
    }

    /// Gives the first `N` cells of each row of the answer; NULL is empty.
    fn ask<const N: usize>(
        &mut self,
        question: &str,
        mut each: impl FnMut([&[u8]; N]),
    ) -> Result<(), Fault> {
        for row in self.conn.query_iter(question)? {
            let row = row?;
            let mut cells = [&[][..]; N];
            for (at, cell) in cells.iter_mut().enumerate() {
                if let Some(Value::Bytes(text)) = row.as_ref(at) {
                    *cell = text;
                }
            }
            each(cells);
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Fault> {
        for statement in QUIET {
            self.refused(statement)?;
        }
        if self.refused(FEW_ROWS)?.is_some() && self.is_true(LOGS_FEW_ROWS)? {
            self.refused = Some(WOULD_BE_LOGGED.to_owned());
            return Ok(());
        }
        for question in METRICS {
            match self.refused(question)? {
                None => {
                    self.metrics = Some(question);
                    self.refused = None;
                    return Ok(());
                }
                Some((code, said)) => {
                    self.refused = Some(said);
                    if code != BAD_FIELD {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    fn is_true(&mut self, question: &str) -> Result<bool, Fault> {
        let mut answer = false;
        let each = |[value]: [&[u8]; 1]| answer = value == b"1";
        self.ask(question, each)?;
        Ok(answer)
    }

    /// What the server has against a question, if anything; a lost connection stays a fault.
    fn refused(&mut self, question: &str) -> Result<Option<(u16, String)>, Fault> {
        match self.ask(question, |[]| ()) {
            Ok(()) => Ok(None),
            Err(Fault::Refused(code, said)) => Ok(Some((code, said))),
            Err(lost) => Err(lost),
        }
    }
}

fn refusal(fault: Fault, place: &Place) -> String {
    let code = match (&fault, place) {
        (Fault::Refused(code, _), Place::Tcp(..)) => *code,
        _ => 0,
    };
    let said = fault.words();
    if INSECURE.contains(&code) {
        return format!("{said}: the probe speaks no TLS: use the socket");
    }
    if code == ACCESS_DENIED {
        return format!(
            "{said} (the probe speaks no TLS: an account that demands it needs the socket)"
        );
    }
    said
}

fn options(login: &Login) -> OptsBuilder {
    let options = OptsBuilder::new()
        .user(Some(&login.user))
        .pass((!login.password.is_empty()).then_some(&login.password))
        // Else it would leave TCP for the socket by itself.
        .prefer_socket(false)
        // Else it would ask for this before we are quiet.
        .max_allowed_packet(Some(LARGEST_PACKET))
        .read_timeout(Some(PATIENCE))
        .write_timeout(Some(PATIENCE))
        .tcp_connect_timeout(Some(CONNECT))
        .tcp_keepalive_time_ms(Some(KEEPALIVE_MS))
        .stmt_cache_size(0)
        .connect_attrs(Some([("program_name", "mydyno-probe")].into()));
    match &login.place {
        Place::Socket(path) => options.socket(Some(path)),
        Place::Tcp(host, port) => options.ip_or_hostname(Some(host)).tcp_port(*port),
    }
}
