//! Any statement has one fingerprint, in both ways, whatever it is behind.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mydyno_digest::{Config, Digest, Engine};

const HEADER: &[u8] = b"# User@Host: a[a] @ localhost []\n# Query_time: 0.000001  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0\nSET timestamp=1;\n";

fuzz_target!(|statement: &[u8]| {
    for compat_pt in [false, true] {
        let digest = digest(statement, compat_pt);
        assert!(digest.summary.totals.events >= 1);
        for class in &digest.classes {
            assert!(
                class.fingerprint.len() <= 1024 + 3,
                "a fingerprint is cut to 1 KB"
            );
            if let Some(example) = &class.example {
                // U+FFFD takes three bytes where a byte was no UTF-8.
                assert!(example.query.len() <= 3 * Config::default().keep_example_bytes + 16);
            }
        }
    }
});

/// Twice the same statement, so that both the first sight and the known class are tried.
fn digest(statement: &[u8], compat_pt: bool) -> Digest {
    let mut engine = Engine::new(Config {
        compat_pt,
        ..Config::default()
    });
    for _ in 0..2 {
        engine.feed(HEADER);
        engine.feed(statement);
        engine.feed(b";\n");
    }
    engine.finish()
}
