//! Any bytes, cut anywhere: the digest is the one that they give in one piece.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mydyno_digest::{Config, Digest, Engine};

/// Options and cuts come from the first bytes, so that what is found can be replayed.
const HEAD: usize = 4;

fuzz_target!(|data: &[u8]| {
    let Some((head, log)) = data.split_at_checked(HEAD) else {
        return;
    };
    let config = Config {
        compat_pt: head[0] & 1 != 0,
        window_s: (head[0] & 2 != 0).then_some(1 + u64::from(head[0] >> 4)),
        redact: head[0] & 4 != 0,
        keep_example_bytes: usize::from(head[0] >> 3) * 8,
        ..Config::default()
    };
    let complete = digest(config.clone(), &[log]);
    // What is pending is looked at again after some KB only, so a cut near the start finds most.
    let cut = usize::from(u16::from_le_bytes([head[1], head[2]])) % (log.len() + 1);
    let (first, rest) = log.split_at(cut);
    let size = 1 + 64 * usize::from(head[3]);
    let pieces: Vec<_> = std::iter::once(first).chain(rest.chunks(size)).collect();
    let pieces = digest(config, &pieces);
    assert_eq!(format!("{complete:?}"), format!("{pieces:?}"));
    assert_eq!(complete.summary.bytes, log.len() as u64);
    assert_adds_up(&complete);
});

fn digest(config: Config, pieces: &[&[u8]]) -> Digest {
    let mut engine = Engine::new(config);
    for piece in pieces {
        engine.feed(piece);
    }
    engine.finish()
}

fn assert_adds_up(digest: &Digest) {
    let totals = &digest.summary.totals;
    let events: u64 = digest.classes.iter().map(|class| class.events).sum();
    assert_eq!(events, totals.events);
    let metrics = || {
        digest
            .classes
            .iter()
            .filter_map(|class| class.metric("query_time_s"))
    };
    assert_eq!(
        metrics().map(|metric| metric.sum).sum::<u128>(),
        totals.query_time_us
    );
    for (_, metric) in digest.classes.iter().flat_map(|class| &class.metrics) {
        assert!(metric.count > 0 && metric.min <= metric.max);
        assert!(metric.sum >= u128::from(metric.max));
    }
}
