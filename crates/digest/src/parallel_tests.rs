//! Several threads against one, on logs that are hard to cut.

use std::fs::File;
use std::path::Path;
use std::thread;

use super::config::{Config, Filter};
use super::engine::Engine;
use super::parallel::{digest_file, digest_segments};
use super::result::Digest;
use proptest::prelude::*;

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

fn said(digest: &Digest) -> String {
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
    fn several_threads_say_what_one_says(
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
        let several = digest_segments(&file, length, threads, segment, &config).unwrap();
        let mut one = Engine::new(config);
        one.feed(log.as_bytes());
        prop_assert_eq!(said(&several), said(&one.finish()));
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
    let several = digest_segments(&file, log.len() as u64, 2, 1 << 20, &config).unwrap();
    let mut one = Engine::new(config);
    one.feed(log.as_bytes());
    assert_eq!(several.summary.totals.events, 3);
    assert_eq!(said(&several), said(&one.finish()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_missing_file_is_an_error() {
    assert!(digest_file(Path::new("/nowhere"), 2, &Config::default()).is_err());
}
