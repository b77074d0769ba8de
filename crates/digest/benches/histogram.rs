//! Our histogram beside hdrhistogram, on the values of a real or generated slow log: time and memory.
//!
//! `cargo bench -p mydyno-digest --bench histogram -- LOG` counts each value of each event's
//! attribute line into the histogram of its class and attribute, as the digest does; the two take
//! turns, and the ratio of each turn's times is taken.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram as Theirs;
use mydyno_digest::histogram::Histogram as Ours;

/// Turns; the first is not counted.
const TURNS: usize = 12;
/// Two digits: half of our buckets' width, the coarsest that holds our precision.
const DIGITS: u8 = 2;
/// Bytes for ours, more than it needs here.
const ROOM: i64 = 1 << 40;

/// Values, each with the number of its histogram, and how many histograms there are.
struct Values {
    values: Vec<(usize, u64)>,
    histograms: usize,
}

fn main() {
    let Some(log) = std::env::args()
        .skip(1)
        .find(|word| !word.starts_with("--"))
    else {
        eprintln!("cargo bench -p mydyno-digest --bench histogram -- LOG");
        return;
    };
    let text = std::fs::read(&log).expect("the log is readable");
    let found = values(&String::from_utf8_lossy(&text));
    let mut turns: Vec<[f64; 2]> = (0..TURNS).map(|turn| one_turn(&found, turn)).collect();
    turns.remove(0);
    let median = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let mut all: Vec<f64> = turns.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        (all[all.len() / 2], all[0], all[all.len() - 1])
    };
    let (ratio, low, high) = median(&|turn| turn[1] / turn[0]);
    println!(
        "{} values of {} histograms, {} turns\n\
         ours          {:.2} ns a value, {} bytes\n\
         hdrhistogram  {:.2} ns a value, {} bytes\n\
         hdrhistogram takes {ratio:.2} times as long [{low:.2}..{high:.2}]",
        found.values.len(),
        found.histograms,
        turns.len(),
        median(&|turn| turn[0]).0,
        ours(&found).1,
        median(&|turn| turn[1]).0,
        theirs(&found).1,
    );
}

/// Nanoseconds a value of ours and of theirs.
#[allow(clippy::cast_precision_loss, reason = "a time for people")]
fn one_turn(found: &Values, turn: usize) -> [f64; 2] {
    let mut times = [0.0; 2];
    for which in [turn % 2, 1 - turn % 2] {
        let began = Instant::now();
        if which == 0 {
            black_box(ours(found));
        } else {
            black_box(theirs(found));
        }
        times[which] = began.elapsed().as_nanos() as f64 / found.values.len() as f64;
    }
    times
}

/// Our histograms and the memory of their counts.
fn ours(found: &Values) -> (Vec<Ours>, i64) {
    let mut all = vec![Ours::default(); found.histograms];
    let mut room = ROOM;
    for (place, value) in &found.values {
        all[*place].add(*value, &mut room);
    }
    (all, ROOM - room)
}

/// Their histograms and the memory of their counts.
fn theirs(found: &Values) -> (Vec<Theirs<u64>>, usize) {
    let one = || Theirs::new(DIGITS).expect("a precision that it has");
    let mut all: Vec<Theirs<u64>> = (0..found.histograms).map(|_| one()).collect();
    for (place, value) in &found.values {
        all[*place].record(*value).expect("it grows by itself");
    }
    let bytes = all.iter().map(|one| one.distinct_values() * 8).sum();
    (all, bytes)
}

/// The values of all attribute lines.  A class is the start of the statement without its numbers.
fn values(text: &str) -> Values {
    let mut places: HashMap<(String, String), usize> = HashMap::new();
    let mut values = Vec::new();
    for event in text.split("\n# Query_time: ").skip(1) {
        let mut lines = event.lines();
        let attributes = format!("Query_time: {}", lines.next().unwrap_or(""));
        let statement = lines
            .find(|line| !line.starts_with(['#', 'S']))
            .unwrap_or("");
        let mut in_name = false;
        let outside_literals = |c: &char| {
            in_name = c.is_alphabetic() || *c == '_' || (in_name && c.is_ascii_digit());
            in_name || !c.is_ascii_digit()
        };
        let class: String = statement
            .chars()
            .filter(outside_literals)
            .take(48)
            .collect();
        let words: Vec<&str> = attributes.split_whitespace().collect();
        for pair in words.chunks_exact(2) {
            let Some(value) = number(pair[1]) else {
                continue;
            };
            let next = places.len();
            let key = (class.clone(), pair[0].to_owned());
            values.push((*places.entry(key).or_insert(next), value));
        }
    }
    let histograms = places.len();
    Values { values, histograms }
}

/// A count, or a time in microseconds.
fn number(text: &str) -> Option<u64> {
    match text.split_once('.') {
        None => text.parse().ok(),
        Some((seconds, part)) if part.len() == 6 => {
            Some(seconds.parse::<u64>().ok()? * 1_000_000 + part.parse::<u64>().ok()?)
        }
        Some(_) => None,
    }
}
