//! The counters of IP, TCP and UDP: segments, retransmits, listen queues, and all the others.

use super::super::file::{Kept, Look};
use super::super::root::Root;
use super::super::table::{Column, Table};
use super::super::text::{lines, name, number, Words};
use super::Part;

/// The groups that are read; those of ICMP and MPTCP say nothing about a server.
const GROUPS: [&[u8]; 5] = [b"Ip:", b"Tcp:", b"Udp:", b"TcpExt:", b"IpExt:"];
/// Counters with a name of ours; the others keep the kernel's.
const OURS: [(&str, &str); 11] = [
    ("tcp.currestab", "tcp.established"),
    ("tcp.insegs", "tcp.in_segments"),
    ("tcp.outsegs", "tcp.out_segments"),
    ("tcp.retranssegs", "tcp.retransmits"),
    ("tcp.outrsts", "tcp.resets_out"),
    ("tcpext.listenoverflows", "tcp.listen_overflows"),
    ("tcpext.listendrops", "tcp.listen_drops"),
    ("tcpext.tcptimeouts", "tcp.timeouts"),
    ("tcpext.tcpfastretrans", "tcp.fast_retransmits"),
    ("tcpext.tcpsynretrans", "tcp.syn_retransmits"),
    ("tcpext.tcpbacklogdrop", "tcp.backlog_drops"),
];
/// Settings, not counts.
const SETTINGS: [&str; 6] = [
    "ip.forwarding",
    "ip.defaultttl",
    "tcp.rtoalgorithm",
    "tcp.rtomin",
    "tcp.rtomax",
    "tcp.maxconn",
];

/// A group, once its line of names was read.
#[derive(Default)]
struct Group {
    names: Vec<u8>,
    /// Each word's column.
    ids: Vec<Option<usize>>,
}

/// `/proc/net/snmp` or `/proc/net/netstat`: for each group a line of names and one of values.
pub struct Tcp {
    file: Kept,
    groups: Vec<Group>,
}

impl Tcp {
    pub fn new(root: &Root, path: &str) -> Self {
        Self {
            file: Kept::new(root.path(path)),
            groups: Vec::new(),
        }
    }
}

impl Part for Tcp {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.groups.iter().for_each(|group| group.gone(table));
        };
        let mut lines = lines(text);
        let mut at = 0;
        while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
            if !GROUPS.iter().any(|group| names.starts_with(group)) {
                continue;
            }
            if at == self.groups.len() {
                self.groups.push(Group::default());
            }
            self.groups[at].take(names, values, table);
            at += 1;
        }
    }
}

impl Group {
    fn take(&mut self, names: &[u8], values: &[u8], table: &mut Table) {
        if self.names != names {
            self.learn(names, table);
        }
        for (id, word) in self.ids.iter().zip(Words(values).skip(1)) {
            if let (Some(id), Some(value)) = (id, number(word)) {
                table.set(*id, value);
            }
        }
    }

    fn learn(&mut self, names: &[u8], table: &mut Table) {
        self.gone(table);
        self.names = names.to_vec();
        let mut words = Words(names).map(|word| name(word).to_lowercase());
        let group = words.next().unwrap_or_default().replace(':', ".");
        let id = |word: String| column(format!("{group}{word}")).map(|column| table.define(column));
        self.ids = words.map(id).collect();
    }

    fn gone(&self, table: &mut Table) {
        for id in self.ids.iter().flatten() {
            table.gone(*id);
        }
    }
}

fn column(theirs: String) -> Option<Column> {
    if SETTINGS.contains(&theirs.as_str()) {
        return None;
    }
    let ours = OURS.iter().find(|pair| pair.0 == theirs);
    let name = ours.map_or(theirs, |pair| pair.1.to_owned());
    Some(match name.as_str() {
        "tcp.established" => Column::gauge(name, "count", 1.0),
        "tcpext.tcpmemorypressureschrono" => Column::counter(name, "s", 1e-3),
        _ if name.ends_with("octets") => Column::counter(name, "B", 1.0),
        _ => Column::counter(name, "count", 1.0),
    })
}
