//! Which classes are shown, and in what order.

use std::cmp::Ordering;
use std::str::FromStr;

use super::figures::base;
use super::result::{Class, Digest, Metric};

/// How many of the sorted classes are shown: the first so many, or those that together make up so
/// much of the total, whichever are fewer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    share: Option<f64>,
    most: Option<usize>,
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text}: write 20, 95% or 95%:20; 0 is all");
        let most = |text: &str| text.parse().map(|most| Some(most).filter(|most| *most > 0));
        let Some((share, rest)) = text.split_once('%') else {
            let most = most(text).map_err(|_| wrong())?;
            return Ok(Self { share: None, most });
        };
        let share: f64 = share.parse().map_err(|_| wrong())?;
        let most = match rest.strip_prefix(':') {
            Some(rest) => most(rest).map_err(|_| wrong())?,
            None if rest.is_empty() => None,
            None => return Err(wrong()),
        };
        let share = Some(share / 100.0).filter(|share| (0.0..=1.0).contains(share));
        share.map(|_| Self { share, most }).ok_or_else(wrong)
    }
}

/// The classes to show, of these ids if any are given, sorted; equals by their id, so that the order of the files does not matter.
#[must_use]
pub fn select<'a>(
    digest: &'a Digest,
    order: &Order,
    reverse: bool,
    limit: Limit,
    ids: &[u64],
) -> Vec<&'a Class> {
    let mut keyed: Vec<(f64, &Class)> = digest
        .classes
        .iter()
        .filter(|class| ids.is_empty() || ids.contains(&class.id))
        .map(|class| (order.key(class), class))
        .collect();
    keyed.sort_unstable_by(|a, b| by_key(a.0, b.0, reverse).then(a.1.id.cmp(&b.1.id)));
    let mut sorted: Vec<&Class> = keyed.into_iter().map(|(_, class)| class).collect();
    if let Some(share) = limit.share {
        sorted.truncate(enough(&sorted, order, share));
    }
    sorted.truncate(limit.most.unwrap_or(usize::MAX));
    sorted
}

/// The largest first; what has no figure comes last in either direction.
fn by_key(a: f64, b: f64, reverse: bool) -> Ordering {
    let falling = b.total_cmp(&a);
    if reverse && a.is_finite() && b.is_finite() {
        falling.reverse()
    } else {
        falling
    }
}

/// How many of these make up that share of all.
fn enough(sorted: &[&Class], order: &Order, share: f64) -> usize {
    let all: f64 = sorted.iter().map(|class| order.weight(class)).sum();
    let mut sum = 0.0;
    let reached = sorted.iter().position(|class| {
        sum += order.weight(class);
        sum >= share * all
    });
    reached.map_or(sorted.len(), |at| at + 1)
}

/// A figure of a class, the largest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    metric: String,
    figure: Figure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    Sum,
    Mean,
    Min,
    Max,
    Count,
    Events,
    P50,
    P95,
    P99,
}

/// Word, metric, figure; the letters are those of mysqldumpslow.
const WORDS: [(&str, &str, Figure); 22] = [
    ("total", "query_time_s", Figure::Sum),
    ("time-sum", "query_time_s", Figure::Sum),
    ("t", "query_time_s", Figure::Sum),
    ("mean", "query_time_s", Figure::Mean),
    ("at", "query_time_s", Figure::Mean),
    ("min", "query_time_s", Figure::Min),
    ("max", "query_time_s", Figure::Max),
    ("p50", "query_time_s", Figure::P50),
    ("p95", "query_time_s", Figure::P95),
    ("p99", "query_time_s", Figure::P99),
    ("count", "", Figure::Events),
    ("c", "", Figure::Events),
    ("lock", "lock_time_s", Figure::Sum),
    ("l", "lock_time_s", Figure::Sum),
    ("al", "lock_time_s", Figure::Mean),
    ("rows-sent", "rows_sent", Figure::Sum),
    ("r", "rows_sent", Figure::Sum),
    ("ar", "rows_sent", Figure::Mean),
    ("rows-examined", "rows_examined", Figure::Sum),
    ("e", "rows_examined", Figure::Sum),
    ("ae", "rows_examined", Figure::Mean),
    ("rows-affected", "rows_affected", Figure::Sum),
];

const FIGURES: [(&str, Figure); 11] = [
    ("sum", Figure::Sum),
    ("mean", Figure::Mean),
    ("avg", Figure::Mean),
    ("min", Figure::Min),
    ("max", Figure::Max),
    ("count", Figure::Count),
    ("cnt", Figure::Count),
    ("p50", Figure::P50),
    ("median", Figure::P50),
    ("p95", Figure::P95),
    ("p99", Figure::P99),
];

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (metric, figure) = match text.split_once(':') {
            None => WORDS
                .iter()
                .find(|word| word.0 == text)
                .map(|(_, metric, figure)| ((*metric).to_owned(), *figure))
                .ok_or_else(unknown_word)?,
            Some((metric, function)) if !metric.is_empty() => {
                let known = FIGURES.iter().find(|known| known.0 == function);
                (
                    metric.to_ascii_lowercase(),
                    known.ok_or_else(unknown_figure)?.1,
                )
            }
            Some(_) => return Err("name a metric before the colon, as Query_time:sum".to_owned()),
        };
        Ok(Self { metric, figure })
    }
}

fn unknown_word() -> String {
    let words: Vec<&str> = WORDS.iter().map(|word| word.0).collect();
    format!(
        "one of {}, or METRIC:FUNCTION such as Rows_examined:max",
        words.join(", ")
    )
}

fn unknown_figure() -> String {
    let words: Vec<&str> = FIGURES.iter().map(|figure| figure.0).collect();
    format!("after the colon comes one of {}", words.join(", "))
}

impl Order {
    /// The figure by which this class is sorted, in base units; lower than all where the log did
    /// not have it.
    #[must_use]
    pub fn key(&self, class: &Class) -> f64 {
        if self.figure == Figure::Events {
            return base(class.events.into(), 0);
        }
        self.metric(class)
            .map_or(f64::NEG_INFINITY, |metric| self.figure.of(metric))
    }

    /// The share of the total of this class, for a limit in per cent: its key where keys add up,
    /// else its query time.
    #[must_use]
    pub fn weight(&self, class: &Class) -> f64 {
        match self.figure {
            Figure::Sum | Figure::Count | Figure::Events => self.key(class).max(0.0),
            _ => class
                .metric("query_time_s")
                .map_or(0.0, |metric| Figure::Sum.of(metric)),
        }
    }

    /// Whether some class has what is sorted by.
    #[must_use]
    pub fn known_in(&self, classes: &[Class]) -> bool {
        classes.is_empty() || classes.iter().any(|class| self.key(class).is_finite())
    }

    /// The metric's name as it was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metric
    }

    /// `Query_time` is found as `query_time_s`.
    fn metric<'a>(&self, class: &'a Class) -> Option<&'a Metric> {
        class
            .metric(&self.metric)
            .or_else(|| class.metric(&format!("{}_s", self.metric)))
    }
}

impl Figure {
    fn of(self, metric: &Metric) -> f64 {
        let share = match self {
            Self::Sum => return base(metric.sum, metric.decimals),
            Self::Mean => return metric.mean(),
            Self::Min => return base(metric.min.into(), metric.decimals),
            Self::Max => return base(metric.max.into(), metric.decimals),
            Self::Count | Self::Events => return base(metric.count.into(), 0),
            Self::P50 => 0.5,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
        };
        base(metric.percentile(share).into(), metric.decimals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::result::{Counts, Metric, Span};

    fn class(id: u64, events: u64, sum: u128, max: u64) -> Class {
        let mut histogram = Histogram::default();
        for _ in 0..events {
            histogram.add(max, &mut 1000);
        }
        let metric = Metric {
            decimals: 6,
            count: events,
            sum,
            min: max,
            max,
            histogram,
        };
        Class {
            id,
            id_high: 0,
            fingerprint: "select ?".into(),
            events,
            events_weighted: events,
            span: Span::default(),
            metrics: vec![("query_time_s".into(), metric)],
            counts: Counts::default(),
            example: None,
        }
    }

    fn ids(order: &str, reverse: bool, limit: &str) -> Vec<u64> {
        let digest = Digest {
            classes: vec![
                class(1, 10, 100, 10),
                class(2, 1, 800, 800),
                class(3, 5, 100, 20),
            ],
            ..Digest::default()
        };
        let chosen = select(
            &digest,
            &order.parse().unwrap(),
            reverse,
            limit.parse().unwrap(),
            &[],
        );
        chosen.iter().map(|class| class.id).collect()
    }

    #[test]
    fn every_order_sorts() {
        assert_eq!(ids("total", false, "0"), [2, 1, 3], "equals by their id");
        assert_eq!(ids("c", false, "0"), [1, 3, 2]);
        assert_eq!(ids("at", true, "0"), [1, 3, 2]);
        assert_eq!(ids("Query_time:max", false, "2"), [2, 3]);
        assert_eq!(ids("query_time_s:cnt", false, "1"), [1]);
        assert_eq!(ids("p95", true, "1"), [1]);
    }

    #[test]
    fn a_share_is_enough() {
        assert_eq!(ids("total", false, "80%"), [2]);
        assert_eq!(ids("total", false, "81%"), [2, 1]);
        assert_eq!(ids("total", false, "100%:2"), [2, 1]);
        assert_eq!(ids("c", false, "50%"), [1]);
    }

    #[test]
    fn wrong_words_are_refused() {
        for wrong in ["", "x", "Query_time:", ":sum", "Query_time:q"] {
            assert!(wrong.parse::<Order>().is_err(), "{wrong}");
        }
        for wrong in ["", "-1", "101%", "x%", "5%5", "95%:x"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }
}
