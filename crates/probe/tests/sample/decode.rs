//! A second, independent reading of the file's format, for tests.

use serde_json::Value;

/// The content of a file, up to its first incomplete frame.
#[derive(Debug, Default, PartialEq)]
pub struct File {
    pub head: Value,
    pub columns: Vec<Value>,
    pub ticks: Vec<Tick>,
    pub notes: Vec<Value>,
    pub end: Value,
    /// Bytes up to there.
    pub complete: usize,
}

/// One tick, with the values of all columns known by then.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    pub seq: u64,
    pub begin_ns: u64,
    pub took_ns: u64,
    pub drift_ns: i64,
    pub values: Vec<Option<i64>>,
    pub changed: Vec<usize>,
}

impl File {
    pub fn decode(bytes: &[u8]) -> Self {
        let mut file = Self::default();
        let Some(mut rest) = bytes.strip_prefix(b"mydyno-probe 1\n") else {
            return file;
        };
        let mut last = Vec::new();
        let mut present = Vec::new();
        while let Some((kind, payload, after)) = frame(rest) {
            let json = || serde_json::from_slice::<Value>(payload).unwrap();
            match kind {
                b'H' => file.head = json(),
                b'C' => file.columns.extend(json().as_array().unwrap().clone()),
                b'N' => file.notes.push(json()),
                b'E' => file.end = json(),
                b'T' => {
                    last.resize(file.columns.len(), 0);
                    present.resize(file.columns.len(), false);
                    file.ticks.push(tick(payload, &mut last, &mut present));
                }
                _ => panic!("kind {kind}"),
            }
            rest = after;
        }
        file.complete = bytes.len() - rest.len();
        file
    }

    pub fn column(&self, name: &str, of: &str) -> usize {
        let is_it = |column: &&Value| column["name"] == name && column["of"] == of;
        let at = self.columns.iter().position(|column| is_it(&column));
        at.unwrap_or_else(|| panic!("no {name} of {of}"))
    }

    /// The column's values, tick by tick.
    pub fn series(&self, name: &str, of: &str) -> Vec<Option<i64>> {
        let at = self.column(name, of);
        self.ticks
            .iter()
            .map(|tick| tick.values.get(at).copied().flatten())
            .collect()
    }

    pub fn events(&self, source: &str) -> Vec<&str> {
        let from = |note: &&Value| note["source"] == source;
        let notes = self.notes.iter().filter(from);
        notes.map(|note| note["event"].as_str().unwrap()).collect()
    }
}

fn frame(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let length = u32::from_le_bytes(bytes.get(1..5)?.try_into().unwrap()) as usize;
    let payload = bytes.get(5..5 + length)?;
    let checksum = bytes.get(5 + length..9 + length)?;
    let right = crc32fast::hash(&bytes[..5 + length]).to_le_bytes() == checksum;
    right.then_some((bytes[0], payload, &bytes[9 + length..]))
}

fn tick(payload: &[u8], last: &mut [i64], present: &mut [bool]) -> Tick {
    let mut input = Input(payload);
    let (seq, begin_ns, took_ns) = (input.unsigned(), input.unsigned(), input.unsigned());
    let drift_ns = input.signed();
    let mut at = 0;
    for _ in 0..input.unsigned() {
        at += input.size();
        for _ in 0..input.size() {
            assert!(
                std::mem::replace(&mut present[at], false),
                "column {at} was not there"
            );
            at += 1;
        }
    }
    let bitmap_bytes = input.size();
    let (bitmap, deltas) = input.0.split_at(bitmap_bytes);
    assert_ne!(bitmap.last(), Some(&0), "trailing zero byte");
    input.0 = deltas;
    let mut changed = Vec::new();
    for column in 0..bitmap.len() * 8 {
        if bitmap[column / 8] >> (column % 8) & 1 == 1 {
            last[column] = last[column].wrapping_add(input.signed());
            present[column] = true;
            changed.push(column);
        }
    }
    assert!(input.0.is_empty(), "bytes are left over");
    let values = last
        .iter()
        .zip(present)
        .map(|(value, there)| there.then_some(*value));
    let values = values.collect();
    Tick {
        seq,
        begin_ns,
        took_ns,
        drift_ns,
        values,
        changed,
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn unsigned(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().expect("cut short");
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return value;
            }
        }
        panic!("too long a number");
    }

    fn size(&mut self) -> usize {
        usize::try_from(self.unsigned()).unwrap()
    }

    fn signed(&mut self) -> i64 {
        let zigzag = self.unsigned();
        let half = i64::try_from(zigzag >> 1).unwrap();
        if zigzag & 1 == 1 {
            -1 - half
        } else {
            half
        }
    }
}
