//! One connection: logged in, made quiet, asked its two questions; whether the server is the same.

use crate::server::handshake::greet;
use crate::server::login::{Login, Place};
use crate::server::wire::{Fault, Wire};

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
const IS_MARIADB: &str = "SELECT @@GLOBAL.version LIKE '%MariaDB%'";
const STATUS: &str = "SHOW GLOBAL STATUS";
// MariaDB pays some 3 µs for each row; half of them report neither speed nor waits.
const STATUS_OF_MARIADB: &str = "SHOW GLOBAL STATUS \
    WHERE LEFT(Variable_name, 4) NOT IN ('Acl_', 'Com_', 'Feat', 'Perf', 'Ssl_') \
    OR Variable_name IN ('Com_begin', 'Com_call_procedure', 'Com_commit', 'Com_delete', \
    'Com_delete_multi', 'Com_insert', 'Com_insert_select', 'Com_load', 'Com_multi', 'Com_replace', \
    'Com_rollback', 'Com_select', 'Com_show_status', 'Com_stmt_execute', 'Com_stmt_prepare', \
    'Com_update', 'Com_update_multi', 'Ssl_accepts')";
// MySQL and MariaDB before 10.5 have a word, later ones a number.
const METRICS: [&str; 2] = [
    "SELECT NAME, COUNT, TYPE FROM information_schema.INNODB_METRICS WHERE STATUS = 'enabled'",
    "SELECT NAME, COUNT, TYPE FROM information_schema.INNODB_METRICS WHERE ENABLED = 1",
];
// Whether MariaDB 10.5 or later counts more than it does by default.  What it counts by default is
// in its status too, but for lock_timeouts, two of LRU flushing and undo slots: too little for a
// third of a millisecond each time.
const MORE_METRICS: &str = "SELECT COUNT(*) > 0 FROM information_schema.INNODB_METRICS \
    WHERE ENABLED = 1 AND NAME NOT IN ( \
    'lock_deadlocks', 'lock_timeouts', 'lock_row_lock_current_waits', 'lock_row_lock_time', \
    'lock_row_lock_time_max', 'lock_row_lock_waits', 'lock_row_lock_time_avg', \
    'buffer_pool_size', 'buffer_pool_reads', 'buffer_pool_read_requests', \
    'buffer_pool_write_requests', 'buffer_pool_wait_free', 'buffer_pool_read_ahead', \
    'buffer_pool_read_ahead_evicted', 'buffer_pool_pages_total', 'buffer_pool_pages_misc', \
    'buffer_pool_pages_data', 'buffer_pool_bytes_data', 'buffer_pool_pages_dirty', \
    'buffer_pool_bytes_dirty', 'buffer_pool_pages_free', 'buffer_pages_created', \
    'buffer_pages_written', 'buffer_pages_read', 'buffer_data_reads', 'buffer_data_written', \
    'buffer_LRU_batch_flush_total_pages', 'buffer_LRU_batch_evict_total_pages', \
    'os_data_reads', 'os_data_writes', 'os_data_fsyncs', 'os_pending_reads', \
    'os_pending_writes', 'os_log_bytes_written', 'trx_rseg_history_len', \
    'trx_undo_slots_cached', 'log_waits', 'log_write_requests', 'log_writes', \
    'adaptive_hash_searches', 'adaptive_hash_searches_btree', 'file_num_open_files', \
    'ibuf_merges_insert', 'ibuf_merges_delete_mark', 'ibuf_merges_delete', \
    'ibuf_merges_discard_insert', 'ibuf_merges_discard_delete_mark', \
    'ibuf_merges_discard_delete', 'ibuf_merges', 'ibuf_size', 'innodb_activity_count', \
    'innodb_dblwr_writes', 'innodb_dblwr_pages_written', 'innodb_page_size')";

// The threads of all connections: which serve a client, which wait for theirs, and which for a lock
// of metadata, of a table or of a name; our own, daemons and those of replication serve nobody.
// MySQL 5.6 and MariaDB before 10.1 do not list them.
const CONNECTIONS: &str = "SELECT THREAD_OS_ID, PROCESSLIST_ID <> CONNECTION_ID() \
    AND PROCESSLIST_COMMAND NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID') \
    AND COALESCE(PROCESSLIST_USER, '') <> 'system user' \
    AND NAME NOT LIKE 'thread/sql/replica%' AND NAME NOT LIKE 'thread/sql/slave%', \
    PROCESSLIST_COMMAND = 'Sleep', \
    COALESCE(PROCESSLIST_STATE LIKE 'Waiting for %lock' \
    OR PROCESSLIST_STATE IN ('Waiting for table flush', 'User lock'), 0) \
    FROM performance_schema.threads \
    WHERE PROCESSLIST_ID IS NOT NULL AND THREAD_OS_ID IS NOT NULL";
const CONNECTIONS_OF_MARIADB: &str = "SELECT TID, ID <> CONNECTION_ID() \
    AND USER <> 'system user' \
    AND COMMAND NOT IN ('Daemon', 'Binlog Dump', 'Binlog Dump GTID'), \
    COMMAND = 'Sleep', \
    COALESCE(STATE LIKE 'Waiting for %lock' \
    OR STATE IN ('Waiting for table flush', 'User lock'), 0) \
    FROM information_schema.PROCESSLIST WHERE TID IS NOT NULL";

const BAD_FIELD: u16 = 1054;
const ACCESS_DENIED: u16 = 1045;
// "Connections using insecure transport are prohibited", as MySQL and MariaDB number it.
const INSECURE: [u16; 2] = [3159, 4230];

/// A connection to the server.
pub struct Session {
    wire: Wire,
    /// The connection's number, which only grows while the server lives.
    pub number: u32,
    status: &'static str,
    metrics: Option<&'static str>,
    connections: &'static str,
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
            status: STATUS,
            metrics: None,
            connections: CONNECTIONS,
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
        self.wire.ask(self.status, each)
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

    /// Gives of each connection its thread's number, whether it serves a client, whether it waits
    /// for that, and whether for a lock of the server's.  Our own is one of them; nothing comes
    /// where the server does not list them.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn connections(&mut self, each: impl FnMut([&[u8]; 4])) -> Result<(), Fault> {
        match self.wire.ask(self.connections, each) {
            Err(Fault::Refused(..)) => Ok(()),
            done => done,
        }
    }

    fn prepare(&mut self) -> Result<(), Fault> {
        for statement in QUIET {
            self.refused(statement)?;
        }
        if self.is_true(IS_MARIADB)? {
            self.status = STATUS_OF_MARIADB;
            self.connections = CONNECTIONS_OF_MARIADB;
        }
        if self.refused(FEW_ROWS)?.is_some() && self.is_true(LOGS_FEW_ROWS)? {
            self.refused = Some(WOULD_BE_LOGGED.to_owned());
            return Ok(());
        }
        for question in METRICS {
            match self.refused(question)? {
                None => {
                    let asked = question != METRICS[1] || self.is_true(MORE_METRICS)?;
                    self.metrics = asked.then_some(question);
                    self.refused = None;
                    return Ok(());
                }
                Some((code, message)) => {
                    self.refused = Some(message);
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
            Err(Fault::Refused(code, message)) => Ok(Some((code, message))),
            Err(lost) => Err(lost),
        }
    }
}

fn refusal(fault: Fault, place: &Place) -> String {
    let code = match (&fault, place) {
        (Fault::Refused(code, _), Place::Tcp(..)) => *code,
        _ => 0,
    };
    let message = fault.words();
    if INSECURE.contains(&code) {
        return format!("{message}: the probe speaks no TLS: use the socket");
    }
    if code == ACCESS_DENIED {
        return format!(
            "{message} (the probe speaks no TLS: an account that demands it needs the socket)"
        );
    }
    message
}

/// The server's start may seem to move so far without a restart: uptime is in full seconds.
const SLACK_NS: i64 = 2_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// What distinguishes one start of a server from another, as of one reading.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    pub connection: u32,
    pub uptime_s: i64,
    pub monotonic_ns: i64,
    pub wall_ns: i64,
}

impl Sign {
    /// Whether the server restarted since `before`, which was read over another connection.
    ///
    /// Connections are numbered from 1 again after a start.  Else its start must have moved on both
    /// clocks: uptime follows the wall clock, and a step of that is no restart.
    #[must_use]
    pub fn is_after_restart(&self, before: &Self) -> bool {
        let moved = |now_ns: i64, then_ns: i64| {
            let uptime_ns = self
                .uptime_s
                .saturating_sub(before.uptime_s)
                .saturating_mul(SECOND);
            now_ns - then_ns > uptime_ns.saturating_add(SLACK_NS)
        };
        self.connection <= before.connection
            || moved(self.monotonic_ns, before.monotonic_ns) && moved(self.wall_ns, before.wall_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(connection: u32, uptime_s: i64, monotonic_s: i64, wall_s: i64) -> Sign {
        Sign {
            connection,
            uptime_s,
            monotonic_ns: monotonic_s * SECOND,
            wall_ns: wall_s * SECOND,
        }
    }

    #[test]
    fn a_restart_differs_from_a_lost_connection_and_a_step_of_the_clock() {
        let before = sign(40, 1000, 5000, 90_000);
        for (restarted, after) in [
            (false, sign(41, 1030, 5030, 90_030)),
            (false, sign(41, 901, 5001, 89_901)),
            (false, sign(41, 4601, 5001, 93_601)),
            (true, sign(3, 1, 5020, 90_020)),
            (true, sign(40, 1, 5020, 90_020)),
            (true, sign(90, 1, 5020, 90_020)),
            (true, sign(90, 2000, 9000, 94_000)), // up longer than it was, yet another
        ] {
            assert_eq!(after.is_after_restart(&before), restarted, "{after:?}");
        }
    }
}
