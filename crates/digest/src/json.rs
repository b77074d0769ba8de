//! The digest as one JSON object on one line, written as it goes so that many classes need no memory.

use std::io::{self, Write};

use super::figures::{decimal, share};
use super::jsonwriter::Json;
use super::result::{Class, Digest, Example, Metric, Span, Summary, Window};
use super::total::{Log, Total};
use super::when::iso;

/// The version of the format.
const VERSION: u32 = 1;

/// Writes the digest with these of its classes.
///
/// # Errors
/// What `out` reports.
pub fn write(out: &mut impl Write, total: &Total, classes: &[&Class]) -> io::Result<()> {
    let digest = &total.digest;
    let mut json = Json::new(out);
    json.object(|json| {
        json.key("digest")?.raw(VERSION)?;
        json.key("summary")?
            .object(|json| summary(json, digest, &total.logs))?;
        json.key("classes")?.array(|json| {
            classes
                .iter()
                .try_for_each(|one| json.item()?.object(|json| class(json, digest, one)))
        })?;
        json.key("windows")?.array(|json| {
            digest
                .windows
                .iter()
                .try_for_each(|one| json.item()?.object(|json| window(json, one)))
        })
    })?;
    json.end()
}

fn summary<W: Write>(json: &mut Json<W>, digest: &Digest, logs: &[Log]) -> io::Result<()> {
    let Summary {
        totals,
        span: seen,
        bytes,
        filtered,
        ..
    } = &digest.summary;
    json.key("events")?.raw(totals.events)?;
    json.key("events_weighted")?.raw(totals.events_weighted)?;
    json.key("query_time_s")?
        .raw(decimal(totals.query_time_us, 6))?;
    json.key("lock_time_s")?
        .raw(decimal(totals.lock_time_us, 6))?;
    json.key("rows_sent")?.raw(totals.rows_sent)?;
    json.key("rows_examined")?.raw(totals.rows_examined)?;
    json.key("classes")?.raw(digest.classes.len())?;
    json.key("bytes")?.raw(bytes)?;
    span(json, seen)?;
    json.key("files")?.array(|json| {
        logs.iter().try_for_each(|log| {
            json.item()?.object(|json| {
                json.key("name")?.string(&log.name)?;
                json.key("bytes")?.raw(log.bytes)
            })
        })
    })?;
    json.key("oddities")?
        .object(|json| oddities(json, &digest.summary))?;
    json.key("filtered")?.raw(filtered)
}

fn oddities<W: Write>(json: &mut Json<W>, summary: &Summary) -> io::Result<()> {
    let odd = &summary.oddities;
    json.key("headers_without_statement")?
        .raw(odd.headers_without_statement)?;
    json.key("forged_headers")?.raw(odd.forged_headers)?;
    json.key("cut_events")?.raw(odd.cut_events)?;
    json.key("unreadable_bytes")?.raw(odd.unreadable_bytes)?;
    json.key("impossible_values")?.raw(odd.impossible_values)
}

fn span<W: Write>(json: &mut Json<W>, span: &Span) -> io::Result<()> {
    json.key("first_seen")?
        .optional(span.first_us.map(iso).as_deref())?;
    json.key("last_seen")?
        .optional(span.last_us.map(iso).as_deref())
}

fn class<W: Write>(json: &mut Json<W>, digest: &Digest, class: &Class) -> io::Result<()> {
    let time = class.metric("query_time_s").map_or(0, |metric| metric.sum);
    json.key("id")?.string(&format!("{:016X}", class.id))?;
    json.key("fingerprint")?.string(&class.fingerprint)?;
    json.key("verb")?.string(class.verb())?;
    json.key("events")?.raw(class.events)?;
    json.key("events_weighted")?.raw(class.events_weighted)?;
    json.key("share")?
        .number(share(time, digest.summary.totals.query_time_us))?;
    span(json, &class.span)?;
    json.key("metrics")?.object(|json| {
        let mut metrics = class.metrics.iter().filter(|(_, metric)| metric.count > 0);
        metrics.try_for_each(|(name, one)| json.key(name)?.object(|json| metric(json, one)))
    })?;
    let counts = &class.counts;
    json.key("flags")?.counts(&counts.flags)?;
    json.key("users")?.counts(&counts.users)?;
    json.key("hosts")?.counts(&counts.hosts)?;
    json.key("databases")?.counts(&counts.databases)?;
    match &class.example {
        None => json.key("example")?.raw("null"),
        Some(found) => json.key("example")?.object(|json| example(json, found)),
    }
}

fn metric<W: Write>(json: &mut Json<W>, metric: &Metric) -> io::Result<()> {
    let in_base = |value: u64| decimal(value.into(), metric.decimals);
    json.key("count")?.raw(metric.count)?;
    json.key("sum")?.raw(decimal(metric.sum, metric.decimals))?;
    json.key("mean")?.number(metric.mean())?;
    json.key("min")?.raw(in_base(metric.min))?;
    json.key("max")?.raw(in_base(metric.max))?;
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        json.key(name)?.raw(in_base(metric.percentile(share)))?;
    }
    json.key("histogram")?.array(|json| {
        metric
            .histogram
            .buckets()
            .into_iter()
            .try_for_each(|(low, high, count)| {
                json.item()?
                    .raw(format_args!("[{},{},{count}]", in_base(low), in_base(high)))
            })
    })
}

fn example<W: Write>(json: &mut Json<W>, example: &Example) -> io::Result<()> {
    json.key("query")?.string(&example.query)?;
    json.key("query_time_s")?
        .raw(decimal(example.query_time_us.into(), 6))?;
    json.key("at")?.optional(example.at_us.map(iso).as_deref())
}

fn window<W: Write>(json: &mut Json<W>, window: &Window) -> io::Result<()> {
    json.key("start")?.string(&iso(window.start_us))?;
    json.key("end")?.string(&iso(window.end_us))?;
    json.key("events")?.raw(window.events)?;
    json.key("query_time_s")?
        .raw(decimal(window.query_time_us, 6))?;
    json.key("classes")?.array(|json| {
        window.classes.iter().try_for_each(|class| {
            json.item()?.object(|json| {
                json.key("id")?.string(&format!("{:016X}", class.id))?;
                json.key("events")?.raw(class.events)?;
                json.key("query_time_s")?
                    .raw(decimal(class.query_time_us, 6))
            })
        })
    })
}
