//! What is printed: exact JSON, text within its width, and nothing that drives a terminal.

use std::process::Stdio;

use serde_json::{json, Value};

use crate::program::{command, json, run, run_on, text, Place, LOG};

#[test]
fn json_has_every_field_and_exact_totals() {
    let place = Place::new();
    let log = place.file("slow.log", LOG);
    let digest = json(run(&["--json"], &[&log]));
    let summary = &digest["summary"];
    assert_eq!(digest["digest"], json!(1));
    assert_eq!(summary["files"], json!([{"name": log, "bytes": LOG.len()}]));
    let totals = [
        "events",
        "events_weighted",
        "query_time_s",
        "rows_sent",
        "rows_examined",
    ];
    let found: Vec<&Value> = totals.iter().map(|name| &summary[name]).collect();
    assert_eq!(json!(found), json!([3, 3, 2.400_007, 4, 40]));
    assert_eq!(summary["first_seen"], json!("2026-11-21T01:41:22.000001Z"));
    let class = &digest["classes"][1];
    assert_eq!(class["fingerprint"], json!("select c from item where id=?"));
    assert_eq!(class["verb"], json!("select"));
    assert_eq!(class["users"], json!({"app": 2}));
    assert_eq!(class["databases"], json!({"shop": 2}));
    let time = &class["metrics"]["query_time_s"];
    assert_eq!(
        json!([time["sum"], time["min"], time["max"]]),
        json!([0.400_007, 0.1, 0.300_007])
    );
    assert_eq!(time["p99"], time["max"], "the last rank is exact");
    assert_eq!(
        class["example"]["query"],
        json!("SELECT c FROM item WHERE id=22")
    );
    assert_eq!(class["example"]["at"], json!("2026-11-21T01:41:23.000000Z"));
}

#[test]
fn an_id_is_that_of_other_tools() {
    // By md5sum: the last 16 digits, in upper case.
    let digest = json(run_on(&["--json", "--sort=count"], LOG.as_bytes()));
    assert_eq!(digest["classes"][0]["id"], json!("E199401B87FC8B88"));
}

#[test]
fn large_sums_stay_exact() {
    let event = |seconds: &str| {
        format!("# Query_time: {seconds}  Lock_time: 0 Rows_sent: 0  Rows_examined: 0\nDO 1;\n")
    };
    let log = event("99999999.000001").repeat(200) + &event("0.000002");
    let text = text(run_on(&["--json"], log.as_bytes()));
    assert!(
        text.contains("\"query_time_s\":19999999800.000202,"),
        "{text}"
    );
}

#[test]
fn an_empty_log_is_a_digest_of_nothing() {
    let output = run_on(&["--json"], b"");
    assert!(output.status.success(), "{output:?}");
    let digest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(digest["summary"]["events"], json!(0));
    assert_eq!(digest["summary"]["query_time_s"], json!(0.0));
    assert_eq!(digest["summary"]["first_seen"], Value::Null);
    assert_eq!(
        (&digest["classes"], &digest["windows"]),
        (&json!([]), &json!([]))
    );
    let output = run_on(&[], b"");
    assert!(String::from_utf8_lossy(&output.stdout).contains("0 events, 0 classes"));
}

#[test]
fn classes_are_sorted_limited_and_filtered() {
    let verbs = |words: &[&str]| -> Vec<String> {
        let digest = json(run_on(&[words, &["--json"]].concat(), LOG.as_bytes()));
        let classes = digest["classes"].as_array().unwrap();
        classes
            .iter()
            .map(|class| class["verb"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(verbs(&[]), ["update", "select"]);
    assert_eq!(verbs(&["-s", "c", "-t", "1"]), ["select"]);
    assert_eq!(verbs(&["-r", "--limit", "1"]), ["select"]);
    assert_eq!(
        verbs(&["--order-by", "Rows_examined:sum", "--limit", "95%:20"]),
        ["select"]
    );
    assert_eq!(
        verbs(&["--limit", "5", "--limit", "1"]),
        ["update"],
        "the last word counts"
    );
    for filter in [
        ["-g", "FROM item"],
        ["--user", "app"],
        ["--until", "2026-11-21 01:42"],
    ] {
        assert_eq!(verbs(&filter), ["select"], "{filter:?}");
    }
    for filter in [
        ["--min-time", "1"],
        ["--since", "2026-11-21T02:42:30+01:00"],
        ["--host", "localhost"],
    ] {
        assert_eq!(verbs(&filter), ["update"], "{filter:?}");
    }
    assert_eq!(verbs(&["--since", "1000d", "--database", "none"]), [""; 0]);
    let summary = &json(run_on(&["--json", "--user=app"], LOG.as_bytes()))["summary"];
    assert_eq!(
        (&summary["filtered"], &summary["events"]),
        (&json!(1), &json!(2))
    );
}

/// Without it all later events are lost to the statement before the line.
#[test]
fn an_unknown_line_between_events_ends_no_header() {
    let event = |name: &str| format!("# Query_time: 1.0  Lock_time: 0.0\nselect {name};\n");
    for unknown in ["# Weird: 5\n", "# Weird\n# Odd: a b\n", "# weird\r\n"] {
        let log: String = ["a", "b", "c", "d"].map(event).join(unknown);
        let found = json(run_on(&["--json"], log.as_bytes()));
        assert_eq!(found["summary"]["events"], json!(4), "{unknown}");
        assert_eq!(found["summary"]["classes"], json!(4), "{unknown}");
        let timed = log.replace(
            "# Query_time",
            "# Time: 2026-11-21T01:41:22Z\n# User@Host: a[a] @ b []\n# Query_time",
        );
        let found = json(run_on(&["--json"], timed.as_bytes()));
        let summary = &found["summary"];
        assert_eq!(summary["events"], json!(4), "{unknown}");
        assert!(
            summary["oddities"]["unknown_lines"].as_u64() > Some(0),
            "{found}"
        );
        let words = text(run_on(&[], timed.as_bytes()));
        assert!(words.contains("# line"), "{words}");
    }
    let comment = format!("{}# a comment\nselect 2;\n{}", event("1"), event("3"));
    assert_eq!(
        json(run_on(&["--json"], comment.as_bytes()))["summary"]["events"],
        json!(2)
    );
}

#[test]
fn ids_of_both_lengths_are_shown_and_taken() {
    let long = "0xA68D16A40945BEE0E199401B87FC8B88";
    for id in ["E199401B87FC8B88", "0xe199401b87fc8b88", long] {
        let found = json(run_on(&["--json", "--id", id], LOG.as_bytes()));
        assert_eq!(found["classes"].as_array().unwrap().len(), 1, "{id}");
        assert_eq!(found["classes"][0]["id"], json!("E199401B87FC8B88"));
        assert_eq!(found["summary"]["classes"], json!(2));
    }
    let found = json(run_on(&["--json"], LOG.as_bytes()));
    let id32 = found["classes"][1]["id32"].as_str().unwrap();
    assert!(
        id32.len() == 32 && id32.ends_with("E199401B87FC8B88"),
        "{id32}"
    );
    assert!(text(run_on(&[], LOG.as_bytes())).contains(id32));
}

#[test]
fn events_are_grouped_by_user_host_or_database() {
    let groups = |by: &str| -> Vec<(String, Value, Value)> {
        let words = format!("--group-by={by}");
        let found = json(run_on(&["--json", &words], LOG.as_bytes()));
        assert_eq!(found["group_by"], json!(by));
        let classes = found["classes"].as_array().unwrap();
        let one = |class: &Value| {
            let sum = class["metrics"]["query_time_s"]["sum"].clone();
            (
                class["fingerprint"].as_str().unwrap().to_owned(),
                class["events"].clone(),
                sum,
            )
        };
        classes.iter().map(one).collect()
    };
    let group = |name: &str, events: u64, sum: f64| (name.to_owned(), json!(events), json!(sum));
    assert_eq!(
        groups("user"),
        [group("root", 1, 2.0), group("app", 2, 0.400_007)]
    );
    assert_eq!(groups("host").len(), 3);
    assert_eq!(groups("database"), [group("shop", 3, 2.400_007)]);
    assert!(text(run_on(&["--group-by=user"], LOG.as_bytes())).contains("p99  user\n"));
}

#[test]
fn a_statement_is_complete_and_folded_only_on_request() {
    let words = (0..400)
        .map(|n| format!("column_{n}, "))
        .collect::<Vec<_>>()
        .concat();
    let log = format!("# Query_time: 1\nselect {words}z from item where a='b';\n");
    let complete = format!("  select {words}z from item where a='b'\n");
    assert!(text(run_on(&[], log.as_bytes())).contains(&complete));
    let folded = text(run_on(&["--width=90"], log.as_bytes()));
    assert!(
        !folded.contains(&complete) && folded.contains("column_399, z"),
        "{folded}"
    );
    assert!(
        folded
            .lines()
            .all(|line| line.starts_with("EXPLAIN") || line.chars().count() <= 90),
        "{folded}"
    );
    let found = json(run_on(&["--json"], LOG.as_bytes()));
    let paste = json!([
        "USE `shop`;",
        "SHOW CREATE TABLE `item`\\G",
        "EXPLAIN SELECT c FROM item WHERE id=22\\G"
    ]);
    assert_eq!(found["classes"][1]["example"]["paste"], paste);
    let redacted = json(run_on(&["--json", "--redact"], LOG.as_bytes()));
    assert_eq!(redacted["classes"][1]["example"]["complete"], json!(false));
}

#[test]
fn redacted_examples_have_no_literals() {
    let text = text(run_on(&["--json", "--redact"], LOG.as_bytes()));
    assert!(!text.contains("31m"), "{text}");
    assert!(
        text.to_lowercase()
            .contains("\"query\":\"update item set c=? where id=?\""),
        "{text}"
    );
}

#[test]
fn text_fits_and_drives_no_terminal() {
    for width in [80, 100, 132] {
        let words = [format!("--width={width}"), "--window=60s".to_owned()];
        let found = text(run_on(&[&words[0], &words[1]], LOG.as_bytes()));
        for line in found.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
            assert!(!line.contains(char::is_control), "{line:?}");
        }
        for part in [
            "3 events, 2 classes",
            "UPDATE item SET c='x\\x1b[31m'",
            "users     app 2",
            "83.3 %",
        ] {
            assert!(found.contains(part), "{part} is missing in:\n{found}");
        }
    }
}

#[test]
fn json_drives_no_terminal() {
    let found = text(run_on(&["--json"], LOG.as_bytes()));
    assert!(!found.trim_end().contains(char::is_control), "{found:?}");
    assert!(found.contains("x\\u001b[31m"), "{found}");
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let event = |n: u32| format!("# Query_time: 1  Lock_time: 0\nselect a from t{n};\n");
    let place = Place::new();
    let log = place.file("slow.log", (0..5000).map(event).collect::<String>());
    let mut child = command(&["--limit=0"])
        .arg(log)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
