//! How the attributes of a header are laid out, so that the next header is only compared with it.

use memchr::memchr;

use super::attributes::{Attributes, Slot, TOTALS};
use super::lead::Lead;
use super::value::{blanks, value, word_end};

/// An attribute and the text between the value before it and its own.
#[derive(Debug, PartialEq, Eq)]
struct Field {
    lead: Lead,
    slot: Slot,
}

/// The attributes of one kind of header, in order.
#[derive(Debug)]
pub(super) struct Layout {
    /// No two layouts of an engine have the same.
    pub number: u32,
    fields: Vec<Field>,
    /// The place of the value of each attribute that the summary adds up.
    pub totals: [Option<usize>; TOTALS],
    /// Flags, and the place of the value.
    pub flags: Vec<(usize, u16)>,
    /// The place of the database, and that of the rate limit.
    pub schema: Option<usize>,
    pub rate_limit: Option<usize>,
}

/// A place within the attributes: the next one's number, and where the one before it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub field: usize,
    pub at: usize,
}

/// Why no layout was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoLayout {
    /// The header goes on behind these bytes.
    NotYet,
    /// This is no header.
    Junk,
}

/// A header longer than this is none.
const LONGEST: usize = 1 << 20;
/// Enough to tell the lines that end a header.
const AHEAD: usize = 24;

impl Layout {
    /// The slots of the values, in order.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.fields.iter().map(|field| field.slot)
    }

    /// Where the value of an attribute is that the summary adds up.
    pub fn place(&self, attribute: u16) -> Option<usize> {
        self.totals.get(usize::from(attribute)).copied().flatten()
    }

    fn new(number: u32, fields: Vec<Field>) -> Self {
        let slots = || fields.iter().map(|field| field.slot).enumerate();
        let flags = slots().filter_map(|(i, slot)| match slot {
            Slot::Flag(flag) | Slot::Error(flag) => Some((i, flag)),
            _ => None,
        });
        let flags = flags.collect();
        let place = |want| slots().find(|(_, slot)| *slot == want).map(|(i, _)| i);
        let (schema, rate_limit) = (place(Slot::Schema), place(Slot::RateLimit));
        let number_of = |attribute| {
            slots().find_map(|(i, slot)| {
                (slot.number().map(usize::from) == Some(attribute)).then_some(i)
            })
        };
        let totals = std::array::from_fn(number_of);
        Self {
            number,
            fields,
            totals,
            flags,
            schema,
            rate_limit,
        }
    }

    /// Reads the attributes from a place on into `values`; returns where the line behind them
    /// starts, or how far they are laid out like this.  The value of a schema is its place in the
    /// text: the start in the upper half, the end in the lower.
    #[inline]
    pub fn read(
        &self,
        text: &[u8],
        from: Place,
        last: bool,
        values: &mut Vec<u64>,
    ) -> Result<usize, Place> {
        values.resize(self.fields.len(), 0);
        let Place {
            field: first,
            mut at,
        } = from;
        for (i, field) in self.fields.iter().enumerate().skip(first) {
            let read = field
                .lead
                .behind(text, at)
                .and_then(|at| value(text, at, field.slot));
            match read {
                Some((value, end)) => (values[i], at) = (value, end),
                None => return Err(Place { field: i, at }),
            }
        }
        next_line(text, at, last).ok_or(Place {
            field: self.fields.len(),
            at,
        })
    }

    /// How many of the first attributes are laid out like another layout's.
    pub fn common(&self, other: &Self) -> usize {
        self.fields
            .iter()
            .zip(&other.fields)
            .take_while(|(one, other)| one == other)
            .count()
    }

    /// The layout of the attributes that start at `at`.
    pub fn of(
        text: &[u8],
        at: usize,
        last: bool,
        number: u32,
        attributes: &mut Attributes,
    ) -> Result<Self, NoLayout> {
        let mut found = Finder {
            text,
            lead: at,
            fields: Vec::new(),
            attributes,
        };
        let mut line = at;
        loop {
            let newline = memchr(b'\n', &text[line..]);
            let end = newline.map_or(text.len(), |newline| line + newline);
            if end - at > LONGEST {
                return Err(NoLayout::Junk);
            }
            match newline {
                Some(_) => found.line(line, end),
                None if !last => return Err(NoLayout::NotYet),
                // A log that ends within a line still has the lines before it.
                None if line > at => return Ok(Self::new(number, found.fields)),
                None => return Err(NoLayout::Junk),
            }
            line = end + 1;
            if text.len() - line < AHEAD && !last {
                return Err(NoLayout::NotYet);
            }
            if !goes_on(&text[line..]) {
                return Ok(Self::new(number, found.fields));
            }
        }
    }
}

/// What starts a line that a header does not go on with, although it starts with `#`.
pub(super) const HEADER_ENDS: [&[u8]; 3] =
    [b"# administrator command: ", b"# Time: ", b"# User@Host: "];

/// Whether a header goes on with this line: it does with any that starts with `#`, but for those
/// that start another header or are a statement, and Percona Server 8 forgot a `#` (PS-7492).
pub(super) fn goes_on(line: &[u8]) -> bool {
    if line.first() == Some(&b' ') {
        return line.starts_with(b"  Tmp_tables: ");
    }
    line.first() == Some(&b'#') && !HEADER_ENDS.iter().any(|start| line.starts_with(start))
}

/// The start of the line behind the values, unless the header goes on there.
#[inline]
fn next_line(text: &[u8], at: usize, last: bool) -> Option<usize> {
    let mut at = blanks(text, at);
    at += usize::from(text.get(at) == Some(&b'\r'));
    if text.get(at) != Some(&b'\n') {
        return None;
    }
    let rest = &text[at + 1..];
    match rest.first() {
        None | Some(b'#' | b' ') if rest.len() < AHEAD && !last => None,
        Some(b'#' | b' ') if goes_on(rest) && (!last || memchr(b'\n', rest).is_some()) => None,
        _ => Some(at + 1),
    }
}

struct Finder<'a> {
    text: &'a [u8],
    /// Where the last value ended.
    lead: usize,
    fields: Vec<Field>,
    attributes: &'a mut Attributes,
}

impl Finder<'_> {
    /// The attributes of the line from `at` to its newline.
    fn line(&mut self, mut at: usize, newline: usize) {
        let end = newline - usize::from(newline > at && self.text[newline - 1] == b'\r');
        let marked = self.text[at] == b'#';
        at = blanks(self.text, at + usize::from(marked));
        if at >= end && marked {
            self.push(end, Slot::Nothing, end);
        }
        while at < end {
            let Some((key, start)) = key(self.text, at, end) else {
                let word = self.text[at..end]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric())
                    .count();
                return self.push(at + word.max(1), Slot::Line, newline);
            };
            let word = &self.text[blanks(self.text, start)..end];
            let word = &word[..word_end(word, 0)];
            let mut slot = self
                .attributes
                .slot(key, if word.ends_with(b":") { b"" } else { word });
            if slot.counts() && self.fields.iter().any(|field| field.slot == slot) {
                slot = Slot::Word; // a header that was begun twice counts once
            }
            if value(self.text, start, slot).is_none() {
                slot = Slot::Text;
            }
            let ends = value(self.text, start, slot).map_or(start, |found| found.1);
            self.push(start, slot, ends);
            at = blanks(self.text, ends.max(start));
            if slot == Slot::Line {
                return;
            }
        }
    }

    fn push(&mut self, start: usize, slot: Slot, end: usize) {
        self.fields.push(Field {
            lead: Lead::new(&self.text[self.lead..start]),
            slot,
        });
        self.lead = end;
    }
}

/// The key at `at`, and where its value starts: behind one space.
fn key(text: &[u8], at: usize, end: usize) -> Option<(&[u8], usize)> {
    let len = text[at..end]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
        .count();
    if len == 0 || text.get(at + len) != Some(&b':') {
        return None;
    }
    let start = at + len + 1;
    match text.get(start) {
        Some(b' ') => Some((&text[at..at + len], start + 1)),
        Some(b'\r' | b'\n') => Some((&text[at..at + len], start)),
        _ => None,
    }
}
