//! What stands on the disks, where there is any: md arrays, loop devices, ZFS, Btrfs.

use std::fs;
use std::path::PathBuf;

use crate::file::{decimal, lines, name, number, Look, OpenFile, Root, Words};
use crate::host::keyed::Keyed;
use crate::host::Part;
use crate::table::{Column, Keys, Table, Things};

/// /proc/mdstat.
pub struct Md {
    file: OpenFile,
    arrays: Things,
}

impl Md {
    pub fn new(root: &Root) -> Self {
        Self {
            file: OpenFile::new(root.path("proc/mdstat")),
            arrays: Things::new("array"),
        }
    }

    /// Begins an array's lines; the columns of what they then omit are absent.
    fn array(&mut self, array: &[u8], table: &mut Table) -> Option<[usize; 4]> {
        let first = self.arrays.first_round();
        let (row, new) = self.arrays.next(array);
        if new {
            let columns = [
                Column::gauge("md.disks", "count", 1.0),
                Column::gauge("md.missing", "count", 1.0),
                Column::gauge("md.sync_done", "ratio", 1e-3),
                Column::gauge("md.sync_speed", "B/s", 1024.0),
            ];
            row.define(columns.into_iter(), (!first).then_some("array"), table);
        }
        row.ids.iter().for_each(|id| table.gone(*id));
        row.ids[..].try_into().ok()
    }
}

impl Part for Md {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.arrays.gone(table);
        };
        self.arrays.begin();
        let mut ids = None;
        for line in lines(text) {
            let mut words = Words(line);
            let first = words.next().unwrap_or_default();
            if first.starts_with(b"md") && words.next() == Some(b":") {
                ids = self.array(first, table);
            } else if let Some([disks, missing, done, speed]) = ids {
                let (total, working) = slots(line).unzip();
                set(table, disks, total);
                set(table, missing, total.zip(working).map(|(all, up)| all - up));
                set(table, done, permille(line));
                set(table, speed, sync_speed(line));
            }
        }
        self.arrays.end(table);
    }
}

fn set(table: &mut Table, id: usize, value: Option<i64>) {
    if let Some(value) = value {
        table.set(id, value);
    }
}

/// `[2/1]`: two disks wanted, one at work.
fn slots(line: &[u8]) -> Option<(i64, i64)> {
    Words(line).find_map(|word| {
        let inside = word.strip_prefix(b"[")?.strip_suffix(b"]")?;
        let slash = inside.iter().position(|byte| *byte == b'/')?;
        Some((number(&inside[..slash])?, number(&inside[slash + 1..])?))
    })
}

/// `resync = 12.6%` as 126.
fn permille(line: &[u8]) -> Option<i64> {
    Words(line).find_map(|word| decimal(word.strip_suffix(b"%")?, 1))
}

/// `speed=1234K/sec` as 1234.
fn sync_speed(line: &[u8]) -> Option<i64> {
    let word = Words(line).find_map(|word| word.strip_prefix(b"speed="))?;
    number(word.strip_suffix(b"K/sec")?)
}

/// Whether loop devices bypass the page cache, looked at now and then.
pub struct Loops {
    blocks: PathBuf,
    loops: Things,
}

impl Loops {
    pub fn new(root: &Root) -> Self {
        Self {
            blocks: root.path("sys/block"),
            loops: Things::new("loop"),
        }
    }
}

impl Part for Loops {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        if !look.seldom {
            return;
        }
        self.loops.begin();
        for device in fs::read_dir(&self.blocks).into_iter().flatten().flatten() {
            // Only a device that has a file behind it has this.
            let path = device.path().join("loop/dio");
            let direct = look
                .open_and_read(&path)
                .and_then(|text| Words(text).number());
            let Some(direct) = direct else { continue };
            let (row, new) = self.loops.next(device.file_name().as_encoded_bytes());
            if new {
                let column = Column::gauge("loop.direct_io", "", 1.0);
                row.define(std::iter::once(column), None, table);
            }
            table.set(row.ids[0], direct);
        }
        self.loops.end(table);
    }
}

/// A file of ZFS's counters: a line of numbers, a line of headings, then name, type and value.
pub fn zfs(root: &Root, file: &str, group: &'static str) -> Keyed {
    let path = root.path("proc/spl/kstat/zfs").join(file);
    let column = move |key: &str| zfs_column(group, key);
    Keyed::new(path, column, |mut words| words.nth_number(1)).below(2)
}

/// Sizes and targets are states; the rest counts.
fn zfs_column(group: &str, key: &str) -> Option<Column> {
    let column = format!("zfs.{group}.{}", key.trim_start_matches("zil_"));
    let is_size = key.ends_with("size") || ["c", "c_min", "c_max", "arc_meta_used"].contains(&key);
    match key {
        _ if group == "arc" && is_size => Some(Column::gauge(column, "B", 1.0)),
        _ if key.ends_with("_bytes") => Some(Column::counter(column, "B", 1.0)),
        _ if group == "zil" || key.ends_with("hits") || key.ends_with("misses") => {
            Some(Column::counter(column, "count", 1.0))
        }
        "memory_throttle_count" | "evict_skip" | "deleted" => {
            Some(Column::counter(column, "count", 1.0))
        }
        _ => None,
    }
}

/// Commits of Btrfs file systems; those mounted later are found now and then.
pub struct Btrfs {
    folder: PathBuf,
    commits: Vec<(PathBuf, OpenFile, Keys)>,
}

impl Btrfs {
    pub fn new(root: &Root) -> Self {
        Self {
            folder: root.path("sys/fs/btrfs"),
            commits: Vec::new(),
        }
    }

    fn find(&mut self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path().join("commit_stats");
            if !path.exists() || self.commits.iter().any(|known| known.0 == path) {
                continue;
            }
            let of = name(entry.file_name().as_encoded_bytes());
            let keys = Keys::new(move |key| btrfs_column(key).map(|column| column.of(of.as_str())));
            self.commits.push((path.clone(), OpenFile::new(path), keys));
        }
    }
}

impl Part for Btrfs {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        if look.seldom {
            self.find();
        }
        self.commits.retain_mut(|(_, file, keys)| {
            let Some(text) = file.read(look) else {
                keys.gone(table);
                return false;
            };
            keys.begin();
            for line in lines(text) {
                let mut words = Words(line);
                let key = words.next().unwrap_or_default();
                keys.set(key, words.number(), table);
            }
            true
        });
    }
}

fn btrfs_column(key: &str) -> Option<Column> {
    match key {
        "commits" => Some(Column::counter("btrfs.commits", "count", 1.0)),
        "total_commit_ms" => Some(Column::counter("btrfs.commit_s", "s", 1e-3)),
        "max_commit_ms" => Some(Column::gauge("btrfs.longest_commit_s", "s", 1e-3)),
        _ => None,
    }
}
