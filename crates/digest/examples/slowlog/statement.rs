//! The statements: sysbench's own mix, and wide ones.

use crate::text::{fill, groups, number, Dice};

/// Rows of a table, as many as sysbench makes by default.
const ROWS: u64 = 10_000;
const TABLES: u64 = 4;
const WIDE_TABLES: u64 = 8;
const IN_LIST: u32 = 1_000;
const INSERTED_ROWS: u32 = 300;
/// A transaction of `oltp_read_write` has 20 statements; one event in 512 is of another sort.
const RARE: u64 = 512;

/// What the server did for a statement, as far as its header shows it.
#[derive(Clone, Copy, PartialEq)]
pub enum Plan {
    /// No table was read.
    Nothing,
    Rows,
    Sort,
    SortedTable,
}

/// Appends one statement of `oltp_read_write`, without its semicolon.
pub fn oltp(dice: &mut Dice, out: &mut Vec<u8>) -> Plan {
    let table = 1 + dice.below(TABLES);
    let id = 1 + dice.below(ROWS);
    if dice.below(RARE) == 0 {
        return rare(dice, out, id);
    }
    let choice = dice.below(20);
    match choice {
        0 => out.extend_from_slice(b"BEGIN"),
        1 => out.extend_from_slice(b"COMMIT"),
        2..=5 => range(out, choice, table, id),
        6..=9 => write(dice, out, choice, [table, id]),
        _ => fill(out, "SELECT c FROM sbtest{} WHERE id={}", &[table, id]),
    }
    match choice {
        0 | 1 => Plan::Nothing,
        4 => Plan::Sort,
        5 => Plan::SortedTable,
        _ => Plan::Rows,
    }
}

fn range(out: &mut Vec<u8>, choice: u64, table: u64, id: u64) {
    let pattern = match choice {
        2 => "SELECT c FROM sbtest{} WHERE id BETWEEN {} AND {}",
        3 => "SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN {} AND {}",
        4 => "SELECT c FROM sbtest{} WHERE id BETWEEN {} AND {} ORDER BY c",
        _ => "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN {} AND {} ORDER BY c",
    };
    fill(out, pattern, &[table, id, id + 99]);
}

fn write(dice: &mut Dice, out: &mut Vec<u8>, choice: u64, [table, id]: [u64; 2]) {
    match choice {
        6 => fill(out, "UPDATE sbtest{} SET k=k+1 WHERE id={}", &[table, id]),
        7 => {
            fill(out, "UPDATE sbtest{} SET c='", &[table]);
            groups(dice, out, 10);
            fill(out, "' WHERE id={}", &[id]);
        }
        8 => fill(out, "DELETE FROM sbtest{} WHERE id={}", &[table, id]),
        _ => {
            let k = dice.below(ROWS);
            fill(
                out,
                "INSERT INTO sbtest{} (id, k, c, pad) VALUES ({}, {}, '",
                &[table, id, k],
            );
            groups(dice, out, 10);
            out.extend_from_slice(b"', '");
            groups(dice, out, 5);
            out.extend_from_slice(b"')");
        }
    }
}

fn rare(dice: &mut Dice, out: &mut Vec<u8>, id: u64) -> Plan {
    let choice = dice.below(3);
    match choice {
        0 => out.extend_from_slice(b"# administrator command: Ping"),
        1 => out.extend_from_slice(b"SELECT @@session.transaction_read_only"),
        _ => fill(
            out,
            "SELECT id, pad FROM sbtest1 WHERE k IN ({},{},{}) LIMIT 5",
            &[id; 3],
        ),
    }
    if choice < 2 {
        Plan::Nothing
    } else {
        Plan::Rows
    }
}

/// Appends a statement with a long list of values, or in a third of cases a plain one.
pub fn wide(dice: &mut Dice, out: &mut Vec<u8>) -> Plan {
    let table = 1 + dice.below(WIDE_TABLES);
    match dice.below(3) {
        0 => {
            fill(out, "SELECT id, k, c FROM orders{} WHERE id IN (", &[table]);
            list(out, IN_LIST, |out| number(out, dice.below(100_000_000)));
            out.push(b')');
        }
        1 => {
            fill(
                out,
                "INSERT INTO items{} (id, k, name, note) VALUES ",
                &[table],
            );
            list(out, INSERTED_ROWS, |out| row(dice, out));
        }
        _ => fill(
            out,
            "SELECT * FROM users{} WHERE id={}",
            &[table, dice.below(ROWS)],
        ),
    }
    Plan::Rows
}

fn row(dice: &mut Dice, out: &mut Vec<u8>) {
    fill(out, "({}, {}, 'name", &[dice.below(ROWS), dice.below(ROWS)]);
    groups(dice, out, 1);
    out.extend_from_slice(match dice.below(8) {
        0 => b"', 'it''s, (a) note')".as_slice(),
        1 => b"', 'O\\'Brien; x')".as_slice(),
        _ => b"', NULL)".as_slice(),
    });
}

fn list(out: &mut Vec<u8>, count: u32, mut one: impl FnMut(&mut Vec<u8>)) {
    for place in 0..count {
        if place > 0 {
            out.push(b',');
        }
        one(out);
    }
}
