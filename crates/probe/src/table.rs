//! The table that sources fill: its columns, their present values, and what is to be noted.

use std::collections::HashMap;

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

/// All columns, in order of definition.
#[derive(Debug, Default)]
pub struct Table {
    pub(super) cells: Vec<Cell>,
    /// Defined since the last tick, each with its source.
    pub(super) fresh: Vec<(Column, &'static str)>,
    pub(super) notes: Vec<Note>,
    ids: HashMap<(String, String), usize>,
    source: &'static str,
}

impl Table {
    /// A table without columns.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whose columns are defined from here on.
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
        self.ids.insert(key, id);
        self.cells.push(Cell::default());
        self.fresh.push((column, self.source));
        id
    }

    /// Gives a column its value; it is present from now on.
    pub fn set(&mut self, id: usize, value: i64) {
        let cell = &mut self.cells[id];
        cell.now = value;
        cell.present = true;
    }

    /// Makes a column absent until it is set again.
    pub fn gone(&mut self, id: usize) {
        self.cells[id].present = false;
    }

    /// The column's present value.
    #[must_use]
    pub fn get(&self, id: usize) -> Option<i64> {
        let cell = self.cells[id];
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
