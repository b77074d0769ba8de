//! One connection: logged in, made quiet, asked its two questions.

use super::handshake::greet;
use super::login::{Login, Place};
use super::wire::{Fault, Wire};

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

/// A connection to the server.
pub struct Session {
    wire: Wire,
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
        let place = &login.place;
        let mut wire = Wire::connect(place).map_err(|error| format!("{place}: {error}"))?;
        let number = greet(&mut wire, login).map_err(|fault| refusal(fault, place))?;
        let mut session = Self {
            wire,
            number,
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
        self.wire.ask(STATUS, each)
    }

    /// Gives each name, value and type of the engine's metrics that are counted.
    ///
    /// # Errors
    /// Those of the connection and the server.
    pub fn metrics(&mut self, each: impl FnMut([&[u8]; 3])) -> Result<(), Fault> {
        match self.metrics {
            Some(question) => self.wire.ask(question, each),
            None => Ok(()),
        }
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
        self.wire.ask(question, each)?;
        Ok(answer)
    }

    /// What the server has against a question, if anything; a lost connection stays a fault.
    fn refused(&mut self, question: &str) -> Result<Option<(u16, String)>, Fault> {
        match self.wire.ask(question, |[]| ()) {
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
