//! The sampler's file: head, columns, ticks, notes and end, each a frame with its checksum.

use std::fs;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{json, Value};

use crate::file::{clock_ticks, page_size};
use crate::table::{Cell, Table};

/// What the file begins with.
pub const MAGIC: &[u8] = b"mydyno-probe 1\n";

/// When a tick was, relative to the head's clocks.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// Which deadline this tick was for.
    pub seq: u64,
    pub begin_ns: i64,
    pub took_ns: i64,
    /// How far the wall clock went from the monotonic one since the head.
    pub drift_ns: i64,
}

/// Turns what happened into bytes; its buffers are used again for every tick.
#[derive(Debug, Default)]
pub struct Encoder {
    /// Frames that wait to be written.
    pub out: Vec<u8>,
    runs: Vec<u8>,
    bitmap: Vec<u8>,
    deltas: Vec<u8>,
}

impl Encoder {
    /// The head, with the magic before it.
    pub fn head(&mut self, head: &Value) {
        self.out.extend_from_slice(MAGIC);
        self.json(b'H', head);
    }

    /// A tick: the columns that are new, the values that changed, and what was noted.
    pub fn tick(&mut self, tick: &Tick, table: &mut Table) {
        self.columns(table);
        self.values(table);
        self.frame(b'T', |encoder| {
            let out = &mut encoder.out;
            unsigned(out, tick.seq);
            unsigned(out, tick.begin_ns.unsigned_abs());
            unsigned(out, tick.took_ns.unsigned_abs());
            signed(out, tick.drift_ns);
            out.append(&mut encoder.runs);
            unsigned(out, encoder.bitmap.len() as u64);
            out.append(&mut encoder.bitmap);
            out.append(&mut encoder.deltas);
        });
        for note in std::mem::take(&mut table.notes) {
            self.json(
                b'N',
                &json!({"seq": tick.seq, "source": note.source, "event": note.event.word(),
                        "of": note.of, "text": note.text}),
            );
        }
    }

    /// The end, and why.
    pub fn end(&mut self, end: &Value) {
        self.json(b'E', end);
    }

    fn columns(&mut self, table: &mut Table) {
        if table.fresh.is_empty() {
            return;
        }
        let columns: Vec<Value> = std::mem::take(&mut table.fresh)
            .into_iter()
            .map(|(column, source)| {
                json!({"name": column.name, "of": column.of, "unit": column.unit,
                       "kind": column.kind.word(), "scale": column.scale, "source": source})
            })
            .collect();
        self.json(b'C', &Value::Array(columns));
    }

    /// Fills `runs`, `bitmap` and `deltas`, and takes the values as filed.
    fn values(&mut self, table: &mut Table) {
        let mut gone = Runs::default();
        self.bitmap.resize(table.cells.len().div_ceil(8), 0);
        for (id, cell) in table.cells.iter_mut().enumerate() {
            if !cell.present && cell.filed_present {
                cell.filed_present = false;
                gone.add(id, &mut self.deltas);
            }
        }
        gone.close(&mut self.deltas);
        unsigned(&mut self.runs, gone.count);
        self.runs.append(&mut self.deltas);
        for (id, cell) in table.cells.iter_mut().enumerate() {
            if let Some(delta) = delta(cell) {
                self.bitmap[id / 8] |= 1 << (id % 8);
                signed(&mut self.deltas, delta);
            }
        }
        let used = self.bitmap.iter().rposition(|byte| *byte != 0);
        self.bitmap.truncate(used.map_or(0, |last| last + 1));
    }

    fn json(&mut self, kind: u8, value: &Value) {
        self.frame(kind, |encoder| {
            encoder.out.extend_from_slice(value.to_string().as_bytes());
        });
    }

    /// One frame whose payload `fill` adds to `out`.
    fn frame(&mut self, kind: u8, fill: impl FnOnce(&mut Self)) {
        let start = self.out.len();
        self.out.extend_from_slice(&[kind, 0, 0, 0, 0]);
        fill(self);
        let length = u32::try_from(self.out.len() - start - 5).unwrap_or(u32::MAX);
        self.out[start + 1..start + 5].copy_from_slice(&length.to_le_bytes());
        let checksum = crc32fast::hash(&self.out[start..]);
        self.out.extend_from_slice(&checksum.to_le_bytes());
    }
}

/// The entry of a column, if it has one in this tick.
fn delta(cell: &mut Cell) -> Option<i64> {
    if !cell.present || (cell.filed_present && cell.now == cell.filed) {
        return None;
    }
    let delta = cell.now.wrapping_sub(cell.filed);
    cell.filed = cell.now;
    cell.filed_present = true;
    Some(delta)
}

/// Runs of neighbouring columns.
#[derive(Default)]
struct Runs {
    count: u64,
    start: usize,
    length: usize,
    last_end: usize,
}

impl Runs {
    fn add(&mut self, id: usize, out: &mut Vec<u8>) {
        if self.length > 0 && id == self.start + self.length {
            self.length += 1;
            return;
        }
        self.close(out);
        self.start = id;
        self.length = 1;
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if self.length == 0 {
            return;
        }
        unsigned(out, (self.start - self.last_end) as u64);
        unsigned(out, self.length as u64);
        self.last_end = self.start + self.length;
        self.length = 0;
        self.count += 1;
    }
}

/// LEB128.
fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// LEB128 of the zigzag: small either way is short.
fn signed(out: &mut Vec<u8>, value: i64) {
    let zigzag = (value << 1) ^ (value >> 63);
    unsigned(out, u64::from_ne_bytes(zigzag.to_ne_bytes()));
}

/// The head of a file whose times count from `mono_ns`, which was `wall_ns` for people.
#[must_use]
pub fn head(mono_ns: i64, wall_ns: i64, interval_ns: i64) -> Value {
    json!({
        "wall_ns": wall_ns,
        "mono_ns": mono_ns,
        "interval_ns": interval_ns,
        "host": rustix::system::uname().nodename().to_string_lossy(),
        "boot_id": boot_id(),
        "hz": clock_ticks(),
        "page_size": page_size(),
        "cpus": cpus(),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// How many CPUs are at work, whichever of them this process may use.
fn cpus() -> usize {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_cpu = |line: &&str| {
        line.strip_prefix("cpu")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    stat.lines().filter(is_cpu).count()
}

/// The open file and its encoder.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    encoder: Encoder,
    complete: u64,
}

impl Recorder {
    /// Makes the file, which must not be there, for its owner only.
    ///
    /// # Errors
    /// Those of open.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            encoder: Encoder::default(),
            complete: 0,
        })
    }

    /// Writes the head.
    ///
    /// # Errors
    /// Those of write; the file then ends with its last complete frame, here and below.
    pub fn head(&mut self, head: &Value) -> io::Result<()> {
        self.encoder.head(head);
        self.write()
    }

    /// Writes a tick and all that came with it.
    ///
    /// # Errors
    /// Those of write.
    pub fn tick(&mut self, tick: &Tick, table: &mut Table) -> io::Result<()> {
        self.encoder.tick(tick, table);
        self.write()
    }

    /// Writes the end.
    ///
    /// # Errors
    /// Those of write.
    pub fn end(&mut self, end: &Value) -> io::Result<()> {
        self.encoder.end(end);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        match self.file.write_all(&self.encoder.out) {
            Ok(()) => self.complete += self.encoder.out.len() as u64,
            Err(error) => {
                // A torn frame would hide what somebody appends later; the first error is what counts.
                let _ = self.file.set_len(self.complete);
                return Err(error);
            }
        }
        self.encoder.out.clear();
        Ok(())
    }
}
