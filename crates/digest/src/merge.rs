//! Digests made one.

use std::collections::HashMap;
use std::sync::Arc;

use super::gather::ROOM_OF_CLASS;
use super::names::INHERITED_TEXT;
use super::result::{Class, Counts, Digest, Example, Metric, Oddities, Span, Summary, Totals};
use super::tally::{ENTRY, FREE_NAMES};
use super::window::merged;

type Tally = Vec<(Arc<str>, u64)>;

impl Digest {
    /// Adds the digest of another log.  In whatever order logs are added, all but the order of the
    /// classes and the choice among equally slow examples is the same.
    pub fn merge(&mut self, other: Self) {
        let mut room = i64::MAX / 2;
        self.merge_within(other, &mut room);
    }

    /// Adds the digest of another log; the memory that takes is taken from `room`.
    pub(super) fn merge_within(&mut self, other: Self, room: &mut i64) {
        self.summary.merge(&other.summary);
        self.windows = if other.windows.is_empty() {
            std::mem::take(&mut self.windows)
        } else {
            merged(&self.windows, &other.windows)
        };
        let mut places: HashMap<u64, usize> = HashMap::with_capacity(self.classes.len());
        places.extend(
            self.classes
                .iter()
                .enumerate()
                .map(|(place, class)| (class.id, place)),
        );
        for class in other.classes {
            if let Some(place) = places.get(&class.id) {
                self.classes[*place].merge(class, room);
                self.classes[*place].fit(*place);
            } else {
                *room += ROOM_OF_CLASS - class.room();
                self.classes.push(class);
                let place = self.classes.len() - 1;
                self.classes[place].fit(place);
            }
        }
    }

    /// Says which database the events before the first USE had.
    pub(super) fn inherit(&mut self, database: &Arc<str>) {
        for class in &mut self.classes {
            let databases = &mut class.counts.databases;
            if let Some(at) = databases
                .iter()
                .position(|known| &*known.0 == INHERITED_TEXT)
            {
                let (_, count) = databases.remove(at);
                if !database.is_empty() {
                    add(databases, vec![(Arc::clone(database), count)]);
                }
            }
        }
    }
}

impl Summary {
    fn merge(&mut self, other: &Self) {
        self.totals.merge(&other.totals);
        self.span.merge(other.span);
        self.bytes += other.bytes;
        self.oddities.merge(&other.oddities);
        self.filtered += other.filtered;
    }
}

impl Totals {
    fn merge(&mut self, other: &Self) {
        self.events += other.events;
        self.events_weighted += other.events_weighted;
        self.query_time_us += other.query_time_us;
        self.lock_time_us += other.lock_time_us;
        self.rows_sent += other.rows_sent;
        self.rows_examined += other.rows_examined;
    }
}

impl Oddities {
    fn merge(&mut self, other: &Self) {
        self.headers_without_statement += other.headers_without_statement;
        self.forged_headers += other.forged_headers;
        self.cut_events += other.cut_events;
        self.unreadable_bytes += other.unreadable_bytes;
        self.impossible_values += other.impossible_values;
    }
}

impl Span {
    fn merge(&mut self, other: Self) {
        for at_us in other.first_us.into_iter().chain(other.last_us) {
            self.include(at_us);
        }
    }
}

impl Class {
    fn merge(&mut self, other: Self, room: &mut i64) {
        self.events += other.events;
        self.events_weighted += other.events_weighted;
        self.span.merge(other.span);
        for (name, metric) in other.metrics {
            match self.metrics.iter_mut().find(|known| known.0 == name) {
                Some(known) => known.1.merge(&metric, room),
                None => self.metrics.push((name, metric)),
            }
        }
        self.counts.merge(other.counts, room);
        let time =
            |example: &Option<Example>| example.as_ref().map(|slowest| slowest.query_time_us);
        if time(&other.example) > time(&self.example) {
            self.example = other.example;
        }
    }
}

impl Class {
    /// The memory of what grows.
    fn room(&self) -> i64 {
        let histograms = self
            .metrics
            .iter()
            .map(|(_, metric)| metric.histogram.room());
        histograms.sum::<i64>() + self.counts.room()
    }
}

impl Metric {
    fn merge(&mut self, other: &Self, room: &mut i64) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.histogram.merge_within(&other.histogram, room);
    }
}

impl Counts {
    fn room(&self) -> i64 {
        [&self.users, &self.hosts, &self.databases]
            .iter()
            .map(|names| room_of(names))
            .sum()
    }

    fn merge(&mut self, other: Self, room: &mut i64) {
        let before = self.room();
        add(&mut self.flags, other.flags);
        add(&mut self.users, other.users);
        add(&mut self.hosts, other.hosts);
        add(&mut self.databases, other.databases);
        *room -= self.room() - before;
    }
}

fn room_of(names: &Tally) -> i64 {
    i64::try_from(names.len().saturating_sub(FREE_NAMES)).unwrap_or(i64::MAX / ENTRY) * ENTRY
}

/// Adds counts to counts; both are in the order of their names.
fn add(to: &mut Tally, counts: Tally) {
    for (name, count) in counts {
        match to.binary_search_by(|known| known.0.cmp(&name)) {
            Ok(at) => to[at].1 += count,
            Err(at) => to.insert(at, (name, count)),
        }
    }
}
