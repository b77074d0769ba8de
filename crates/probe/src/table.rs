//! The table that sources fill: columns, present values, notes; rows of a file matched to columns.

use std::collections::HashMap;

use crate::file::{name, number, Words};

/// Whether a value only grows while its source lives, or is a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
}

impl Kind {
    /// The word in the file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// What a value is; the value in base units is the integer that is set, times `scale`.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// Which one, where there are several; else empty.
    pub of: String,
    pub unit: &'static str,
    pub kind: Kind,
    pub scale: f64,
}

impl Column {
    /// A counter called `name`.
    #[must_use]
    pub fn counter(name: impl Into<String>, unit: &'static str, scale: f64) -> Self {
        Self {
            name: name.into(),
            of: String::new(),
            unit,
            kind: Kind::Counter,
            scale,
        }
    }

    /// A gauge called `name`.
    #[must_use]
    pub fn gauge(name: impl Into<String>, unit: &'static str, scale: f64) -> Self {
        Self {
            kind: Kind::Gauge,
            ..Self::counter(name, unit, scale)
        }
    }

    /// The same column of `of`.
    #[must_use]
    pub fn of(self, of: impl Into<String>) -> Self {
        Self {
            of: of.into(),
            ..self
        }
    }
}

/// What happened to a source, or to one of the things it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Gap,
    Back,
    Restart,
    Gone,
    Appeared,
    Clock,
}

impl Event {
    /// The word in the file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Back => "back",
            Self::Restart => "restart",
            Self::Gone => "gone",
            Self::Appeared => "appeared",
            Self::Clock => "clock",
        }
    }
}

/// One event, in words.
#[derive(Clone, Debug)]
pub struct Note {
    pub source: String,
    pub event: Event,
    pub of: String,
    pub text: String,
}

/// Something that fills columns.
pub trait Source {
    /// The name that its columns carry.
    fn name(&self) -> &'static str;

    /// Sets the columns.  True: they were read; false: nothing new in this tick.
    ///
    /// # Errors
    /// Why it could not be read; noted as a gap, once until it is read again.
    fn read(&mut self, table: &mut Table) -> Result<bool, String>;

    /// Looks at what changes between two ticks; returns nanoseconds until it wants to look again.
    fn look(&mut self) -> Option<i64> {
        None
    }

    /// Whether the request named it, so that it is an error if it was never read.
    fn is_asked_for(&self) -> bool {
        false
    }

    /// When the values were read, where that was not during `read`: nanoseconds of
    /// `CLOCK_MONOTONIC`.
    fn read_at(&self) -> Option<i64> {
        None
    }
}

/// A column's value now, and as the file has it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    pub now: i64,
    /// The last value the file has; it outlives an absence.
    pub filed: i64,
    pub present: bool,
    pub filed_present: bool,
}

/// So many columns a reader takes of a file; later ones have no values.
pub const MOST_COLUMNS: usize = 1 << 15;

/// All columns, in order of definition.
#[derive(Debug, Default)]
pub struct Table {
    pub(super) cells: Vec<Cell>,
    /// Defined since the last tick, each with its source.
    pub(super) fresh: Vec<(Column, &'static str)>,
    pub(super) notes: Vec<Note>,
    ids: HashMap<(String, String), usize>,
    source: &'static str,
    full: bool,
}

impl Table {
    /// A table without columns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whose columns are defined from here on.
    pub fn of_source(&mut self, source: &'static str) {
        self.source = source;
    }

    /// The column's number; the same for the same name and instance, whenever it is asked for.
    pub fn define(&mut self, column: Column) -> usize {
        let key = (column.name.clone(), column.of.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = self.cells.len();
        if id == MOST_COLUMNS {
            self.note_full();
            return id;
        }
        self.ids.insert(key, id);
        self.cells.push(Cell::default());
        self.fresh.push((column, self.source));
        id
    }

    /// Names of things that come and go, as interfaces of containers, would else cost the file.
    fn note_full(&mut self) {
        if !std::mem::replace(&mut self.full, true) {
            let text = format!("{MOST_COLUMNS} columns; what appears from now on is not recorded");
            self.note(self.source, Event::Gap, "", &text);
        }
    }

    /// Gives a column its value; it is present from now on.
    pub fn set(&mut self, id: usize, value: i64) {
        if let Some(cell) = self.cells.get_mut(id) {
            cell.now = value;
            cell.present = true;
        }
    }

    /// Makes a column absent until it is set again.
    pub fn gone(&mut self, id: usize) {
        if let Some(cell) = self.cells.get_mut(id) {
            cell.present = false;
        }
    }

    /// The column's present value.
    #[must_use]
    pub fn get(&self, id: usize) -> Option<i64> {
        let cell = self.cells.get(id)?;
        cell.present.then_some(cell.now)
    }

    /// The number of a column that is defined.
    #[must_use]
    pub fn find(&self, name: &str, of: &str) -> Option<usize> {
        self.ids.get(&(name.to_owned(), of.to_owned())).copied()
    }

    /// How many columns are present.
    #[must_use]
    pub fn present(&self) -> usize {
        self.cells.iter().filter(|cell| cell.present).count()
    }

    /// Keeps an event for this tick.
    pub fn note(&mut self, source: &str, event: Event, of: &str, text: &str) {
        self.notes.push(Note {
            source: source.to_owned(),
            event,
            of: of.to_owned(),
            text: text.to_owned(),
        });
    }

    /// What was noted since the last tick was written.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

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
        let id = (self.choose)(&name(key)).map(|column| table.define(column));
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
        let of = name(&self.name);
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
            if let Some(value) = number(word) {
                table.set(*id, value);
            }
        }
    }

    fn gone(&self, what: &str, table: &mut Table) {
        for id in &self.ids {
            table.gone(*id);
        }
        if !self.ids.is_empty() {
            table.note("host", Event::Gone, &name(&self.name), what);
        }
    }
}
