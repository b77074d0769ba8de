//! An event's numbers, and its header as each server writes it.

use clap::ValueEnum;

use crate::clock::civil;
use crate::statement::Plan;
use crate::text::{fill, number, padded, seconds, Dice};

/// 2026-11-21 01:41:22 UTC.
const START: u64 = 1_795_225_282;
const CONNECTIONS: u64 = 8;

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Flavour {
    /// 10.11 with `log_slow_verbosity=query_plan,engine`
    Mariadb,
    Mysql8,
    Mysql8Extra,
    Percona,
}

/// What the server measured of one statement.
pub struct Event {
    end_s: u64,
    end_us: u64,
    thread: u64,
    plan: Plan,
    /// In units of 0.1 µs, as `MariaDB` has them.
    pub engine_time: u64,
    pub query_time_us: u64,
    pub lock_time_us: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
}

impl Event {
    pub fn new(dice: &mut Dice, nth: u64, per_second: u64, plan: Plan) -> Self {
        let chance = dice.roll();
        // Each further octave of time is half as likely, up to 1 s or so.
        let octave = (chance >> 40).trailing_zeros().min(14);
        let rows = if plan == Plan::Rows {
            chance & 1
        } else {
            chance & 0x7f
        };
        let query_time_us = (40 + ((chance >> 10) & 0x3f)) << octave;
        Self {
            plan,
            engine_time: query_time_us * 10 * (chance & 0xff) / 256,
            end_s: START + nth / per_second,
            end_us: nth % per_second * (1_000_000 / per_second),
            thread: 2 + nth % CONNECTIONS,
            query_time_us,
            lock_time_us: (chance >> 16) & 0xf,
            rows_sent: rows,
            rows_examined: rows << ((chance >> 20) & 3),
        }
    }
}

/// Writes events in one server's format.
pub struct Writer {
    flavour: Flavour,
    second: u64,
}

impl Writer {
    pub fn new(flavour: Flavour) -> Self {
        Self { flavour, second: 0 }
    }

    /// Appends the three lines that a server writes when it starts.
    pub fn banner(&self, out: &mut Vec<u8>) {
        let version = match self.flavour {
            Flavour::Mariadb => "10.11.19-MariaDB-0+deb12u1-log (Debian 12)",
            Flavour::Mysql8 | Flavour::Mysql8Extra => "8.0.33 (MySQL Community Server - GPL)",
            Flavour::Percona => "5.7.44-48-log (Percona Server (GPL), Release 48)",
        };
        out.extend_from_slice(b"/usr/sbin/mysqld, Version: ");
        out.extend_from_slice(version.as_bytes());
        out.extend_from_slice(
            b". started with:\nTcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\n",
        );
        out.extend_from_slice(b"Time                 Id Command    Argument\n");
    }

    pub fn event(&mut self, out: &mut Vec<u8>, event: &Event, statement: &[u8]) {
        match self.flavour {
            Flavour::Mariadb => self.mariadb(out, event),
            Flavour::Mysql8 => mysql8(out, event, b"\n"),
            Flavour::Mysql8Extra => mysql8_extra(out, event, statement.len() as u64),
            Flavour::Percona => percona(out, event),
        }
        fill(out, "SET timestamp={};\n", &[event.end_s]);
        out.extend_from_slice(statement);
        out.extend_from_slice(b";\n");
    }

    fn mariadb(&mut self, out: &mut Vec<u8>, event: &Event) {
        if event.end_s != self.second {
            self.second = event.end_s;
            out.extend_from_slice(b"# Time: ");
            civil(event.end_s).short(out);
            out.push(b'\n');
        }
        out.extend_from_slice(b"# User@Host: root[root] @ localhost []\n");
        fill(
            out,
            "# Thread_id: {}  Schema: sbtest  QC_hit: No\n# ",
            &[event.thread],
        );
        times(out, event, b"  ");
        fill(
            out,
            "\n# Rows_affected: {}  Bytes_sent: {}\n",
            &[0, 52 + 195 * event.rows_sent],
        );
        if event.plan == Plan::SortedTable {
            out.extend_from_slice(
                b"# Tmp_tables: 1  Tmp_disk_tables: 0  Tmp_table_sizes: 1310656\n",
            );
        }
        let table = if event.plan == Plan::SortedTable {
            "Yes"
        } else {
            "No"
        };
        if matches!(event.plan, Plan::Sort | Plan::SortedTable) {
            out.extend_from_slice(b"# Full_scan: No  Full_join: No  Tmp_table: ");
            out.extend_from_slice(table.as_bytes());
            out.extend_from_slice(
                b"  Tmp_table_on_disk: No\n# Filesort: Yes  Filesort_on_disk: No  \
                  Merge_passes: 0  Priority_queue: No\n",
            );
        }
        if event.plan != Plan::Nothing {
            engine(out, event);
        }
    }
}

fn engine(out: &mut Vec<u8>, event: &Event) {
    let pages = 2 + event.rows_examined / 16;
    fill(
        out,
        "# Pages_accessed: {}  Pages_read: 0  Pages_prefetched: 0  Pages_updated: 0  \
         Old_rows_read: 0\n# Pages_read_time: 0.0000  Engine_time: ",
        &[pages],
    );
    number(out, event.engine_time / 10_000);
    out.push(b'.');
    padded::<4>(out, event.engine_time);
    out.push(b'\n');
}

fn mysql8(out: &mut Vec<u8>, event: &Event, end: &[u8]) {
    iso_time(out, event);
    out.extend_from_slice(b"# User@Host: sbtest[sbtest] @ localhost []  Id:    ");
    padded::<2>(out, event.thread);
    out.extend_from_slice(b"\n# ");
    times(out, event, b" ");
    out.extend_from_slice(end);
}

fn mysql8_extra(out: &mut Vec<u8>, event: &Event, received: u64) {
    mysql8(out, event, b"");
    fill(
        out,
        " Thread_id: {} Errno: 0 Killed: 0 Bytes_received: {} Bytes_sent: {} Read_first: 0 \
         Read_last: 0 Read_key: {} Read_next: 0 Read_prev: 0 Read_rnd: 0 Read_rnd_next: 0 \
         Sort_merge_passes: 0 Sort_range_count: 0 Sort_rows: 0 Sort_scan_count: 0 \
         Created_tmp_disk_tables: 0 Created_tmp_tables: 0 Start: ",
        &[
            event.thread,
            received + 1,
            52 + 195 * event.rows_sent,
            event.rows_examined,
        ],
    );
    let end = event.end_s * 1_000_000 + event.end_us;
    let start = end - event.query_time_us;
    civil(start / 1_000_000).iso(out, start % 1_000_000);
    out.extend_from_slice(b" End: ");
    civil(event.end_s).iso(out, event.end_us);
    out.push(b'\n');
}

fn percona(out: &mut Vec<u8>, event: &Event) {
    iso_time(out, event);
    out.extend_from_slice(b"# User@Host: sbtest[sbtest] @ localhost []  Id:    ");
    padded::<2>(out, event.thread);
    out.extend_from_slice(b"\n# Schema: sbtest  Last_errno: 0  Killed: 0\n# ");
    times(out, event, b"  ");
    fill(
        out,
        "  Rows_affected: 0\n# Bytes_sent: {}  Tmp_tables: 0  Tmp_disk_tables: 0  \
         Tmp_table_sizes: 0\n# InnoDB_trx_id: 0\n# QC_Hit: No  Full_scan: No  Full_join: No  \
         Tmp_table: No  Tmp_table_on_disk: No\n# Filesort: No  Filesort_on_disk: No  \
         Merge_passes: 0\n#   InnoDB_IO_r_ops: 0  InnoDB_IO_r_bytes: 0  \
         InnoDB_IO_r_wait: 0.000000\n#   InnoDB_rec_lock_wait: 0.000000  \
         InnoDB_queue_wait: 0.000000\n#   InnoDB_pages_distinct: {}\n",
        &[52 + 195 * event.rows_sent, 3 + event.rows_examined],
    );
}

fn iso_time(out: &mut Vec<u8>, event: &Event) {
    out.extend_from_slice(b"# Time: ");
    civil(event.end_s).iso(out, event.end_us);
    out.push(b'\n');
}

/// Appends the line that every server writes; only the gap after the lock time differs.
fn times(out: &mut Vec<u8>, event: &Event, gap: &[u8]) {
    out.extend_from_slice(b"Query_time: ");
    seconds(out, event.query_time_us);
    out.extend_from_slice(b"  Lock_time: ");
    seconds(out, event.lock_time_us);
    out.extend_from_slice(gap);
    fill(
        out,
        "Rows_sent: {}  Rows_examined: {}",
        &[event.rows_sent, event.rows_examined],
    );
}
