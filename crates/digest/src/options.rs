//! The options of `mydyno-probe digest`, and what the engine is asked for.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, ValueEnum};

use super::select::{Limit, Order};
use super::time::{length_us, point_us};

const EXAMPLES: &str = "\
Examples:
  digest slow.log                              what took most of the time
  digest slow.log.1.gz slow.log --since 1h     several logs, the last hour
  digest slow.log --sort max --limit 5         the slowest single statements
  digest slow.log --group-by user              time by user, host or database
  digest slow.log --id 6D0A8180D749CC14        one class, with lines to paste
  digest slow.log --follow --new --duration 1m what the next minute brings
  xzcat slow.log.xz | digest -                 from standard input";

/// Gathers the statements of slow logs into classes.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Slow logs, plain or packed by gzip, zstd, xz or bzip2; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub filter: Filtering,
    #[command(flatten)]
    pub reading: Reading,
    #[command(flatten)]
    pub following: Following,
}

/// How the digest is printed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Print one JSON object on one line.
    #[arg(long)]
    pub json: bool,
    /// Largest first: total, mean, max, min, count, p50, p95, p99, lock, rows-examined, rows-sent;
    /// mysqldumpslow's t at l al r ar c; or METRIC:sum|mean|min|max|count|p50|p95|p99.
    #[arg(
        short,
        long,
        visible_alias = "order-by",
        value_name = "KEY",
        default_value = "total"
    )]
    pub sort: Order,
    /// Smallest first.
    #[arg(short, long)]
    pub reverse: bool,
    /// So many classes (0: all), as many as make up a share (95%), or whichever are fewer (95%:20).
    #[arg(short = 't', long, value_name = "N", default_value = "20")]
    pub limit: Limit,
    /// Show only the class of this id, of 16 or 32 hexadecimal digits; may be given again.
    #[arg(long, value_name = "ID", value_parser = class_id)]
    pub id: Vec<u64>,
    /// Columns of the text; without it the terminal's, COLUMNS of the environment, or 100.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(80..=1000))]
    pub width: Option<u16>,
}

/// Which events count.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Only events")]
pub struct Filtering {
    /// whose statement has this text, whatever its case.
    #[arg(short, long, value_name = "TEXT")]
    pub grep: Option<String>,
    /// of this user.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// from this host or address.
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// in this database.
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// from this time on: 2026-11-21, "2026-11-21 10:30:00" or 1h (ago).
    #[arg(long, value_name = "TIME", value_parser = point)]
    pub since: Option<i64>,
    /// before this time.
    #[arg(long, value_name = "TIME", value_parser = point)]
    pub until: Option<i64>,
    /// that took at least so long: 0.5 (seconds) or 10ms.
    #[arg(long, value_name = "TIME", default_value = "0", hide_default_value = true, value_parser = length_us)]
    pub min_time: u64,
}

/// How the log is read.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reading")]
pub struct Reading {
    /// Count by windows of this width too.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub window: Option<u64>,
    /// Make one class of all statements of a user, a host or a database.
    #[arg(long, value_name = "NAME", default_value = "fingerprint")]
    pub group_by: By,
    /// Replace the literals of the examples by ?.
    #[arg(long)]
    pub redact: bool,
    /// Make fingerprints as another tool makes them.
    #[arg(long, value_name = "TOOL")]
    pub compat: Option<Compat>,
    /// Read each plain file with so many threads; without it as many as there are cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

/// What the events of a class have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Fingerprint,
    User,
    Host,
    Database,
}

/// A name that the events of a class have in common, instead of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    User,
    Host,
    Database,
}

impl Group {
    /// The word for what the events of a class have in common.
    #[must_use]
    pub fn name(group: Option<Self>) -> &'static str {
        match group {
            None => "fingerprint",
            Some(Self::User) => "user",
            Some(Self::Host) => "host",
            Some(Self::Database) => "database",
        }
    }
}

/// A tool whose fingerprints are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Compat {
    /// pt-query-digest
    Pt,
}

/// How logs are followed.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Following")]
pub struct Following {
    /// Read on while the log grows, through rotation, until SIGINT or the duration's end; then print.
    #[arg(long)]
    pub follow: bool,
    /// Leave out what is in the log already.
    #[arg(long, requires = "follow")]
    pub new: bool,
    /// How long to follow.
    #[arg(long, value_name = "TIME", requires = "follow", value_parser = length)]
    pub duration: Option<Duration>,
    /// Print what came in each period of this length.
    #[arg(long, value_name = "TIME", requires = "follow", value_parser = length)]
    pub every: Option<Duration>,
}

impl Options {
    /// What the engine is asked for.
    ///
    /// # Errors
    /// Options that do not go together.
    pub fn config(&self) -> Result<Config, String> {
        let standard_input = self
            .files
            .iter()
            .filter(|file| file.as_os_str() == "-")
            .count();
        if self.following.follow && standard_input > 0 {
            return Err("-: standard input cannot be followed; leave out --follow".to_owned());
        }
        if standard_input > 1 {
            return Err("-: standard input is there once; name it once".to_owned());
        }
        let filter = &self.filter;
        if let (Some(since), Some(until)) = (filter.since, filter.until) {
            if since >= until {
                return Err("--since: is not before --until; swap them".to_owned());
            }
        }
        Ok(Config {
            compat_pt: self.reading.compat == Some(Compat::Pt),
            window_s: self.reading.window,
            redact: self.reading.redact,
            group: match self.reading.group_by {
                By::Fingerprint => None,
                By::User => Some(Group::User),
                By::Host => Some(Group::Host),
                By::Database => Some(Group::Database),
            },
            filter: Filter {
                text: filter.grep.clone(),
                user: filter.user.clone(),
                host: filter.host.clone(),
                database: filter.database.clone(),
                since_us: filter.since,
                until_us: filter.until,
                min_time_us: filter.min_time,
            },
            ..Config::default()
        })
    }

    /// How many threads read a plain file.
    #[must_use]
    pub fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.reading.threads.map_or_else(cores, usize::from)
    }
}

fn point(text: &str) -> Result<i64, String> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    point_us(text, i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}

fn length(text: &str) -> Result<Duration, String> {
    match length_us(text)? {
        0 => Err(format!("{text}: write a time longer than 0")),
        us => Ok(Duration::from_micros(us)),
    }
}

/// The last 16 digits of an id as any version of pt-query-digest writes it.
fn class_id(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let wrong = || format!("{text}: write the 16 or 32 hexadecimal digits of an id");
    if !matches!(digits.len(), 16 | 32) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    u64::from_str_radix(&digits[digits.len() - 16..], 16).map_err(|_| wrong())
}

/// A length in seconds without a fraction.
fn seconds(text: &str) -> Result<u64, String> {
    match length_us(text)? {
        us if us > 0 && us % 1_000_000 == 0 => Ok(us / 1_000_000),
        _ => Err(format!(
            "{text}: write seconds without a fraction, such as 10s or 1m"
        )),
    }
}

/// How the log is read and what is retained of it.
#[derive(Debug, Clone)]
pub struct Config {
    /// Fingerprints as pt-query-digest makes them, to the letter.
    pub compat_pt: bool,
    /// The width of a time window, in seconds; none: no windows.
    pub window_s: Option<u64>,
    pub filter: Filter,
    /// The most bytes of a class's slowest statement that are retained.
    pub keep_example_bytes: usize,
    /// The literals of the examples are replaced by `?`.
    pub redact: bool,
    /// Classes by a name; none: by the fingerprint.
    pub group: Option<Group>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            compat_pt: false,
            window_s: None,
            filter: Filter::default(),
            keep_example_bytes: 16 << 10,
            redact: false,
            group: None,
        }
    }
}

/// Which events are gathered; what is not given lets every event pass.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Bytes that the statement has in it, whatever their case.
    pub text: Option<String>,
    pub user: Option<String>,
    /// A host's name or address, as the log has it.
    pub host: Option<String>,
    pub database: Option<String>,
    /// From this time on, in microseconds since 1970; an event without a time does not pass.
    pub since_us: Option<i64>,
    /// Before this time, in microseconds since 1970; an event without a time does not pass.
    pub until_us: Option<i64>,
    pub min_time_us: u64,
}

impl Filter {
    /// Whether there is anything to ask of an event.
    #[must_use]
    pub fn active(&self) -> bool {
        self.text.is_some()
            || self.user.is_some()
            || self.host.is_some()
            || self.database.is_some()
            || self.since_us.is_some()
            || self.until_us.is_some()
            || self.min_time_us > 0
    }
}
