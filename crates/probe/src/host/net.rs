//! Network interfaces: bytes, packets, errors, drops and speed; and the kernel's backlog.

use std::path::PathBuf;

use super::super::file::{Kept, Look};
use super::super::root::Root;
use super::super::rows::Things;
use super::super::table::{Column, Table};
use super::super::text::{hexadecimal, lines, name, number, Words};
use super::Part;

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
    file: Kept,
    each: Things,
    class: PathBuf,
}

impl Interfaces {
    pub fn new(root: &Root) -> Self {
        Self {
            file: Kept::new(root.path("proc/self/net/dev")),
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
            // A driver that does not know says -1, old ones as 32 bits, or an error.
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
    file: Kept,
    ids: Option<[usize; 2]>,
}

impl Softnet {
    pub fn new(root: &Root) -> Self {
        Self {
            file: Kept::new(root.path("proc/self/net/softnet_stat")),
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
