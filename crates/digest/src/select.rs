//! Which classes are shown, and in what order.

use std::cmp::Ordering;
use std::str::FromStr;

use super::order::Order;
use super::result::{Class, Digest};

/// How many of the sorted classes are shown: the first so many, or those that together make up so
/// much of the whole, whichever are fewer.
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

/// The classes to show, sorted; equals by their id, so that the order of the files does not matter.
#[must_use]
pub fn select<'a>(
    digest: &'a Digest,
    order: &Order,
    reverse: bool,
    limit: Limit,
) -> Vec<&'a Class> {
    let mut keyed: Vec<(f64, &Class)> = digest
        .classes
        .iter()
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
    let whole: f64 = sorted.iter().map(|class| order.weight(class)).sum();
    let mut sum = 0.0;
    let reached = sorted.iter().position(|class| {
        sum += order.weight(class);
        sum >= share * whole
    });
    reached.map_or(sorted.len(), |at| at + 1)
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
