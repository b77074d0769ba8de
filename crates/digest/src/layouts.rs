//! The layouts that were seen, and the attributes of the last header by them.

use super::attributes::Attributes;
use super::layout::{Layout, NoLayout, Place};

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
