//! Records in any order, cut anywhere, damaged.

use super::*;
use proptest::prelude::*;

fn lease() -> Lease {
    let text = r#"{"id": "a-1", "host": "h", "who": "w", "why": "y", "seconds": 60,
        "trial": [{"kind": "value", "place": "/proc/sys/x", "before": "1", "wanted": "2"}],
        "stored": []}"#;
    serde_json::from_str(text).unwrap()
}

fn opened() -> Held {
    Held::new(lease(), "boot".into(), 100, 1)
}

fn entry_of(n: u8) -> Entry {
    match n {
        0 => Entry::Intent { n: 0 },
        1 => Entry::Landed {
            n: 0,
            value: Some("2".into()),
            along: BTreeMap::new(),
        },
        2 => Entry::Trial { at: 101 },
        3 => Entry::Confirmed {
            at: 102,
            who: "w".into(),
        },
        _ => Entry::Reverting {
            at: 102,
            why: "w".into(),
        },
    }
}

#[test]
fn of_two_decisions_the_first_one_counts_in_any_order_of_entries() {
    for all in 0..5_u32.pow(6) {
        let mut held = opened();
        let mut decided = None;
        for step in 0..6 {
            let number = u8::try_from(all / 5_u32.pow(step) % 5).unwrap();
            let may_confirm = held.state == State::Trial;
            held.take(entry_of(number));
            match number {
                3 if may_confirm && decided.is_none() => decided = Some(State::Confirmed),
                4 if decided.is_none() => decided = Some(State::Reverting),
                _ => {}
            }
            if let Some(state) = decided {
                assert_eq!(held.state, state, "{all} at {step}");
            }
        }
    }
}

#[test]
fn what_has_no_outcome_may_have_been_changed_by_us() {
    let change = &lease().trial[0];
    let landed = |sure, value: &str| Landed {
        sure,
        value: Some(value.to_owned()),
        along: BTreeMap::new(),
    };
    assert!(!change.ours(Some("3"), None));
    assert!(change.ours(Some("3"), Some(&landed(false, ""))));
    assert!(!change.ours(Some("3"), Some(&landed(true, "2"))));
    assert!(
        change.ours(Some("4"), Some(&landed(true, "4"))),
        "a rounded value"
    );
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let folder = std::env::temp_dir().join(format!("mydyno-lease-{}", std::process::id()));
    fs::DirBuilder::new().mode(0o755).create(&folder).unwrap();
    assert!(Leases::open(&folder).is_err());
    fs::remove_dir(&folder).unwrap();
}

#[test]
fn leases_are_in_the_order_of_the_hosts_clock() {
    let folder = std::env::temp_dir().join(format!("mydyno-order-{}", std::process::id()));
    let leases = Leases::open(&folder).unwrap();
    // the second one was asked for by a host whose clock is behind
    // of an earlier version, then one of this one, then one after the clock has stepped back
    for (id, at, order) in [
        ("20260102-1", 9, 0),
        ("20260101-1", 5, 1),
        ("20260101-2", 2, 2),
    ] {
        let mut one = lease();
        one.id = id.into();
        let open = Entry::Open {
            lease: Box::new(one),
            boot: "b".into(),
            at,
            order,
        };
        leases.create(id, &open).unwrap();
    }
    let all = leases.all().unwrap();
    let ids: Vec<&str> = all.iter().map(|held| held.lease.id.as_str()).collect();
    assert_eq!(ids, ["20260102-1", "20260101-1", "20260101-2"]);
    leases.remove().unwrap();
}

proptest! {
    #[test]
    fn a_file_cut_anywhere_is_the_lease_of_its_complete_lines(cut in 0_usize..600) {
        let entries = [
            Entry::Open { lease: Box::new(lease()), boot: "b".into(), at: 1, order: 1 },
            entry_of(0), entry_of(1), entry_of(2), entry_of(3),
        ];
        let text: Vec<u8> = entries.iter().flat_map(line).collect();
        let cut = cut.min(text.len());
        let complete = text[..cut].split(|b| *b == b'\n').count() - 1;
        let found = folded(&text[..cut]);
        prop_assert_eq!(found.is_some(), complete > 0);
        if let Some(held) = found {
            let state = match complete { 1..=3 => State::Open, 4 => State::Trial, _ => State::Confirmed };
            prop_assert_eq!(held.state, state);
        }
    }

    #[test]
    fn a_damaged_line_is_passed_over(at in 0_usize..200, with in any::<u8>()) {
        let mut text: Vec<u8> = line(&Entry::Open {
            lease: Box::new(lease()), boot: "b".into(), at: 1, order: 1,
        });
        let first = text.len();
        text.extend(line(&entry_of(2)));
        let at = first + at % (text.len() - first - 1);
        prop_assume!(text[at] != with && with != b'\n');
        text[at] = with;
        prop_assert_eq!(folded(&text).unwrap().state, State::Open);
    }
}
