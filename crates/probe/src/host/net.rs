//! Network interfaces, the kernel's backlog, and the counters of IP, TCP and UDP.

use std::path::PathBuf;

use crate::file::{hexadecimal, lines, name, number, Look, OpenFile, Root, Words};
use crate::host::Part;
use crate::table::{Column, Table, Things};

/// Where in a line of /proc/net/dev, behind the name, and what.
const FIELDS: [(usize, &str, &str); 8] = [
    (0, "rx_bytes", "B"),
    (1, "rx_packets", "count"),
    (2, "rx_errors", "count"),
    (3, "rx_drops", "count"),
    (8, "tx_bytes", "B"),
    (9, "tx_packets", "count"),
    (10, "tx_errors", "count"),
    (11, "tx_drops", "count"),
];
/// The speed stands behind the fields.
const SPEED: usize = FIELDS.len();

/// /proc/net/dev, and /sys/class/net/X/speed now and then: it takes a lock.
pub struct Interfaces {
    file: OpenFile,
    each: Things,
    class: PathBuf,
}

impl Interfaces {
    pub fn new(root: &Root) -> Self {
        Self {
            file: OpenFile::new(root.path("proc/self/net/dev")),
            each: Things::new("interface"),
            class: root.path("sys/class/net"),
        }
    }

    fn interface(&mut self, interface: &[u8], words: Words, table: &mut Table) {
        let first = self.each.first_round();
        let (row, new) = self.each.next(interface);
        if row.ids.is_empty() {
            if words.clone().filter_map(number).all(|value| value == 0) {
                return;
            }
            row.define(columns(), (new && !first).then_some("interface"), table);
        }
        for (at, word) in words.enumerate() {
            let field = FIELDS.iter().position(|field| field.0 == at);
            if let (Some(field), Some(value)) = (field, number(word)) {
                table.set(row.ids[field], value);
            }
        }
    }

    fn speeds(&self, look: &mut Look, table: &mut Table) {
        for row in self.each.rows().filter(|row| !row.ids.is_empty()) {
            let path = self.class.join(name(row.name())).join("speed");
            let speed = look
                .open_and_read(&path)
                .and_then(|text| Words(text).number());
            // A driver that does not know reports -1, old ones as 32 bits, or an error.
            match speed {
                Some(speed) if speed > 0 && speed < i64::from(u32::MAX) => {
                    table.set(row.ids[SPEED], speed);
                }
                _ => table.gone(row.ids[SPEED]),
            }
        }
    }
}

impl Part for Interfaces {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.each.gone(table);
        };
        self.each.begin();
        for line in lines(text).skip(2) {
            // Old kernels leave no blank behind the colon.
            let Some(colon) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let interface = line[..colon].trim_ascii();
            self.interface(interface, Words(&line[colon + 1..]), table);
        }
        self.each.end(table);
        if look.seldom {
            self.speeds(look, table);
        }
    }
}

fn columns() -> impl Iterator<Item = Column> {
    FIELDS
        .iter()
        .map(|(_, field, unit)| Column::counter(format!("net.{field}"), unit, 1.0))
        .chain(std::iter::once(Column::gauge("net.speed", "bit/s", 1e6)))
}

/// `/proc/net/softnet_stat`, summed over the CPUs.
pub struct Softnet {
    file: OpenFile,
    ids: Option<[usize; 2]>,
}

impl Softnet {
    pub fn new(root: &Root) -> Self {
        Self {
            file: OpenFile::new(root.path("proc/self/net/softnet_stat")),
            ids: None,
        }
    }
}

impl Part for Softnet {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.ids.iter().flatten().for_each(|id| table.gone(*id));
        };
        let ids = *self.ids.get_or_insert_with(|| {
            ["net.backlog_drops", "net.time_squeeze"]
                .map(|name| table.define(Column::counter(name, "count", 1.0)))
        });
        let mut sums = [0; 2];
        for line in lines(text) {
            for (sum, word) in sums.iter_mut().zip(Words(line).skip(1)) {
                *sum += hexadecimal(word).unwrap_or(0);
            }
        }
        for (id, sum) in ids.into_iter().zip(sums) {
            table.set(id, sum);
        }
    }
}

/// The groups that are read; those of ICMP and MPTCP are not about a server.
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
    file: OpenFile,
    groups: Vec<Group>,
}

impl Tcp {
    pub fn new(root: &Root, path: &str) -> Self {
        Self {
            file: OpenFile::new(root.path(path)),
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
