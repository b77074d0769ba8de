//! A followed log under random appends, rotations and truncations.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::options::Config;
use super::result::Digest;
use super::watched::Watched;

/// A seeded source of choices (xorshift64, G. Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// A server that writes events with serial numbers, and what rotates its log.
struct Server {
    log: PathBuf,
    file: File,
    serial: u64,
    dice: Dice,
}

fn appended(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

impl Server {
    fn event(&mut self) -> String {
        self.serial += 1;
        let time = 1_795_262_400 + self.serial;
        format!(
            "# Time: 2026-11-21T12:00:00.{:06}Z\n# User@Host: app[app] @ localhost []\n\
             # Query_time: 0.000001  Lock_time: 0.000000  Rows_sent: 1  Rows_examined: 1\n\
             SET timestamp={time};\nselect a from t{};\n",
            self.serial, self.serial
        )
    }

    fn append(&mut self) {
        let event = self.event();
        self.file.write_all(event.as_bytes()).unwrap();
    }

    /// The numbered old logs move up by one, so that `log.1` is free; the oldest goes.
    fn shift(&self) {
        let name = |n: u64| PathBuf::from(format!("{}.{n}", self.log.display()));
        let _ = fs::remove_file(name(40));
        for n in (1..40).rev() {
            let _ = fs::rename(name(n), name(n + 1));
        }
    }

    fn first_old(&self) -> PathBuf {
        PathBuf::from(format!("{}.1", self.log.display()))
    }

    fn rename(&mut self) {
        self.shift();
        fs::rename(&self.log, self.first_old()).unwrap();
        let created = self.dice.below(2) == 0;
        if created {
            appended(&self.log);
        }
        // The server continues in the old file until FLUSH LOGS.
        for _ in 0..self.dice.below(3) {
            self.append();
        }
    }

    fn reopen(&mut self) {
        self.file = appended(&self.log);
    }

    fn copy_and_truncate(&mut self) {
        self.shift();
        fs::copy(&self.log, self.first_old()).unwrap();
        self.file.set_len(0).unwrap();
    }
}

/// Random work and looks; returns the digest and how many events there were.
fn followed(seed: u64, steps: u64) -> (Digest, u64) {
    let directory = std::env::temp_dir().join(format!("watched-{}-{seed}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let log = directory.join("slow.log");
    let file = appended(&log);
    let mut server = Server {
        log: log.clone(),
        file,
        serial: 0,
        dice: Dice(seed),
    };
    for _ in 0..server.dice.below(4) {
        server.append();
    }
    let mut watched = Watched::open(&log, false, &Config::default()).unwrap();
    watched.poll().unwrap();
    let mut taken = Digest::default();
    for _ in 0..steps {
        match server.dice.below(16) {
            0 => {
                server.rename();
                if server.dice.below(2) == 0 {
                    watched.poll().unwrap();
                }
                server.reopen();
            }
            1 => server.copy_and_truncate(),
            2 => taken.merge(watched.take()),
            3 => {
                let event = server.event();
                let (start, end) = event.split_at(event.len() / 3);
                server.file.write_all(start.as_bytes()).unwrap();
                watched.poll().unwrap();
                server.file.write_all(end.as_bytes()).unwrap();
            }
            4..=8 => drop(watched.poll().unwrap()),
            _ => server.append(),
        }
    }
    taken.merge(watched.finish().unwrap().0);
    fs::remove_dir_all(&directory).unwrap();
    (taken, server.serial)
}

#[test]
fn nothing_is_lost_or_read_twice() {
    for seed in 1..=200 {
        let (digest, events) = followed(seed * 0x9E37_79B9, 60);
        let seen: HashMap<&str, u64> = digest
            .classes
            .iter()
            .map(|class| (&*class.fingerprint, class.events))
            .collect();
        let odd: Vec<_> = (1..=events)
            .map(|serial| format!("select a from t{serial}"))
            .map(|text| (seen.get(text.as_str()).copied().unwrap_or(0), text))
            .filter(|(times, _)| *times != 1)
            .collect();
        assert!(
            odd.is_empty(),
            "seed {seed}: of {events}, not once: {odd:?}"
        );
        assert_eq!(digest.summary.totals.events, events, "seed {seed}");
    }
}

#[test]
fn a_copy_made_by_hand_is_not_read() {
    let directory = std::env::temp_dir().join(format!("watched-{}-copy", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let log = directory.join("slow.log");
    let mut server = Server {
        log: log.clone(),
        file: appended(&log),
        serial: 0,
        dice: Dice(7),
    };
    server.append();
    let mut watched = Watched::open(&log, true, &Config::default()).unwrap();
    server.append();
    fs::copy(&log, directory.join("slow.log.bak")).unwrap();
    server.append();
    fs::rename(&log, directory.join("slow.log.1")).unwrap();
    server.reopen();
    server.append();
    watched.poll().unwrap();
    let (digest, notes) = watched.finish().unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(
        (digest.summary.totals.events, notes),
        (3, Vec::new()),
        "the first was there before"
    );
}

#[test]
fn a_truncated_log_without_a_copy_is_reported() {
    let directory = std::env::temp_dir().join(format!("watched-{}-cut", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let log = directory.join("slow.log");
    let mut server = Server {
        log: log.clone(),
        file: appended(&log),
        serial: 0,
        dice: Dice(7),
    };
    (0..3).for_each(|_| server.append());
    let mut watched = Watched::open(&log, false, &Config::default()).unwrap();
    watched.poll().unwrap();
    server.file.set_len(0).unwrap();
    // Longer than what was read before it was cut.
    (0..5).for_each(|_| server.append());
    let notes = watched.poll().unwrap();
    let (digest, _) = watched.finish().unwrap();
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].contains("truncated"), "{notes:?}");
    assert_eq!(digest.summary.totals.events, 8);
}
