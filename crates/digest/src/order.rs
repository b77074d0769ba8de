//! By what classes are sorted: our words, mysqldumpslow's letters, pt-query-digest's METRIC:FUNCTION.

use std::str::FromStr;

use super::figures::base;
use super::result::{Class, Metric};

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

    /// What of the whole this class is, for a limit in per cent: its key where keys add up, else
    /// its query time.
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
