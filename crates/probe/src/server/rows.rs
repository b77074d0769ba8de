//! Rows of names and values turned into columns and integers, matched by their place first.

use std::collections::HashMap;

use crate::file;
use crate::server::meaning::Meaning;
use crate::server::worker::Answer;
use crate::table::{Column, Kind};

/// Digits that are retained after a point.
const PLACES: usize = 6;
const SMALLEST: f64 = 1e-6;

/// The rows of one question, as they came the last time.
pub struct Rows {
    prefix: &'static str,
    known: Vec<Row>,
    index: HashMap<Box<[u8]>, usize>,
    at: usize,
}

struct Row {
    name: Box<[u8]>,
    /// The number of its column and whether that has a fraction; none before its first number.
    column: Option<(usize, bool)>,
}

/// A value as the server wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Integer(i64),
    /// In millionths.
    Decimal(i64),
    Switch(bool),
}

impl Rows {
    /// None yet; `prefix` begins the columns' names.
    #[must_use]
    pub fn new(prefix: &'static str) -> Self {
        Self {
            prefix,
            known: Vec::new(),
            index: HashMap::new(),
            at: 0,
        }
    }

    /// Begins at the first row.
    pub fn begin(&mut self) {
        self.at = 0;
    }

    /// Takes one row into the answer; `meaning` is asked for a name's first number only.  What
    /// is not a number has no column.
    pub fn take(
        &mut self,
        name: &[u8],
        value: &[u8],
        meaning: impl FnOnce(&str) -> Meaning,
        answer: &mut Answer,
    ) {
        let at = self.place(name);
        self.at = at + 1;
        let Some(number) = number(value) else { return };
        let row = &mut self.known[at];
        let (column, decimal) = *row.column.get_or_insert_with(|| {
            let name = file::name(name).to_lowercase();
            let decimal = matches!(number, Number::Decimal(_));
            let meant = match number {
                Number::Switch(_) => Meaning::gauge(""),
                _ => meaning(&name),
            };
            let column = column(format!("{}{name}", self.prefix), &meant, decimal);
            (answer.define(column), decimal)
        });
        answer.values.push((column, number.scaled(decimal)));
    }

    fn place(&mut self, name: &[u8]) -> usize {
        if self
            .known
            .get(self.at)
            .is_some_and(|row| *row.name == *name)
        {
            return self.at;
        }
        if let Some(at) = self.index.get(name) {
            return *at;
        }
        self.index.insert(name.into(), self.known.len());
        self.known.push(Row {
            name: name.into(),
            column: None,
        });
        self.known.len() - 1
    }
}

impl Number {
    /// The integer for a column that has a fraction, or not: there what is after the point is cut.
    fn scaled(self, decimal: bool) -> i64 {
        match (self, decimal) {
            (Self::Integer(value), false) | (Self::Decimal(value), true) => value,
            (Self::Integer(value), true) => value.saturating_mul(1_000_000),
            (Self::Decimal(value), false) => value / 1_000_000,
            (Self::Switch(on), _) => i64::from(on),
        }
    }
}

/// The value as a number; none for words, dates and versions.
///
/// An integer beyond 63 bits wraps: servers write a counter that fell below zero so.
#[must_use]
pub fn number(value: &[u8]) -> Option<Number> {
    let first = *value.first()?;
    if first.is_ascii_alphabetic() {
        return match value {
            b"ON" | b"YES" | b"Yes" => Some(Number::Switch(true)),
            b"OFF" | b"NO" | b"No" => Some(Number::Switch(false)),
            _ => None,
        };
    }
    if !value.contains(&b'.') {
        return file::number(value).map(Number::Integer);
    }
    // The sign of -0.5 is lost in its integer part.
    match value.strip_prefix(b"-") {
        Some(rest) => {
            file::decimal(rest, PLACES).map(|value| Number::Decimal(value.wrapping_neg()))
        }
        None => file::decimal(value, PLACES).map(Number::Decimal),
    }
}

fn column(name: String, meaning: &Meaning, decimal: bool) -> Column {
    let scale = if decimal { SMALLEST } else { 1.0 };
    match meaning.kind {
        Kind::Counter => Column::counter(name, meaning.unit, scale),
        Kind::Gauge => Column::gauge(name, meaning.unit, scale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_nothing() {
        for (value, meant) in [
            ("0", Some(Number::Integer(0))),
            ("-7", Some(Number::Integer(-7))),
            ("18446744073709551615", Some(Number::Integer(-1))),
            ("0.000140", Some(Number::Decimal(140))),
            ("-0.5", Some(Number::Decimal(-500_000))),
            ("12.3456789", Some(Number::Decimal(12_345_678))),
            ("ON", Some(Number::Switch(true))),
            ("OFF", Some(Number::Switch(false))),
            ("", None),
            ("TLSv1.3", None),
            ("AUTH_MASTER", None),
            ("2026-11-21 11:57:58", None),
            ("127.0.0.1", None),
            ("-", None),
        ] {
            assert_eq!(number(value.as_bytes()), meant, "{value}");
        }
    }

    fn read(rows: &mut Rows, answer: &mut Answer, facts: &[(&str, &str)]) {
        answer.clear();
        rows.begin();
        for (name, value) in facts {
            let meaning = |name: &str| super::super::meaning::of_status(name);
            rows.take(name.as_bytes(), value.as_bytes(), meaning, answer);
        }
    }

    #[test]
    fn a_row_keeps_its_column_wherever_it_comes() {
        let (mut rows, mut answer) = (Rows::new("status."), Answer::default());
        read(
            &mut rows,
            &mut answer,
            &[("Uptime", "5"), ("Note", ""), ("Busy_time", "0.5")],
        );
        let names: Vec<&str> = answer
            .fresh
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(names, ["status.uptime", "status.busy_time"]);
        assert_eq!(answer.values, [(0, 5), (1, 500_000)]);
        answer.fresh.clear();
        read(
            &mut rows,
            &mut answer,
            &[("Busy_time", "1"), ("Uptime", "6.9"), ("Note", "4")],
        );
        assert_eq!(answer.values, [(1, 1_000_000), (0, 6), (2, 4)]);
        assert_eq!(answer.fresh[0].name, "status.note");
    }
}
