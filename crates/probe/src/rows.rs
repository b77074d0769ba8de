//! Rows of a file matched to columns by their place first, since a file keeps its order.

use super::table::{Column, Event, Table};
use super::text::{self, Words};

/// The column for a key, if it is to have one.
type Choose = dyn Fn(&str) -> Option<Column>;

/// The columns of a file of keys and values.
pub struct Keys {
    rows: Vec<(Box<[u8]>, Option<usize>)>,
    choose: Box<Choose>,
    at: usize,
}

impl Keys {
    /// Columns for those keys that `choose` has one for.
    pub fn new(choose: impl Fn(&str) -> Option<Column> + 'static) -> Self {
        Self {
            rows: Vec::new(),
            choose: Box::new(choose),
            at: 0,
        }
    }

    /// Begins at the file's first row.
    pub fn begin(&mut self) {
        self.at = 0;
    }

    /// The column of the next row's key.
    pub fn column(&mut self, key: &[u8], table: &mut Table) -> Option<usize> {
        let at = self.place(key, table);
        self.at = at + 1;
        self.rows[at].1
    }

    /// Sets the column of the next row.
    pub fn set(&mut self, key: &[u8], value: Option<i64>, table: &mut Table) {
        if let (Some(id), Some(value)) = (self.column(key, table), value) {
            table.set(id, value);
        }
    }

    /// Takes every column away.
    pub fn gone(&self, table: &mut Table) {
        for id in self.rows.iter().filter_map(|row| row.1) {
            table.gone(id);
        }
    }

    fn place(&mut self, key: &[u8], table: &mut Table) -> usize {
        if self.rows.get(self.at).is_some_and(|row| *row.0 == *key) {
            return self.at;
        }
        if let Some(at) = self.rows.iter().position(|row| *row.0 == *key) {
            return at;
        }
        let id = (self.choose)(&text::name(key)).map(|column| table.define(column));
        self.rows.push((key.into(), id));
        self.rows.len() - 1
    }
}

/// One of several like things: a disk, a network interface, a CPU.
#[derive(Debug)]
pub struct Row {
    name: Box<[u8]>,
    /// Its columns; none while it is not worth any.
    pub ids: Vec<usize>,
    /// Never to be sampled.
    pub skip: bool,
    round: u32,
}

/// Like things that come and go.
#[derive(Debug)]
pub struct Things {
    what: &'static str,
    rows: Vec<Row>,
    at: usize,
    round: u32,
}

impl Things {
    /// None yet; `what` they are is for the notes.
    #[must_use]
    pub fn new(what: &'static str) -> Self {
        Self {
            what,
            rows: Vec::new(),
            at: 0,
            round: 0,
        }
    }

    /// Begins at the file's first row.
    pub fn begin(&mut self) {
        self.at = 0;
        self.round = self.round.wrapping_add(1);
    }

    /// The next row, and whether it is seen for the first time.
    pub fn next(&mut self, name: &[u8]) -> (&mut Row, bool) {
        let known = match self.rows.get(self.at) {
            Some(row) if *row.name == *name => Some(self.at),
            _ => self.rows.iter().position(|row| *row.name == *name),
        };
        let at = known.unwrap_or_else(|| self.add(name));
        self.at = at + 1;
        let row = &mut self.rows[at];
        row.round = self.round;
        (row, known.is_none())
    }

    /// Whether this is the first reading, in which nothing appears: all was there.
    #[must_use]
    pub fn first_round(&self) -> bool {
        self.round == 1
    }

    /// Those seen since `begin`, and those not yet known to be gone.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Takes away what was not seen since `begin`.
    pub fn end(&mut self, table: &mut Table) {
        let (round, what) = (self.round, self.what);
        self.rows.retain(|row| {
            let stays = row.round == round;
            if !stays {
                row.gone(what, table);
            }
            stays
        });
    }

    /// Takes all away, since their file is gone.
    pub fn gone(&mut self, table: &mut Table) {
        if !self.rows.is_empty() {
            self.begin();
            self.end(table);
        }
    }

    fn add(&mut self, name: &[u8]) -> usize {
        self.rows.push(Row {
            name: name.into(),
            ids: Vec::new(),
            skip: false,
            round: 0,
        });
        self.rows.len() - 1
    }
}

impl Row {
    /// Makes its columns, and notes that it appeared unless it was there from the start.
    pub fn define(
        &mut self,
        columns: impl Iterator<Item = Column>,
        appeared: Option<&str>,
        table: &mut Table,
    ) {
        let of = text::name(&self.name);
        self.ids = columns
            .map(|column| table.define(column.of(of.as_str())))
            .collect();
        if let Some(what) = appeared {
            table.note("host", Event::Appeared, &of, what);
        }
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Sets its columns in order, each from one word.
    pub fn set(&self, words: Words, table: &mut Table) {
        for (id, word) in self.ids.iter().zip(words) {
            if let Some(value) = text::number(word) {
                table.set(*id, value);
            }
        }
    }

    fn gone(&self, what: &str, table: &mut Table) {
        for id in &self.ids {
            table.gone(*id);
        }
        if !self.ids.is_empty() {
            table.note("host", Event::Gone, &text::name(&self.name), what);
        }
    }
}
