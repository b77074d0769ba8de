//! How the attributes of a header are laid out, so that the next header is only compared with it.

use memchr::memchr;

use super::attributes::{Attributes, Slot, TOTALS};
use super::number::{blanks, value, word_end};

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
/// Enough to recognise the lines that end a header.
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

/// What starts a line that does not continue a header, although it starts with `#`.
pub(super) const HEADER_ENDS: [&[u8]; 3] =
    [b"# administrator command: ", b"# Time: ", b"# User@Host: "];

/// Whether this line continues a header: it does with any that starts with `#`, but for those
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

/// So many kinds of headers are remembered.
const MOST: usize = 16;

/// Reads attributes; the next header is likely laid out like the last.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    known: Vec<Layout>,
    last: usize,
    /// How many of the first attributes two layouts have in common.
    common: [[usize; MOST]; MOST],
    found: u32,
    pub values: Vec<u64>,
}

impl Layouts {
    /// Reads the attributes that start at `at`; returns where the line behind them starts.
    #[inline]
    pub fn read(
        &mut self,
        text: &[u8],
        at: usize,
        last: bool,
        attributes: &mut Attributes,
    ) -> Result<usize, NoLayout> {
        let start = Place { field: 0, at };
        let so_far = match self.known.get(self.last) {
            Some(layout) => match layout.read(text, start, last, &mut self.values) {
                Ok(end) => return Ok(end),
                Err(so_far) => so_far,
            },
            None => start,
        };
        match self.read_as_another(text, so_far, last) {
            Some(end) => Ok(end),
            None => self.find(text, start, last, attributes),
        }
    }

    /// Reads attributes that are laid out like the last only up to a place.
    fn read_as_another(&mut self, text: &[u8], so_far: Place, last: bool) -> Option<usize> {
        for (i, layout) in self.known.iter().enumerate() {
            if i != self.last && self.common[i][self.last] >= so_far.field {
                if let Ok(end) = layout.read(text, so_far, last, &mut self.values) {
                    self.last = i;
                    return Some(end);
                }
            }
        }
        None
    }

    #[cold]
    fn find(
        &mut self,
        text: &[u8],
        start: Place,
        last: bool,
        attributes: &mut Attributes,
    ) -> Result<usize, NoLayout> {
        let layout = Layout::of(text, start.at, last, self.found, attributes)?;
        let end = layout
            .read(text, start, last, &mut self.values)
            .map_err(|_| NoLayout::Junk)?;
        self.last = self.found as usize % MOST;
        self.found += 1;
        if self.last == self.known.len() {
            self.known.push(layout);
        } else {
            self.known[self.last] = layout;
        }
        for (i, layout) in self.known.iter().enumerate() {
            let common = layout.common(&self.known[self.last]);
            self.common[i][self.last] = common;
            self.common[self.last][i] = common;
        }
        Ok(end)
    }

    /// The layout of the values.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.known[self.last]
    }

    /// The value of an attribute that the summary adds up.
    #[inline]
    pub fn total(&self, attribute: u16) -> Option<u64> {
        self.layout()
            .place(attribute)
            .map(|place| self.values[place])
    }

    /// Where the database's name stands in the text, if the header has one.
    #[inline]
    pub fn schema(&self) -> Option<(usize, usize)> {
        let place = self.values[self.layout().schema?];
        let half = |value: u64| usize::try_from(value & u64::from(u32::MAX)).unwrap_or_default();
        Some((half(place >> 32), half(place)))
    }

    /// One of so many statements was logged.
    #[inline]
    pub fn rate_limit(&self) -> u64 {
        self.layout()
            .rate_limit
            .map_or(1, |place| self.values[place].clamp(1, 1 << 32))
    }
}

/// Text that is compared eight bytes at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lead {
    len: usize,
    words: [u64; WORDS],
    masks: [u64; WORDS],
    /// What does not fit into the words.
    rest: Box<[u8]>,
}

const WORDS: usize = 3;
const WIDTH: usize = WORDS * 8;

impl Lead {
    /// The lead of that text.
    pub fn new(text: &[u8]) -> Self {
        let (start, rest) = text.split_at(text.len().min(WIDTH));
        let (mut bytes, mut used) = ([0; WIDTH], [0; WIDTH]);
        bytes[..start.len()].copy_from_slice(start);
        used[..start.len()].fill(u8::MAX);
        Self {
            len: text.len(),
            words: words(&bytes),
            masks: words(&used),
            rest: rest.into(),
        }
    }

    /// Where a text goes on behind this one, if it has this one at `at`.
    #[inline]
    pub fn behind(&self, text: &[u8], at: usize) -> Option<usize> {
        let Some(bytes) = text
            .get(at..at + WIDTH)
            .and_then(|bytes| bytes.try_into().ok())
        else {
            return self.behind_at_end(text, at);
        };
        let found: [u64; WORDS] = words(bytes);
        let differ = (0..WORDS).fold(0, |differ, i| {
            differ | ((found[i] ^ self.words[i]) & self.masks[i])
        });
        if differ != 0 || (self.len > WIDTH && !text[at + WIDTH..].starts_with(&self.rest)) {
            return None;
        }
        Some(at + self.len)
    }

    #[cold]
    fn behind_at_end(&self, text: &[u8], at: usize) -> Option<usize> {
        let found = text.get(at..at + self.len)?;
        let mut bytes = [0; WIDTH];
        let (start, rest) = found.split_at(self.len.min(WIDTH));
        bytes[..start.len()].copy_from_slice(start);
        (words(&bytes) == self.words && *rest == *self.rest).then_some(at + self.len)
    }
}

#[inline]
fn words(bytes: &[u8; WIDTH]) -> [u64; WORDS] {
    std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|k| bytes[i * 8 + k])))
}
