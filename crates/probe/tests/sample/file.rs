//! The file's bytes: known ones, random ones, torn ones.

use mydyno_probe::frame::{Encoder, Tick};
use mydyno_probe::table::{Column, Event, Table, MOST_COLUMNS};
use proptest::prelude::*;
use serde_json::json;

use crate::decode::File;

fn at(seq: u64) -> Tick {
    Tick {
        seq,
        begin_ns: 300,
        took_ns: 5,
        drift_ns: -1,
    }
}

/// A file of one head, two columns, three ticks, a note and an end.
fn small() -> Vec<u8> {
    let mut encoder = Encoder::default();
    let mut table = Table::new();
    encoder.head(&json!({"hz": 100}));
    table.of_source("host");
    let user = table.define(Column::counter("cpu.user", "s", 0.01).of("0"));
    let free = table.define(Column::gauge("memory.free", "B", 1024.0));
    table.set(user, 200);
    table.set(free, -1);
    encoder.tick(&at(0), &mut table);
    table.set(user, 201);
    table.gone(free);
    table.note("host", Event::Gone, "x", "why");
    encoder.tick(&at(1), &mut table);
    table.set(free, -1);
    encoder.tick(&at(3), &mut table);
    encoder.end(&json!({"ticks": 3}));
    encoder.out
}

#[test]
fn a_small_file_has_these_bytes() {
    let frame = |kind: u8, payload: &[u8]| {
        let mut frame = vec![kind];
        frame.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
        frame.extend(payload);
        frame.extend(crc32fast::hash(&frame).to_le_bytes());
        frame
    };
    let columns = br#"[{"kind":"counter","name":"cpu.user","of":"0","scale":0.01,"source":"host","unit":"s"},{"kind":"gauge","name":"memory.free","of":"","scale":1024.0,"source":"host","unit":"B"}]"#;
    let note = br#"{"event":"gone","of":"x","seq":1,"source":"host","text":"why"}"#;
    let wanted = [
        b"mydyno-probe 1\n".to_vec(),
        // Its checksum by zlib, so that the checksum itself is checked too.
        b"H\x0a\0\0\0{\"hz\":100}\x9b\xcb\xd5\xd5".to_vec(),
        frame(b'C', columns),
        // seq 0, begin 300, took 5, drift -1, nothing gone, one byte of bits: both; 200, -1.
        frame(b'T', &[0, 0xac, 2, 5, 1, 0, 1, 0b11, 0x90, 3, 1]),
        // One run gone: after 1 column, 1 of them; the first has +1.
        frame(b'T', &[1, 0xac, 2, 5, 1, 1, 1, 1, 1, 0b01, 2]),
        frame(b'N', note),
        // Back with the value it had: an entry of 0.
        frame(b'T', &[3, 0xac, 2, 5, 1, 0, 1, 0b10, 0]),
        frame(b'E', br#"{"ticks":3}"#),
    ];
    assert_eq!(small(), wanted.concat());
}

#[test]
fn a_file_torn_anywhere_yields_its_complete_frames() {
    let bytes = small();
    let all = File::decode(&bytes);
    assert_eq!(all.complete, bytes.len());
    let mut ticks_before = 0;
    for length in 0..bytes.len() {
        let torn = File::decode(&bytes[..length]);
        assert!(torn.complete <= length);
        assert_eq!(torn.ticks[..], all.ticks[..torn.ticks.len()]);
        assert!(torn.ticks.len() >= ticks_before);
        ticks_before = torn.ticks.len();
        let mut damaged = bytes.clone();
        damaged[length] ^= 0x10;
        assert!(File::decode(&damaged).complete <= length, "byte {length}");
    }
    assert_eq!(ticks_before, 3);
}

/// A reader would refuse the file with all that it has.
#[test]
fn columns_beyond_what_a_reader_takes_are_noted_and_have_no_values() {
    let (mut encoder, mut table) = (Encoder::default(), Table::new());
    encoder.head(&json!({"hz": 100}));
    table.of_source("host");
    for number in 0..MOST_COLUMNS + 10 {
        let of = format!("veth{number}");
        let id = table.define(Column::counter("net.rx_bytes", "B", 1.0).of(of));
        table.set(id, 1);
        assert_eq!(table.get(id), (number < MOST_COLUMNS).then_some(1));
        table.gone(id);
        table.set(id, 1);
    }
    encoder.tick(&at(0), &mut table);
    let file = File::decode(&encoder.out);
    assert_eq!(file.columns.len(), MOST_COLUMNS);
    assert_eq!(file.ticks[0].changed.len(), MOST_COLUMNS);
    assert_eq!(file.events("host"), ["gap"]);
}

/// What may happen to a column in a tick.
#[derive(Clone, Debug)]
enum Change {
    Define,
    Set(usize, i64),
    Gone(usize),
}

fn changes() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let value = prop_oneof![any::<i64>(), -3_i64..3, Just(i64::MIN), Just(i64::MAX)];
    let change = prop_oneof![
        1 => Just(Change::Define),
        4 => (any::<usize>(), value).prop_map(|(column, value)| Change::Set(column, value)),
        2 => any::<usize>().prop_map(Change::Gone),
    ];
    prop::collection::vec(prop::collection::vec(change, 0..40), 0..12)
}

/// Does a change to the table and to plain values alike.
fn apply(change: &Change, table: &mut Table, values: &mut Vec<Option<i64>>) {
    match (change, values.len()) {
        (Change::Define, count) => {
            let id = table.define(Column::gauge(format!("column.{count}"), "", 1.0));
            assert_eq!(id, count);
            values.push(None);
        }
        (_, 0) => {}
        (Change::Set(column, value), count) => {
            table.set(column % count, *value);
            values[column % count] = Some(*value);
        }
        (Change::Gone(column), count) => {
            table.gone(column % count);
            values[column % count] = None;
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(ticks in changes()) {
        let (mut table, mut encoder) = (Table::new(), Encoder::default());
        encoder.head(&json!({}));
        let mut values = Vec::new();
        let mut wanted = Vec::new();
        for (changes, seq) in ticks.iter().zip(0..) {
            for change in changes {
                apply(change, &mut table, &mut values);
            }
            encoder.tick(&at(seq), &mut table);
            wanted.push(values.clone());
        }
        let file = File::decode(&encoder.out);
        prop_assert_eq!(file.complete, encoder.out.len());
        let read: Vec<_> = file.ticks.into_iter().map(|tick| tick.values).collect();
        prop_assert_eq!(read, wanted);
    }
}
