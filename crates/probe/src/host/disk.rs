//! Block devices: requests, bytes, times and flushes.

use std::path::PathBuf;

use crate::file::{lines, name, number, Look, OpenFile, Root, Words};
use crate::host::Part;
use crate::table::{Column, Kind, Table, Things};

const SECTOR: f64 = 512.0;
const MS: f64 = 1e-3;
/// The fields of /proc/diskstats behind the name; 11 of them until Linux 4.18, 15 until 5.5.
const FIELDS: [(&str, &str, f64); 17] = [
    ("reads", "count", 1.0),
    ("reads_merged", "count", 1.0),
    ("read_bytes", "B", SECTOR),
    ("read_s", "s", MS),
    ("writes", "count", 1.0),
    ("writes_merged", "count", 1.0),
    ("write_bytes", "B", SECTOR),
    ("write_s", "s", MS),
    ("in_flight", "count", 1.0),
    ("busy_s", "s", MS),
    ("weighted_s", "s", MS),
    ("discards", "count", 1.0),
    ("discards_merged", "count", 1.0),
    ("discard_bytes", "B", SECTOR),
    ("discard_s", "s", MS),
    ("flushes", "count", 1.0),
    ("flush_s", "s", MS),
];
const OLDEST: usize = 11;

/// /proc/diskstats.
pub struct Disks {
    file: OpenFile,
    each: Things,
    /// Where a disk, not a partition, has a directory, and a partition has none.
    blocks: Option<PathBuf>,
}

impl Disks {
    pub fn new(root: &Root) -> Self {
        let blocks = root.path("sys/block");
        Self {
            file: OpenFile::new(root.path("proc/diskstats")),
            each: Things::new("disk"),
            blocks: blocks.is_dir().then_some(blocks),
        }
    }

    fn disk(&mut self, disk: &[u8], words: Words, table: &mut Table) {
        let first = self.each.first_round();
        let (row, new) = self.each.next(disk);
        if new {
            row.skip = disk.starts_with(b"ram") || !is_disk(self.blocks.as_ref(), disk);
        }
        if row.skip {
            return;
        }
        if row.ids.is_empty() {
            // A device that was never used, such as the eight loop devices, is not worth columns.
            if words.clone().filter_map(number).all(|value| value == 0)
                || words.clone().count() < OLDEST
            {
                return;
            }
            let appeared = (new && !first).then_some("disk");
            row.define(columns(words.clone().count()), appeared, table);
        }
        for ((id, word), (_, unit, _)) in row.ids.iter().zip(words).zip(FIELDS) {
            let Some(raw) = number(word) else { return };
            let value = if unit == "s" {
                unwrapped(*id, raw, table)
            } else {
                raw
            };
            table.set(*id, value);
        }
    }
}

impl Part for Disks {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.each.gone(table);
        };
        self.each.begin();
        for line in lines(text) {
            let mut words = Words(line);
            if let Some(disk) = words.nth(2) {
                self.disk(disk, words, table);
            }
        }
        self.each.end(table);
    }
}

fn columns(fields: usize) -> impl Iterator<Item = Column> {
    FIELDS
        .iter()
        .take(fields)
        .map(|(field, unit, scale)| Column {
            kind: if *field == "in_flight" {
                Kind::Gauge
            } else {
                Kind::Counter
            },
            ..Column::counter(format!("disk.{field}"), unit, *scale)
        })
}

/// The kernel cuts its times to 32 bits of milliseconds: 49 days of waiting, which many requests
/// in flight reach within a day.
fn unwrapped(id: usize, raw: i64, table: &Table) -> i64 {
    const WRAP: i64 = 1 << 32;
    match table.get(id) {
        Some(before) if (0..WRAP).contains(&raw) => {
            let value = before - before.rem_euclid(WRAP) + raw;
            match value - before {
                fell if fell < -WRAP / 2 => value + WRAP,
                rose if rose > WRAP / 2 && value >= WRAP => value - WRAP,
                _ => value,
            }
        }
        _ => raw,
    }
}

/// Whether it is a disk, not a partition of one.
fn is_disk(blocks: Option<&PathBuf>, disk: &[u8]) -> bool {
    let disk = name(disk);
    match blocks {
        Some(blocks) => blocks.join(disk.replace('/', "!")).exists(),
        None => !named_as_partition(&disk),
    }
}

/// `sda1` and `nvme0n1p2` are names of partitions, where there is no /sys to ask.
fn named_as_partition(disk: &str) -> bool {
    let stem = disk.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() == disk.len() {
        return false;
    }
    match stem.strip_suffix('p') {
        Some(before) if before.ends_with(|c: char| c.is_ascii_digit()) => true,
        _ => ["sd", "hd", "vd", "xvd"].iter().any(|kind| {
            stem.strip_prefix(kind).is_some_and(|letters| {
                !letters.is_empty() && letters.chars().all(|c| c.is_ascii_lowercase())
            })
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_known_by_name_without_sys() {
        for partition in [
            "sda1",
            "vdb12",
            "xvda1",
            "nvme0n1p2",
            "mmcblk0p1",
            "loop3p1",
            "md0p1",
        ] {
            assert!(named_as_partition(partition), "{partition}");
        }
        for disk in [
            "sda", "vdaa", "nvme0n1", "mmcblk0", "loop3", "md127", "dm-0", "zram0", "nbd1",
        ] {
            assert!(!named_as_partition(disk), "{disk}");
        }
    }

    #[test]
    fn times_go_on_beyond_32_bits() {
        let mut table = Table::new();
        let id = table.define(Column::counter("disk.busy_s", "s", MS));
        for (raw, wanted) in [
            (4_294_967_290, 4_294_967_290),
            (4, 4_294_967_300),
            (3, 4_294_967_299),
            (4_294_967_295, 4_294_967_295),
            (2_000_000_000, 6_294_967_296),
            (4_000_000_000, 8_294_967_296),
            (0, 8_589_934_592),
        ] {
            let value = unwrapped(id, raw, &table);
            table.set(id, value);
            assert_eq!(value, wanted);
        }
    }
}
