//! A class while it is gathered: its numbers by small keys instead of names, its texts cut.

use std::sync::Arc;

use super::attributes::Attributes;
use super::fingerprint::{redacted, Fingerprint};
use super::histogram::Histogram;
use super::layout::Layout;
use super::names::{Names, Tally};
use super::number::IMPOSSIBLE;
use super::result::{Class, Counts, Digest, Example, Metric, Span};

/// One statement with all facts of its header.
#[derive(Debug)]
pub(super) struct Event<'a> {
    pub statement: &'a [u8],
    pub layout: &'a Layout,
    pub values: &'a [u64],
    pub who: Who,
    pub at_us: Option<i64>,
    /// One of so many was logged.
    pub weight: u64,
    pub query_time_us: Option<u64>,
}

/// Names by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Who {
    pub user: u32,
    pub host: u32,
    pub database: u32,
}

/// More attributes than these a class does not have, but for those that the summary totals.
const MOST_METRICS: usize = 64;
const TOTALLED: [&str; 4] = ["query_time_s", "lock_time_s", "rows_sent", "rows_examined"];
const NO_PLACE: u8 = u8::MAX;

/// The statements of one fingerprint so far.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Without its example, users, hosts and databases.
    class: Class,
    /// The place among the class's metrics of each value of a layout.
    places: (u32, Box<[u8]>),
    users: Tally,
    hosts: Tally,
    databases: Tally,
    slowest: Option<Slowest>,
}

#[derive(Debug)]
struct Slowest {
    statement: Box<[u8]>,
    query_time_us: u64,
    at_us: Option<i64>,
    database: u32,
    complete: bool,
}

impl Gathered {
    /// A class that has no events, of whose fingerprint at most so many bytes are retained.
    pub fn new(fingerprint: &Fingerprint, most: usize) -> Self {
        let text = String::from_utf8_lossy(&fingerprint.text);
        Self {
            class: Class {
                id: fingerprint.id,
                id_high: fingerprint.id_high,
                fingerprint: cut(&text, most).into(),
                events: 0,
                events_weighted: 0,
                span: Span::default(),
                metrics: Vec::new(),
                counts: Counts::default(),
                example: None,
            },
            places: (u32::MAX, Box::default()),
            users: Tally::default(),
            hosts: Tally::default(),
            databases: Tally::default(),
            slowest: None,
        }
    }

    /// The class's number.
    #[inline]
    pub fn id(&self) -> u64 {
        self.class.id
    }

    /// Adds an event, of whose statement at most `keep` bytes are retained; returns how many of its
    /// values are impossible.
    #[inline]
    pub fn add(
        &mut self,
        event: &Event,
        keep: usize,
        attributes: &Attributes,
        room: &mut i64,
    ) -> u64 {
        self.class.events += 1;
        self.class.events_weighted += event.weight;
        if let Some(at_us) = event.at_us {
            self.class.span.include(at_us);
        }
        self.users.add(event.who.user, room);
        self.hosts.add(event.who.host, room);
        self.databases.add(event.who.database, room);
        let time = event.query_time_us.unwrap_or(0);
        if self
            .slowest
            .as_ref()
            .is_none_or(|slowest| slowest.query_time_us < time)
        {
            self.slowest = Some(Slowest::new(event, keep));
        }
        self.measure(event, attributes, room)
    }

    #[inline]
    fn measure(&mut self, event: &Event, attributes: &Attributes, room: &mut i64) -> u64 {
        if self.places.0 != event.layout.number {
            self.place(event.layout, attributes);
        }
        let mut impossible = 0;
        for (value, place) in event.values.iter().zip(&self.places.1) {
            if let Some((_, metric)) = self.class.metrics.get_mut(usize::from(*place)) {
                if *value == IMPOSSIBLE {
                    impossible += 1;
                } else {
                    metric.add(*value, room);
                }
            }
        }
        for (i, flag) in &event.layout.flags {
            if event.values[*i] > 0 {
                self.flag(&attributes.get(*flag).name);
            }
        }
        impossible
    }

    #[cold]
    fn place(&mut self, layout: &Layout, attributes: &Attributes) {
        let metrics = &mut self.class.metrics;
        let numbers = layout
            .slots()
            .filter(|slot| slot.number().is_some())
            .count();
        metrics.reserve_exact(numbers.saturating_sub(metrics.len()));
        let places = layout.slots().map(|slot| {
            let Some(attribute) = slot.number().map(|number| attributes.get(number)) else {
                return NO_PLACE;
            };
            let known = metrics
                .iter()
                .position(|(name, _)| Arc::ptr_eq(name, &attribute.name));
            let place = known.unwrap_or(metrics.len());
            if place >= MOST_METRICS && !TOTALLED.contains(&&*attribute.name) {
                return NO_PLACE;
            }
            if place == metrics.len() {
                metrics.push((Arc::clone(&attribute.name), Metric::new(attribute.decimals)));
            }
            u8::try_from(place).unwrap_or(NO_PLACE)
        });
        self.places = (layout.number, places.collect());
    }

    #[cold]
    fn flag(&mut self, name: &Arc<str>) {
        let flags = &mut self.class.counts.flags;
        match flags.iter_mut().find(|(known, _)| Arc::ptr_eq(known, name)) {
            Some((_, count)) => *count += 1,
            None => flags.push((Arc::clone(name), 1)),
        }
    }

    /// The class as it is reported.
    pub fn done(self, names: &Names) -> Class {
        let mut class = self.class;
        class.metrics.retain(|(_, metric)| metric.count > 0);
        class.counts.flags.sort_unstable();
        class.counts.users = self.users.done(names);
        class.counts.hosts = self.hosts.done(names);
        class.counts.databases = self.databases.done(names);
        class.example = self.slowest.map(|slowest| slowest.done(names));
        class
    }
}

impl Slowest {
    fn new(event: &Event, keep: usize) -> Self {
        Self {
            statement: event.statement[..event.statement.len().min(keep)].into(),
            query_time_us: event.query_time_us.unwrap_or(0),
            at_us: event.at_us,
            database: event.who.database,
            complete: event.statement.len() <= keep,
        }
    }

    fn done(self, names: &Names) -> Example {
        Example {
            query: String::from_utf8_lossy(&self.statement).into_owned(),
            query_time_us: self.query_time_us,
            at_us: self.at_us,
            database: names.text(self.database),
            complete: self.complete && std::str::from_utf8(&self.statement).is_ok(),
        }
    }
}

impl Metric {
    fn new(decimals: u8) -> Self {
        let histogram = Histogram::default();
        Self {
            decimals,
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            histogram,
        }
    }

    #[inline]
    fn add(&mut self, value: u64, room: &mut i64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.histogram.add(value, room);
    }
}

impl Span {
    /// Grows so that it includes a time.
    #[inline]
    pub(super) fn include(&mut self, at_us: i64) {
        self.first_us = Some(self.first_us.map_or(at_us, |first| first.min(at_us)));
        self.last_us = Some(self.last_us.map_or(at_us, |last| last.max(at_us)));
    }
}

/// Of the first classes so many bytes of the fingerprint and of the example are retained.
const KEPT: [(usize, usize, usize); 2] = [(256, 16 << 10, 16 << 10), (8192, 1024, 1024)];
const KEPT_OF_MANY: (usize, usize) = (512, 256);

#[inline]
fn kept(place: usize) -> (usize, usize) {
    let found = KEPT.iter().find(|(classes, ..)| place < *classes);
    found.map_or(KEPT_OF_MANY, |(_, fingerprint, example)| {
        (*fingerprint, *example)
    })
}

/// How many bytes are retained of the fingerprint of the class at that place.
#[inline]
pub(super) fn fingerprint_bytes(place: usize) -> usize {
    kept(place).0
}

/// The most bytes that are retained of the example of the class at that place.
#[inline]
pub(super) fn example_bytes(place: usize) -> usize {
    kept(place).1
}

/// The start of a text, at most so many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Class {
    /// Cuts the texts of a class to the limit of that place.
    pub(super) fn fit(&mut self, place: usize) {
        if self.fingerprint.len() > fingerprint_bytes(place) {
            self.fingerprint = cut(&self.fingerprint, fingerprint_bytes(place)).into();
        }
        if let Some(example) = &mut self.example {
            if example.query.len() > example_bytes(place) {
                example.query = cut(&example.query, example_bytes(place)).to_owned();
                example.complete = false;
            }
        }
    }
}

impl Digest {
    /// Replaces the literals of all examples.
    pub(super) fn redact(&mut self) {
        for class in &mut self.classes {
            if let Some(example) = &mut class.example {
                let text = redacted(example.query.as_bytes());
                example.query = String::from_utf8_lossy(&text).into_owned();
                example.complete = false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(
            (cut("a\u{e9}", 2), cut("a\u{e9}", 3), cut("", 5)),
            ("a", "a\u{e9}", "")
        );
    }
}
