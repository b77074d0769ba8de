//! The digest as one JSON object on one line, written class by class so that many need no memory.

use std::io::{self, Write};
use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::ser::{CharEscape, Formatter};
use serde_json::value::RawValue;

use super::figures::{decimal, share};
use super::legible::drives_a_terminal;
use super::options::Group;
use super::paste::paste;
use super::result::{
    Class, Digest, Example, Log, Metric, Oddities, Span, Total, Totals, Window, WindowClass,
};
use super::time::iso;

/// The version of the format.
const VERSION: u32 = 1;

/// Writes the digest with these of its classes.
///
/// # Errors
/// What `out` reports.
pub fn write(
    out: &mut impl Write,
    total: &Total,
    classes: &[&Class],
    group: Option<Group>,
) -> io::Result<()> {
    let digest = &total.digest;
    let document = Document {
        digest: VERSION,
        group_by: Group::name(group),
        summary: SummaryView::of(digest, &total.logs),
        classes: Classes {
            shown: classes,
            query_time_us: digest.summary.totals.query_time_us,
        },
        windows: Each(&digest.windows, WindowView::of),
    };
    document.serialize(&mut serde_json::Serializer::with_formatter(
        &mut *out, Harmless,
    ))?;
    out.write_all(b"\n")
}

/// JSON without blanks, in which all that could drive a terminal is escaped.
struct Harmless;

impl Formatter for Harmless {
    /// As Rust shows it, which is a JSON number too.
    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> io::Result<()> {
        write!(out, "{value:?}")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut plain_from = 0;
        for (at, c) in fragment
            .char_indices()
            .filter(|(_, c)| drives_a_terminal(*c))
        {
            out.write_all(&fragment.as_bytes()[plain_from..at])?;
            plain_from = at + c.len_utf8();
            escape(out, c)?;
        }
        out.write_all(&fragment.as_bytes()[plain_from..])
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        escaped: CharEscape,
    ) -> io::Result<()> {
        match escaped {
            CharEscape::Quote => out.write_all(b"\\\""),
            CharEscape::ReverseSolidus => out.write_all(b"\\\\"),
            CharEscape::Solidus => out.write_all(b"/"),
            CharEscape::LineFeed => out.write_all(b"\\n"),
            CharEscape::Tab => out.write_all(b"\\t"),
            CharEscape::Backspace => escape(out, '\u{8}'),
            CharEscape::FormFeed => escape(out, '\u{c}'),
            CharEscape::CarriageReturn => escape(out, '\r'),
            CharEscape::AsciiControl(byte) => escape(out, char::from(byte)),
        }
    }
}

/// Writes `\uXXXX` for each UTF-16 unit.
fn escape<W: ?Sized + Write>(out: &mut W, c: char) -> io::Result<()> {
    c.encode_utf16(&mut [0; 2])
        .iter()
        .try_for_each(|unit| write!(out, "\\u{unit:04x}"))
}

/// An array of views, each made when it is written.
struct Each<'a, T, V>(&'a [T], fn(&'a T) -> V);

impl<T, V: Serialize> Serialize for Each<'_, T, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(self.1))
    }
}

/// An integer of 10^-`decimals`, written exactly, whatever its length.
struct Decimal(u128, u8);

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.1 == 0 {
            return serializer.serialize_u128(self.0);
        }
        let number = RawValue::from_string(decimal(self.0, self.1)).map_err(S::Error::custom)?;
        number.serialize(serializer)
    }
}

/// A time in microseconds, written in seconds.
fn seconds(us: impl Into<u128>) -> Decimal {
    Decimal(us.into(), 6)
}

/// The identity of a class, as `pt-query-digest` writes it.
fn id_of(id: u64) -> String {
    format!("{id:016X}")
}

#[derive(Serialize)]
struct Document<'a> {
    digest: u32,
    group_by: &'static str,
    summary: SummaryView<'a>,
    classes: Classes<'a>,
    windows: Each<'a, Window, WindowView<'a>>,
}

#[derive(Serialize)]
struct SummaryView<'a> {
    #[serde(flatten)]
    totals: TotalsView,
    classes: usize,
    bytes: u64,
    #[serde(flatten)]
    span: SpanView,
    files: Each<'a, Log, FileView<'a>>,
    oddities: &'a Oddities,
    filtered: u64,
}

#[derive(Serialize)]
struct TotalsView {
    events: u64,
    events_weighted: u64,
    query_time_s: Decimal,
    lock_time_s: Decimal,
    rows_sent: u128,
    rows_examined: u128,
}

#[derive(Serialize)]
struct SpanView {
    first_seen: Option<String>,
    last_seen: Option<String>,
}

#[derive(Serialize)]
struct FileView<'a> {
    name: &'a str,
    bytes: u64,
}

impl<'a> SummaryView<'a> {
    fn of(digest: &'a Digest, logs: &'a [Log]) -> Self {
        let summary = &digest.summary;
        Self {
            totals: TotalsView::of(&summary.totals),
            classes: digest.classes.len(),
            bytes: summary.bytes,
            span: SpanView::of(&summary.span),
            files: Each(logs, FileView::of),
            oddities: &summary.oddities,
            filtered: summary.filtered,
        }
    }
}

impl<'a> FileView<'a> {
    fn of(log: &'a Log) -> Self {
        Self {
            name: &log.name,
            bytes: log.bytes,
        }
    }
}

impl TotalsView {
    fn of(totals: &Totals) -> Self {
        Self {
            events: totals.events,
            events_weighted: totals.events_weighted,
            query_time_s: seconds(totals.query_time_us),
            lock_time_s: seconds(totals.lock_time_us),
            rows_sent: totals.rows_sent,
            rows_examined: totals.rows_examined,
        }
    }
}

impl SpanView {
    fn of(span: &Span) -> Self {
        Self {
            first_seen: span.first_us.map(iso),
            last_seen: span.last_us.map(iso),
        }
    }
}

/// The classes to be shown, and the time of all classes.
struct Classes<'a> {
    shown: &'a [&'a Class],
    query_time_us: u128,
}

impl Serialize for Classes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let views = self.shown.iter();
        serializer.collect_seq(views.map(|class| ClassView::of(class, self.query_time_us)))
    }
}

#[derive(Serialize)]
struct ClassView<'a> {
    id: String,
    id32: String,
    fingerprint: &'a str,
    verb: &'a str,
    events: u64,
    events_weighted: u64,
    share: f64,
    #[serde(flatten)]
    span: SpanView,
    metrics: Metrics<'a>,
    #[serde(flatten)]
    counts: CountsView<'a>,
    example: Option<ExampleView<'a>>,
}

#[derive(Serialize)]
struct CountsView<'a> {
    flags: Names<'a>,
    users: Names<'a>,
    hosts: Names<'a>,
    databases: Names<'a>,
}

#[derive(Serialize)]
struct ExampleView<'a> {
    query: &'a str,
    query_time_s: Decimal,
    at: Option<String>,
    database: &'a str,
    complete: bool,
    paste: Vec<String>,
}

impl<'a> ClassView<'a> {
    fn of(class: &'a Class, total_time: u128) -> Self {
        let time = class.metric("query_time_s").map_or(0, |metric| metric.sum);
        let counts = &class.counts;
        Self {
            id: id_of(class.id),
            id32: id_of(class.id_high) + &id_of(class.id),
            fingerprint: &class.fingerprint,
            verb: class.verb(),
            events: class.events,
            events_weighted: class.events_weighted,
            share: share(time, total_time),
            span: SpanView::of(&class.span),
            metrics: Metrics(&class.metrics),
            counts: CountsView {
                flags: Names(&counts.flags),
                users: Names(&counts.users),
                hosts: Names(&counts.hosts),
                databases: Names(&counts.databases),
            },
            example: class.example.as_ref().map(ExampleView::of),
        }
    }
}

impl<'a> ExampleView<'a> {
    fn of(example: &'a Example) -> Self {
        Self {
            query: &example.query,
            query_time_s: seconds(example.query_time_us),
            at: example.at_us.map(iso),
            database: &example.database,
            complete: example.complete,
            paste: paste(example),
        }
    }
}

/// An object of names and how often each came.
struct Names<'a>(&'a [(Arc<str>, u64)]);

impl Serialize for Names<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, count)| (&**name, count)))
    }
}

/// An object of the metrics that have values.
struct Metrics<'a>(&'a [(Arc<str>, Metric)]);

impl Serialize for Metrics<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let metrics = self.0.iter().filter(|(_, metric)| metric.count > 0);
        serializer.collect_map(metrics.map(|(name, metric)| (&**name, MetricView::of(metric))))
    }
}

#[derive(Serialize)]
struct MetricView {
    count: u64,
    sum: Decimal,
    mean: f64,
    min: Decimal,
    max: Decimal,
    p50: Decimal,
    p95: Decimal,
    p99: Decimal,
    histogram: Vec<(Decimal, Decimal, u64)>,
}

impl MetricView {
    fn of(metric: &Metric) -> Self {
        let in_base = |value: u64| Decimal(value.into(), metric.decimals);
        let buckets = metric.histogram.buckets().into_iter();
        Self {
            count: metric.count,
            sum: Decimal(metric.sum, metric.decimals),
            mean: metric.mean(),
            min: in_base(metric.min),
            max: in_base(metric.max),
            p50: in_base(metric.percentile(0.5)),
            p95: in_base(metric.percentile(0.95)),
            p99: in_base(metric.percentile(0.99)),
            histogram: buckets
                .map(|(low, high, count)| (in_base(low), in_base(high), count))
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct WindowView<'a> {
    start: String,
    end: String,
    events: u64,
    query_time_s: Decimal,
    classes: Each<'a, WindowClass, WindowClassView>,
}

#[derive(Serialize)]
struct WindowClassView {
    id: String,
    events: u64,
    query_time_s: Decimal,
}

impl<'a> WindowView<'a> {
    fn of(window: &'a Window) -> Self {
        Self {
            start: iso(window.start_us),
            end: iso(window.end_us),
            events: window.events,
            query_time_s: seconds(window.query_time_us),
            classes: Each(&window.classes, WindowClassView::of),
        }
    }
}

impl WindowClassView {
    fn of(class: &WindowClass) -> Self {
        Self {
            id: id_of(class.id),
            events: class.events,
            query_time_s: seconds(class.query_time_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, Harmless);
        value.serialize(&mut serializer).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Without it a statement in a log could move the cursor of whoever looks at the digest.
    #[test]
    fn nothing_drives_the_terminal_and_nothing_is_lost() {
        let hostile = "a\"b\\c/\n\t\r\u{8}\u{c}\u{1b}[2J\u{9b}\u{7f}\u{0}\u{202e}\u{e0001}é😀";
        let text = written(&Names(&[(hostile.into(), 3), ("…".into(), 1)]));
        assert_eq!(text.chars().find(|c| drives_a_terminal(*c)), None);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, serde_json::json!({hostile: 3, "…": 1}));
        let escapes = r#""\u000d\u0008\u001b\u009b\u202e\udb40\udc01/""#;
        assert_eq!(written(&"\r\u{8}\u{1b}\u{9b}\u{202e}\u{e0001}/"), escapes);
    }

    #[test]
    fn numbers_have_all_their_digits() {
        let long = Decimal(9_007_199_254_740_993_000_001, 6);
        assert_eq!(written(&long), "9007199254740993.000001");
        assert_eq!(written(&Decimal(u128::MAX, 0)), u128::MAX.to_string());
        let floats = (1.5, 1.25e-5, f64::NAN, 1e16);
        assert_eq!(written(&floats), "[1.5,1.25e-5,null,1e16]");
    }
}
