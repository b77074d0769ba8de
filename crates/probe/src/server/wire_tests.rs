//! Tests of the packets, with the other end played byte by byte.

use super::*;
use std::thread;

/// A packet as a server sends it.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

fn cell(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap().to_le_bytes();
    match text.len() {
        0..=250 => [&[length[0]][..], text].concat(),
        _ => [&[0xfc], &length[..], text].concat(),
    }
}

/// An answer of rows of two cells, in packets.
fn answer(rows: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = packet(1, &[2]);
    out.extend(packet(2, b"\x03def name"));
    out.extend(packet(3, b"\x03def value"));
    out.extend(packet(4, &[EOF, 0, 0, 2, 0]));
    for (name, value) in rows {
        out.extend(packet(5, &[cell(name), cell(value)].concat()));
    }
    out.extend(packet(6, &[EOF, 0, 0, 2, 0]));
    out
}

type Rows = Vec<(Vec<u8>, Vec<u8>)>;

/// Asks a server that answers `said` in pieces of `size` bytes, then closes.
fn asked(said: Vec<u8>, size: usize) -> Result<Rows, Fault> {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || {
        // Whoever closes before it was asked leaves the question nowhere to go.
        let mut question = vec![0; 4 + 1 + "SHOW".len()];
        if theirs.read_exact(&mut question).is_err() {
            return;
        }
        for piece in said.chunks(size) {
            if theirs.write_all(piece).is_err() {
                return;
            }
        }
    });
    let mut wire = Wire::over(Box::new(ours));
    let mut rows = Vec::new();
    let done = wire.ask("SHOW", |[name, value]: [&[u8]; 2]| {
        rows.push((name.to_vec(), value.to_vec()));
    });
    drop(wire);
    server.join().unwrap();
    done.map(|()| rows)
}

#[test]
fn rows_are_the_same_however_they_arrive() {
    let long = vec![b'x'; 40_000]; // longer than the buffer
    let rows: Vec<(&[u8], &[u8])> = vec![
        (b"Uptime", b"5"),
        (b"Key", &long),
        (b"Empty", b""),
        (b"Middle", &long[..300]),
        (b"Last", b"1"),
    ];
    let said = answer(&rows);
    for size in [1, 3, 7, 4096, 100_000] {
        let got = asked(said.clone(), size).unwrap();
        let got: Vec<(&[u8], &[u8])> = got.iter().map(|row| (&row.0[..], &row.1[..])).collect();
        assert_eq!(got, rows, "in pieces of {size}");
    }
}

#[test]
fn an_answer_without_rows_is_one_too() {
    assert_eq!(asked(packet(1, &[OK, 0, 0, 2, 0, 0, 0]), 2).unwrap(), []);
}

#[test]
fn a_refusal_leaves_the_connection_and_carries_the_servers_words() {
    for said in [
        &b"\xff\x15\x04#28000Access denied"[..],
        b"\xff\x15\x04Access denied",
    ] {
        match asked(packet(1, said), 5) {
            Err(Fault::Refused(1045, words)) => assert_eq!(words, "Access denied"),
            other => panic!("{other:?}"),
        }
    }
    // Also among the rows.
    let mut said = answer(&[(b"a", b"1")]);
    said.truncate(said.len() - 9);
    said.extend(packet(6, b"\xff\x25\x05#70100Query interrupted"));
    assert!(matches!(asked(said, 9), Err(Fault::Refused(1317, _))));
}

#[test]
fn what_is_no_server_is_a_lost_connection() {
    let mut short_cell = answer(&[]);
    short_cell.truncate(short_cell.len() - 9);
    short_cell.extend(packet(5, b"\x09abc"));
    for said in [
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        packet(1, &[NULL]),                     // asks for a file of ours
        packet(1, &[ERROR, 1]),                 // a refusal cut short
        answer(&[(b"a", b"1")])[..30].to_vec(), // closes within the answer
        short_cell,
        Vec::new(),
    ] {
        assert!(
            matches!(asked(said.clone(), 11), Err(Fault::Lost(_))),
            "{said:?}"
        );
    }
}
