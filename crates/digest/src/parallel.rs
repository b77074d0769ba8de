//! A file digested by several threads, with the answer that one would give.
//!
//! The file is cut into segments.  A thread starts a segment at the first line that looks like a
//! header behind a finished statement.  If it turns out that the segment before ends elsewhere (the
//! line was part of a literal, for example), or that an event needed what only the text before it states,
//! the segment is read again from the right place.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::Arc;
use std::{io, thread};

use memchr::memmem;

use super::behind::{header_starts, Known};
use super::engine::Engine;
use super::options::Config;
use super::result::Digest;

const LARGEST: u64 = 32 << 20;
const SMALLEST: u64 = 4 << 20;
const CHUNK: usize = 256 << 10;
/// With less room than this, one engine might have had none.
const SPARE: i64 = 1 << 20;
/// Before the start of a segment, what shows that a statement ended there.
const BEFORE: u64 = 8;

/// A digest, and why what it is of was not read to its end.
pub type Done = (Digest, Option<io::Error>);

/// The digest of a plain file, of what comes before the first place that cannot be read.
///
/// # Errors
/// When the file cannot be opened.
pub fn digest_file(path: &Path, threads: usize, config: &Config) -> io::Result<Done> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let share = length / (threads.max(1) as u64 * 8);
    let segment = share.clamp(SMALLEST, LARGEST);
    Ok(digest_segments(&file, length, threads, segment, config))
}

/// The digest of a file in segments of that size.
pub(super) fn digest_segments(
    file: &File,
    length: u64,
    threads: usize,
    segment: u64,
    config: &Config,
) -> Done {
    let unredacted = Config {
        redact: false,
        ..config.clone()
    };
    let log = Log {
        file,
        length,
        segment,
        config: &unredacted,
    };
    let parts = if threads > 1 && length > segment {
        log.parts(threads)
    } else {
        None
    };
    let (mut digest, broken) = parts.unwrap_or_else(|| {
        let all = log.read(Engine::new(unredacted.clone()), length);
        (all.digest, all.broken)
    });
    if config.redact {
        digest.redact();
    }
    (digest, broken)
}

/// A file of known length, cut into segments.
#[derive(Debug, Clone, Copy)]
struct Log<'a> {
    file: &'a File,
    length: u64,
    segment: u64,
    config: &'a Config,
}

/// What was read of one segment, and what it leaves to the next.
#[derive(Debug)]
struct Part {
    start: u64,
    end: u64,
    digest: Digest,
    database: Option<Arc<str>>,
    stamp_us: Option<i64>,
    guessed: bool,
    /// The bytes left for what grows.
    room: i64,
    /// Why it ends before the segment does.
    broken: Option<io::Error>,
}

type Sent = (u64, io::Result<Option<Part>>);

impl Log<'_> {
    /// Reads all segments with that many threads.
    fn parts(self, threads: usize) -> Option<Done> {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(0);
            for _ in 0..threads {
                let (sender, next, stop) = (sender.clone(), &next, &stop);
                scope.spawn(move || self.work(next, stop, &sender));
            }
            drop(sender);
            let digest = self.join(&receiver);
            stop.store(true, Ordering::Relaxed);
            drop(receiver);
            digest
        })
    }

    /// Reads segments until there are none.
    fn work(self, next: &AtomicU64, stop: &AtomicBool, sender: &SyncSender<Sent>) {
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number * self.segment >= self.length
                || sender.send((number, self.part(number))).is_err()
            {
                return;
            }
        }
    }

    /// Puts the segments together, in their order; none if there is not enough room for that.
    fn join(self, receiver: &Receiver<Sent>) -> Option<Done> {
        let mut waiting = BTreeMap::new();
        let mut all: Option<Part> = None;
        let mut number = 0;
        for (sent, part) in receiver {
            waiting.insert(sent, part);
            while let Some(part) = waiting.remove(&number) {
                number += 1;
                let part = match part {
                    Ok(part) => part,
                    Err(error) => {
                        return Some((all.map(|all| all.digest).unwrap_or_default(), Some(error)));
                    }
                };
                let so_far = self.append(all, part, number * self.segment);
                if so_far.broken.is_some() {
                    return Some((so_far.digest, so_far.broken));
                }
                // Without room the order of events matters, and only one engine keeps to it.
                if so_far.room < SPARE {
                    return None;
                }
                all = Some(so_far);
            }
        }
        Some((all.map(|all| all.digest).unwrap_or_default(), None))
    }

    fn append(self, all: Option<Part>, part: Option<Part>, limit: u64) -> Part {
        let Some(mut all) = all else {
            return part.unwrap_or_else(|| self.read(Engine::new(self.config.clone()), limit));
        };
        let mut part = match part {
            Some(part) if part.start == all.end && !part.guessed => part,
            _ if all.end >= limit.min(self.length) => return all,
            _ => self.read(self.engine_behind(&all), limit),
        };
        if let Some(database) = &all.database {
            part.digest.inherit(database);
        }
        let full = part.room < SPARE;
        all.digest.merge_within(part.digest, &mut all.room);
        all.end = part.end;
        if full {
            all.room = 0;
        }
        all.database = part.database.or(all.database);
        all.stamp_us = part.stamp_us.or(all.stamp_us);
        all.broken = part.broken;
        all
    }

    /// An engine that goes on where a part ended.
    fn engine_behind(self, part: &Part) -> Engine {
        let mut engine = Engine::within(self.config.clone(), part.end);
        let carry = &mut engine.reader.carry;
        carry.unknown = false;
        carry.stamp_us = part.stamp_us;
        if let Some(database) = &part.database {
            carry.database = engine.reader.names.number(database.as_bytes());
        }
        engine
    }

    /// Reads a segment from where it seems to begin; none if it does not seem to.
    fn part(self, number: u64) -> io::Result<Option<Part>> {
        let (from, limit) = (number * self.segment, (number + 1) * self.segment);
        if number == 0 {
            return Ok(Some(self.read(Engine::new(self.config.clone()), limit)));
        }
        let start = self.beginning(from, limit.min(self.length))?;
        Ok(start.map(|start| self.read(Engine::within(self.config.clone(), start), limit)))
    }

    /// Reads the events that begin before `limit`, or those before a place that cannot be read.
    fn read(self, mut engine: Engine, limit: u64) -> Part {
        let start = engine.position();
        let (mut at, mut broken) = (start, None);
        while at < self.length && !engine.is_past(limit) {
            let space = engine.space(CHUNK);
            let most = space
                .len()
                .min(usize::try_from(self.length - at).unwrap_or(usize::MAX));
            broken = match self.file.read_at(&mut space[..most], at) {
                Ok(0) => Some(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the file became shorter while it was read",
                )),
                Err(error) => Some(error),
                Ok(read) => {
                    engine.filled(read);
                    at += read as u64;
                    None
                }
            };
            if broken.is_some() {
                break;
            }
            engine.run(at == self.length, limit);
        }
        engine.run(at == self.length || broken.is_some(), limit);
        let carry = engine.reader.carry;
        Part {
            start,
            end: engine.position(),
            database: engine.reader.database(),
            stamp_us: carry.stamp_us,
            guessed: engine.guessed(),
            room: engine.room(),
            broken,
            digest: engine.done(),
        }
    }

    /// The first place from `from` on where a header stands behind a finished statement.
    fn beginning(self, from: u64, limit: u64) -> io::Result<Option<u64>> {
        let mut at = from - BEFORE;
        let mut text = vec![0; CHUNK];
        while at < limit {
            let read = self.file.read_at(&mut text, at)?;
            if read == 0 {
                return Ok(None); // the file became shorter
            }
            let found = memmem::find_iter(&text[..read], b"\n# ")
                .map(|newline| newline + 1)
                .find(|start| {
                    let before = text[..*start].trim_ascii_end();
                    at + *start as u64 >= from
                        && before.ends_with(b";")
                        && header_starts(&text[*start..read], true) == Known::Yes
                });
            if let Some(start) = found.map(|start| at + start as u64) {
                return Ok((start < limit).then_some(start));
            }
            // What a line at the end begins with is looked at again.
            at += (read.saturating_sub(64)).max(1) as u64;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::options::Filter;

    // Several threads against one, on logs that are hard to cut.
    const HEADER: &str = "# User@Host: a[a] @ b []\n# Query_time: 0.5  Lock_time: 0.1\n";
    const STATEMENTS: [&str; 9] = [
        "select 1;\n",
        "use shop;\nSET timestamp=7;\nselect * from t where a in (1,2);\n",
        "SET timestamp=9;\ninsert into t values (1,'a'),(2,'b');\n",
        "select ';\n# User@Host: x[x] @ y []\n# Query_time: 9\ndrop table t;\n', 1;\n",
        "/* ;\n# Time: 261121  1:41:22\n*/ select 3;\n",
        "select 'never closed;\n",
        "use other;\nselect 2;\n\n\0\0",
        "# administrator command: Quit;\n",
        "select 1;\n/usr/sbin/mysqld, Version: 8 (x). started with:\nTcp port: 1\n",
    ];

    fn event() -> impl Strategy<Value = String> {
        let time = prop_oneof![
            3 => Just(""),
            1 => Just("# Time: 261121  1:41:22\n"),
            1 => Just("# Time: 2026-11-21T01:41:22.000001Z\n"),
        ];
        (time, 0..STATEMENTS.len()).prop_map(|(time, i)| format!("{time}{HEADER}{}", STATEMENTS[i]))
    }

    fn as_text(digest: &Digest) -> String {
        let classes = digest.classes.iter().map(|class| {
            let metrics: Vec<_> = class
                .metrics
                .iter()
                .map(|(name, metric)| {
                    (
                        name,
                        metric.count,
                        metric.sum,
                        metric.min,
                        metric.max,
                        metric.histogram.buckets(),
                    )
                })
                .collect();
            format!(
                "{} {} {:?} {:?} {:?} {metrics:?}",
                class.fingerprint, class.events, class.span, class.counts, class.example
            )
        });
        format!(
            "{:#?}\n{:#?}\n{:#?}",
            digest.summary,
            classes.collect::<Vec<_>>(),
            digest.windows
        )
    }

    proptest! {
        #[test]
        fn several_threads_give_the_same_result_as_one(
            events in prop::collection::vec(event(), 0..80),
            segment in 100..2000_u64,
            threads in 2..4_usize,
            filtered in any::<bool>(),
        ) {
            let path = std::env::temp_dir().join(format!("digest-{}-{:?}", std::process::id(), thread::current().id()));
            let log = events.concat();
            std::fs::write(&path, &log).unwrap();
            let database = filtered.then(|| "shop".to_owned());
            let filter = Filter { database, ..Filter::default() };
            let config = Config { filter, window_s: Some(60), ..Config::default() };
            let file = File::open(&path).unwrap();
            let length = log.len() as u64;
            let several = digest_segments(&file, length, threads, segment, &config).0;
            let mut one = Engine::new(config);
            one.feed(log.as_bytes());
            prop_assert_eq!(as_text(&several), as_text(&one.finish()));
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_statement_may_be_longer_than_a_segment() {
        let statement = format!(
            "{HEADER}insert into t values ('{}');\n",
            "x".repeat(5 << 20)
        );
        let log = format!("{HEADER}select 1;\n{statement}{HEADER}select 2;\n");
        let path = std::env::temp_dir().join(format!("digest-long-{}", std::process::id()));
        std::fs::write(&path, &log).unwrap();
        let file = File::open(&path).unwrap();
        let config = Config::default();
        let several = digest_segments(&file, log.len() as u64, 2, 1 << 20, &config).0;
        let mut one = Engine::new(config);
        one.feed(log.as_bytes());
        assert_eq!(several.summary.totals.events, 3);
        assert_eq!(as_text(&several), as_text(&one.finish()));
        std::fs::remove_file(&path).unwrap();
    }

    /// Byte by byte up to the length that it had, the search would take days.
    #[test]
    fn no_event_begins_behind_the_end_of_a_file_that_became_shorter() {
        let path = std::env::temp_dir().join(format!("digest-short-{}", std::process::id()));
        std::fs::write(&path, HEADER).unwrap();
        let log = Log {
            file: &File::open(&path).unwrap(),
            length: 1 << 60,
            segment: 1 << 59,
            config: &Config::default(),
        };
        assert_eq!(log.beginning(1 << 59, 1 << 60).unwrap(), None);
        std::fs::remove_file(&path).unwrap();
    }

    /// A log that is copied and truncated while it is read.
    #[test]
    fn what_comes_before_the_end_of_a_file_that_became_shorter_is_counted() {
        let path = std::env::temp_dir().join(format!("digest-cut-{}", std::process::id()));
        let log = format!("{HEADER}select 1;\n").repeat(40);
        std::fs::write(&path, &log).unwrap();
        let (file, had) = (File::open(&path).unwrap(), log.len() as u64 * 2);
        for threads in [1, 3] {
            let (digest, broken) = digest_segments(&file, had, threads, 999, &Config::default());
            assert_eq!(digest.summary.totals.events, 40, "{threads} threads");
            assert!(broken.unwrap().to_string().contains("became shorter"));
        }
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_missing_file_is_an_error() {
        assert!(digest_file(Path::new("/nowhere"), 2, &Config::default()).is_err());
    }
}
