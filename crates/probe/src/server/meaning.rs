//! What the server's variables are: counters unless a rule here makes them states, and the
//! known units.
//!
//! The rules are by name, since a server does not declare it; tests run a load on each server and
//! hold every value that falls to be one of these.

use crate::table::Kind;

/// A column's kind and unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    pub kind: Kind,
    pub unit: &'static str,
}

impl Meaning {
    /// A state.
    #[must_use]
    pub fn gauge(unit: &'static str) -> Self {
        let kind = Kind::Gauge;
        Self { kind, unit }
    }
}

/// States that no rule below names.
const GAUGES: &[&str] = &[
    "aria_pagecache_blocks_unused",
    "binlog_disk_use",
    "binlog_snapshot_position",
    "delayed_insert_threads",
    "error_log_buffered_bytes",
    "error_log_buffered_events",
    "error_log_latest_write",
    "global_connection_memory",
    "innodb_available_undo_logs",
    "innodb_encryption_rotation_estimated_iops",
    "innodb_ibuf_free_list",
    "innodb_num_open_files",
    "innodb_oldest_view_low_limit_trx_id", // of Percona Server; a transaction's number
    "innodb_purge_undo_no",
    "innodb_redo_log_uuid",
    "max_tmp_space_used",
    "max_used_connections",
    "mysqlx_sessions",
    "not_flushed_delayed_rows",
    "ongoing_anonymous_transaction_count",
    "opened_files", // MySQL 8.0 gives the open ones by this name
    "performance_schema_session_connect_attrs_longest_seen",
    "prepared_stmt_count",
    "slave_heartbeat_period",
    "ssl_default_timeout",
    "ssl_session_cache_timeout",
    "ssl_used_session_cache_entries",
    "stack_usage",
    "table_open_cache_active_instances",
    "tc_log_max_pages_used",
    "tmp_space_used",
    "wsrep",
];
const PREFIXES: &[&str] = &[
    "acl_",
    "current_",
    "innodb_current_",
    "innodb_have_",
    "innodb_mem_",
    "innodb_onlineddl_",
    "innodb_undo_tablespaces_",
    "last_query_",
    "memory_used",
    "mysqlx_worker_threads",
    "ongoing_",
    "open_",
    "qcache_free_",
    "slaves_",
    "ssl_ctx_verify_",
    "ssl_verify_",
    "threadpool_",
    "threads_",
];
const SUFFIXES: &[&str] = &[
    "_age",
    "_blocks_not_flushed",
    "_blocks_unused",
    "_blocks_used",
    "_blocks_warm",
    "_bytes_data",
    "_bytes_dirty",
    "_capacity_resized",
    "_clients",
    "_current_waits",
    "_in_cache",
    "_list_length",
    "_logical_size",
    "_memory",
    "_open_temp_tables",
    "_page_size",
    "_pages_data",
    "_pages_dirty",
    "_pages_free",
    "_pages_latched",
    "_pages_misc",
    "_pages_old",
    "_pages_total",
    "_physical_size",
    "_progress",
    "_segment_size",
    "_size",
    "_status_code",
    "_time_avg",
    "_time_max",
    "_total_blocks",
    "_wait_sessions",
    "_verify_depth",
    "_verify_mode",
];
const PARTS: &[&str] = &["_avg_", "_pending_"];
/// Names that a rule takes for states.
const COUNTERS: &[&str] = &["aborted_clients", "threads_created"];
/// Galera writes states but for these.
const GALERA: &[&str] = &[
    "wsrep_causal_reads",
    "wsrep_flow_control_paused_ns",
    "wsrep_flow_control_recv",
    "wsrep_flow_control_sent",
    "wsrep_last_committed",
    "wsrep_local_bf_aborts",
    "wsrep_local_cert_failures",
    "wsrep_local_commits",
    "wsrep_local_replays",
];
const GALERA_PREFIXES: &[&str] = &["wsrep_received", "wsrep_repl_", "wsrep_replicated"];
// Metrics that MariaDB gives as `value` though they only grow.
const METRIC_COUNTERS: &[&str] = &["lock_deadlocks", "lock_timeouts"];

const SECONDS: &[&str] = &[
    "busy_time",
    "cpu_time",
    "query_time",
    "uptime",
    "uptime_since_flush_status",
];
const BYTES: &[&str] = &[
    "binlog_bytes_written",
    "binlog_disk_use",
    "buffer_data_read",
    "buffer_data_written",
    "bytes_received",
    "bytes_sent",
    "error_log_buffered_bytes",
    "global_connection_memory",
    "innodb_data_read",
    "innodb_data_written",
    "innodb_os_log_written",
    "max_tmp_space_used",
    "os_log_bytes_written",
    "qcache_free_memory",
    "tmp_space_used",
];
const BYTES_PREFIXES: &[&str] = &[
    "innodb_lsn_",
    "innodb_mem_",
    "memory_used",
    "tc_log_page_size",
];
const BYTES_SUFFIXES: &[&str] = &[
    "_bytes_data",
    "_bytes_dirty",
    "_capacity_resized",
    "_checkpoint_age",
    "_checkpoint_max_age",
    "_logical_size",
    "_lsn",
    "_physical_size",
    "innodb_page_size",
];

/// What a variable of `SHOW GLOBAL STATUS` is, by its name in lower case.
#[must_use]
pub fn of_status(name: &str) -> Meaning {
    let kind = if is_gauge(name) {
        Kind::Gauge
    } else {
        Kind::Counter
    };
    let unit = unit(name);
    Meaning { kind, unit }
}

/// What one of `INNODB_METRICS` is, by its name and the type that the server gives it.
#[must_use]
pub fn of_metric(name: &str, given: &[u8]) -> Meaning {
    let state = given == b"value" && !METRIC_COUNTERS.contains(&name);
    let kind = if state || PARTS.iter().any(|part| name.contains(part)) {
        Kind::Gauge
    } else {
        Kind::Counter
    };
    let unit = unit(name);
    Meaning { kind, unit }
}

fn is_gauge(name: &str) -> bool {
    if name.starts_with("wsrep_") {
        return !GALERA.contains(&name) && !begins(name, GALERA_PREFIXES);
    }
    let ruled = begins(name, PREFIXES)
        || ends(name, SUFFIXES)
        || PARTS.iter().any(|part| name.contains(part));
    (ruled && !COUNTERS.contains(&name)) || GAUGES.contains(&name)
}

fn unit(name: &str) -> &'static str {
    if BYTES.contains(&name) || begins(name, BYTES_PREFIXES) || ends(name, BYTES_SUFFIXES) {
        "B"
    } else if SECONDS.contains(&name) {
        "s"
    } else {
        ""
    }
}

fn begins(name: &str, with: &[&str]) -> bool {
    with.iter().any(|part| name.starts_with(part))
}

fn ends(name: &str, with: &[&str]) -> bool {
    with.iter().any(|part| name.ends_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_in_use_is_a_state_in_bytes() {
        for name in ["tmp_space_used", "max_tmp_space_used", "binlog_disk_use"] {
            assert_eq!(of_status(name), Meaning::gauge("B"), "{name}");
        }
    }

    #[test]
    fn aborted_clients_are_counted_and_the_replicas_that_are_there_are_a_state() {
        assert_eq!(of_status("aborted_clients").kind, Kind::Counter);
        assert_eq!(of_status("rpl_semi_sync_master_clients").kind, Kind::Gauge);
    }
}
