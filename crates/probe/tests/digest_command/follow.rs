//! A log that a thread writes, rotates and truncates is followed, and every event counts once.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{json, Value};

use crate::program::{command, text, Place};

const EVENTS: u64 = 3000;

fn event(serial: u64) -> String {
    format!(
        "# Time: 2026-11-21T01:41:22.{serial:06}Z\n# User@Host: app[app] @ web [10.0.0.1]\n\
         # Query_time: 0.000001  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: {serial}\n\
         SET timestamp=1795225282;\nselect a from t{serial};\n"
    )
}

fn appended(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

fn started(words: &[&str], log: &Path) -> Child {
    let mut command = command(&[&["--json", "--limit=0", "--follow"], words].concat());
    command
        .arg(log)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let done = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(done.success());
}

/// Waits until a child, seen through its folder in /proc, has come so far.
fn reached(child: &Child, ready: impl Fn(&Path) -> bool) {
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    let began = Instant::now();
    while !ready(&process) {
        assert!(began.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(5));
    }
}

fn has_open(process: &Path, log: &Path) -> bool {
    let links = fs::read_dir(process.join("fd")).unwrap();
    links
        .filter_map(|link| fs::read_link(link.unwrap().path()).ok())
        .any(|path| path == log)
}

/// Whether a set of signals in a process's status, such as `SigBlk`, has SIGTERM.
fn has_term(process: &Path, set: &str) -> bool {
    let status = fs::read_to_string(process.join("status")).unwrap();
    let found = status.lines().find_map(|line| line.strip_prefix(set));
    let bits = found.unwrap().trim_start_matches(':').trim();
    (u64::from_str_radix(bits, 16).unwrap() >> 14) & 1 == 1
}

fn shift(log: &Path) -> PathBuf {
    let name = |n: u32| format!("{}.{n}", log.display());
    for n in (1..60).rev() {
        let _ = fs::rename(name(n), name(n + 1));
    }
    name(1).into()
}

/// Writes all events; now and then the log is renamed, or copied and truncated.
fn write_and_rotate(log: &Path) {
    let mut file = appended(log);
    for serial in 1..=EVENTS {
        let text = event(serial);
        let (start, end) = text.split_at((serial % 150) as usize);
        file.write_all(start.as_bytes()).unwrap();
        file.write_all(end.as_bytes()).unwrap();
        match serial % 200 {
            70 => {
                fs::rename(log, shift(log)).unwrap();
                if serial % 400 == 70 {
                    file = appended(log);
                }
            }
            75 => file = appended(log),
            150 => {
                fs::copy(log, shift(log)).unwrap();
                file.set_len(0).unwrap();
            }
            _ if serial % 10 == 0 => sleep(Duration::from_millis(serial * 7 % 25)),
            _ => {}
        }
    }
}

#[test]
fn every_event_counts_once() {
    let place = Place::new();
    let log = place.file("slow.log", "");
    let child = started(&[], &log);
    // What is renamed before it has the log open is none of its logs.
    let real = fs::canonicalize(&log).unwrap();
    reached(&child, |process| has_open(process, &real));
    write_and_rotate(&log);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let digest: Value = serde_json::from_slice(&output.stdout).unwrap();
    let classes = digest["classes"].as_array().unwrap();
    let seen: HashMap<&str, u64> = classes
        .iter()
        .map(|class| {
            (
                class["fingerprint"].as_str().unwrap(),
                class["events"].as_u64().unwrap(),
            )
        })
        .collect();
    let odd: Vec<(u64, u64)> = (1..=EVENTS)
        .map(|serial| {
            (
                serial,
                *seen.get(&*format!("select a from t{serial}")).unwrap_or(&0),
            )
        })
        .filter(|(_, times)| *times != 1)
        .collect();
    assert!(
        odd.is_empty(),
        "not once: {odd:?}; {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(digest["summary"]["events"], json!(EVENTS));
    assert_eq!(
        digest["summary"]["rows_examined"],
        json!(EVENTS * (EVENTS + 1) / 2)
    );
}

#[test]
fn each_period_is_printed() {
    let place = Place::new();
    let log = place.file("slow.log", event(1) + &event(2));
    let mut child = started(&["--new", "--every=300ms"], &log);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut events = || -> u64 {
        let digest: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        digest["summary"]["events"].as_u64().unwrap()
    };
    assert_eq!(events(), 0, "what was there is left out");
    let mut file = appended(&log);
    for serial in 3..6 {
        file.write_all(event(serial).as_bytes()).unwrap();
    }
    // The last may wait for the next header, which shows its end.
    let mut seen = 0;
    let began = Instant::now();
    while seen < 2 && began.elapsed() < Duration::from_secs(20) {
        seen += events();
    }
    signal(&child, "-TERM");
    while seen < 3 && began.elapsed() < Duration::from_secs(20) {
        seen += events();
    }
    assert_eq!(seen, 3);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_duration_ends_it() {
    let place = Place::new();
    let log = place.file("slow.log", event(1));
    let began = Instant::now();
    let digest: Value = serde_json::from_str(&text(
        started(&["--duration=300ms"], &log)
            .wait_with_output()
            .unwrap(),
    ))
    .unwrap();
    assert_eq!(digest["summary"]["events"], json!(1));
    assert!(began.elapsed() >= Duration::from_millis(300));
}

/// Without it a digest whose reader has stopped could only be killed.
#[test]
fn a_second_signal_ends_it_at_once() {
    let place = Place::new();
    let events: String = (1..=EVENTS).map(event).collect();
    let log = place.file("slow.log", events);
    // Nobody reads what it prints after the first signal, and a pipe holds less than that.
    let mut child = started(&[], &log);
    // It blocks the signals and has a thread that waits for them.
    reached(&child, |process| has_term(process, "SigBlk"));
    signal(&child, "-TERM");
    // Two that are pending would be one.
    reached(&child, |process| !has_term(process, "ShdPnd"));
    sleep(Duration::from_millis(500));
    assert_eq!(child.try_wait().unwrap(), None);
    signal(&child, "-TERM");
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(20));
    }
    let status = child.try_wait().unwrap();
    if status.is_none() {
        child.kill().unwrap();
    }
    assert_eq!(status.and_then(|status| status.code()), Some(130));
}
