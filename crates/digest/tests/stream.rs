//! The digest of a log is the same however the log is split, and nothing in a log stops it.

use mydyno_digest::result::{Class, Digest};
use mydyno_digest::{Config, Engine, Filter};
use proptest::prelude::*;

/// Pieces of logs: sound events, odd ones, and what only looks like one.
const PIECES: [&str; 35] = [
    "# Time: 2026-11-21T01:41:22.000001Z\n",
    "# Time: 261121  1:41:22\n",
    "# Time: 071015 21:43:52 # User@Host: a[a] @ h [10.0.0.1]\n# Query_time: 2  Lock_time: 0\n",
    "# User@Host: root[root] @ localhost []  Id:     8\n",
    "# User@Host: app[app] @ web [10.0.0.2]\n# Thread_id: 5  Schema: shop  QC_hit: No\n",
    "# Query_time: 0.000226  Lock_time: 0.000077 Rows_sent: 1  Rows_examined: 10\n",
    "# Query_time: 18446744073708.796870.000036  Lock_time: 0.1\n",
    "# Query_time: 1.5  Lock_time: 0.1  Rows_sent: 1  Rows_examined: 2\n# Full_scan: Yes  Filesort: No\n",
    "  Tmp_tables: 1  Tmp_disk_tables: 0\n",
    "# Log_slow_rate_type: query  Log_slow_rate_limit: 10\n",
    "#\n# explain: id\tselect_type\n#\n",
    "# Pages_read_time: 0.0123  Engine_time: 12.7423\n",
    "use shop;\n",
    "SET timestamp=1795225282;\n",
    "SET last_insert_id=1,insert_id=2,timestamp=1795225283;\n",
    "# administrator command: Quit;\n",
    "select * from t where id=1;\n",
    "SELECT a FROM t1 WHERE b IN (1,2,'c') -- it's;\n",
    "insert into t values (1,'a'),(2,'b\\'');\n",
    "select ';\n# User@Host: x[x] @ y []\n# Query_time: 9\nSET timestamp=1;\ndrop table t;\n';\n",
    "select /* ;\n# Time: 261121  1:41:22\n*/ 1;\n",
    "select 'never closed;\n",
    "begin select 1;\nselect `a;b`;\nend;\n",
    "/usr/sbin/mysqld, Version: 8.0.33 (x). started with:\nTcp port: 3306\nTime                 Id Command    Argument\n",
    "cut he/usr/sbin/mysqld, Version: 8 (x). started with:\nTcp port: 1\nTime\t\t Id Command\n",
    "use other;\nselect 2\r\n;\r\n",
    "\n\n",
    "\0\0\0",
    "junk\n",
    "'",
    "# no header\n",
    "# Q\n# T\n",
    ";\n",
    "select 0x1F, 1e5, .5, -3 union select 2 limit 5, 10;\n",
    "\u{e9}\u{1F600} = 'x';\n",
];

fn log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => (0..PIECES.len()).prop_map(|i| PIECES[i].as_bytes().to_vec()),
        6 => (0..4_usize).prop_map(|i| [PIECES[3], PIECES[5], PIECES[13], PIECES[16 + i]].concat().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn digest(log: &[u8], cuts: &[usize], config: &Config) -> Digest {
    let mut engine = Engine::new(config.clone());
    let mut from = 0;
    for cut in cuts {
        let to = (*cut).clamp(from, log.len());
        engine.feed(&log[from..to]);
        from = to;
    }
    engine.feed(&log[from..]);
    engine.finish()
}

/// All results of a digest, as text.
fn as_text(digest: &Digest) -> String {
    let class = |class: &Class| {
        let metrics: Vec<_> = class
            .metrics
            .iter()
            .map(|(name, metric)| {
                let buckets = metric.histogram.buckets();
                format!(
                    "{name} {} {} {} {} {} {buckets:?}",
                    metric.decimals, metric.count, metric.sum, metric.min, metric.max
                )
            })
            .collect();
        let Class {
            id,
            fingerprint,
            events,
            events_weighted,
            span,
            counts,
            example,
            ..
        } = class;
        format!("{id:x} {fingerprint} {events} {events_weighted} {span:?} {metrics:#?} {counts:?} {example:?}")
    };
    let classes: Vec<_> = digest.classes.iter().map(class).collect();
    format!("{:#?}\n{classes:#?}\n{:#?}", digest.summary, digest.windows)
}

fn configs() -> [Config; 3] {
    let filter = Filter {
        database: Some("shop".into()),
        text: Some("SELECT".into()),
        ..Filter::default()
    };
    [
        Config {
            window_s: Some(60),
            ..Config::default()
        },
        Config {
            compat_pt: true,
            redact: true,
            ..Config::default()
        },
        Config {
            filter,
            ..Config::default()
        },
    ]
}

proptest! {
    #[test]
    fn any_split_gives_the_same(log in log(), mut cuts in prop::collection::vec(0..4000_usize, 0..12)) {
        cuts.sort_unstable();
        for config in configs() {
            let complete = as_text(&digest(&log, &[], &config));
            prop_assert_eq!(&as_text(&digest(&log, &cuts, &config)), &complete);
        }
    }

    #[test]
    fn byte_by_byte_gives_the_same(log in log()) {
        let each: Vec<usize> = (0..log.len()).collect();
        let config = &configs()[0];
        prop_assert_eq!(as_text(&digest(&log, &each, config)), as_text(&digest(&log, &[], config)));
    }

    #[test]
    fn a_take_in_between_loses_nothing(log in log(), cut in 0..4000_usize) {
        let mut engine = Engine::new(Config::default());
        engine.feed(&log[..cut.min(log.len())]);
        let mut both = engine.take();
        engine.feed(&log[cut.min(log.len())..]);
        both.merge(engine.finish());
        let complete = digest(&log, &[], &Config::default());
        prop_assert_eq!(both.summary, complete.summary);
        prop_assert_eq!(both.classes.len(), complete.classes.len());
    }

    #[test]
    fn every_byte_is_counted_once(log in log()) {
        let digest = digest(&log, &[], &Config::default());
        prop_assert_eq!(digest.summary.bytes, log.len() as u64);
        prop_assert_eq!(digest.classes.iter().map(|class| class.events).sum::<u64>(), digest.summary.totals.events);
    }
}

/// A statement too long to be retained, with a literal of `size` bytes and two forged headers in it.
fn long(size: usize) -> Vec<u8> {
    let header = "# User@Host: root[root] @ localhost []\n# Query_time: 0.5  Lock_time: 0\nSET timestamp=5;\n";
    let forged = "\n# User@Host: evil[evil] @ x []\n# Query_time: 9\ndrop table t;\n";
    let mut log = format!("{header}insert into t values (1, '").into_bytes();
    log.resize(log.len() + size / 2, b'x');
    log.extend_from_slice(forged.as_bytes());
    log.resize(log.len() + size / 2, b'y');
    log.extend_from_slice(forged.as_bytes());
    log.extend_from_slice(format!("');\n{header}select 1;\n").as_bytes());
    log
}

#[test]
fn a_long_statement_is_one_event_however_it_is_split() {
    for size in [100_000, 1_048_000, 3_000_000, 12_000_000] {
        let log = long(size);
        let complete = digest(&log, &[], &Config::default());
        let totals = complete.summary.totals;
        assert_eq!(
            (totals.events, totals.query_time_us),
            (2, 1_000_000),
            "{size}"
        );
        assert_eq!(complete.summary.oddities.forged_headers, 2, "{size}");
        for step in [4093, 70_001, 1 << 20] {
            let cuts: Vec<usize> = (0..log.len()).step_by(step).collect();
            assert_eq!(
                as_text(&digest(&log, &cuts, &Config::default())),
                as_text(&complete),
                "{size} {step}"
            );
        }
    }
}

#[test]
fn an_empty_log_is_a_digest_of_nothing() {
    let digest = digest(b"", &[], &Config::default());
    assert_eq!((digest.summary.totals.events, digest.classes.len()), (0, 0));
}

/// What fuzzing once found, without the bytes that chose options and cuts.
#[test]
fn what_was_found_once_is_the_same_at_every_cut() {
    const HEAD: usize = 4;
    let found = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/found/digest_feed");
    let mut logs = 0;
    for file in std::fs::read_dir(found).expect("what was found") {
        let file = file.expect("a file").path();
        let log = std::fs::read(&file).expect("a log").split_off(HEAD);
        for config in configs() {
            let complete = digest(&log, &[], &config);
            let sums = complete
                .classes
                .iter()
                .filter_map(|class| class.metric("query_time_s"));
            assert_eq!(
                sums.map(|metric| metric.sum).sum::<u128>(),
                complete.summary.totals.query_time_us,
                "{file:?}"
            );
            for cut in 0..=log.len() {
                let cut_once = as_text(&digest(&log, &[cut], &config));
                assert_eq!(cut_once, as_text(&complete), "{file:?} {cut}");
            }
        }
        logs += 1;
    }
    assert!(logs > 0);
}
