//! Whether a restarted server is as well as it was: no new errors in its log, its clients back.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::fault::{Fault, Result};
use crate::system::{Client, Unit};

/// Clients that did nothing for so long may come back later than this.
const RECENT: Duration = Duration::from_secs(30);
/// Of fewer clients half is no measure.
const FEW: u64 = 10;
const POLL: Duration = Duration::from_millis(200);
/// A log is read from so many bytes before its end.
const TAIL: u64 = 1 << 18;
/// In the line that each server writes first.
const STARTED: &str = " as process ";
const ERROR: &str = "[ERROR]";

/// A server as it runs: the errors of its log since it started, and how many clients are at work.
pub struct Health {
    errors: BTreeSet<String>,
    clients: u64,
}

impl Health {
    /// Looks at a server; what cannot be read is empty.
    pub fn of(unit: &Unit<'_>, client: &Client<'_>) -> Self {
        Self {
            errors: errors(&log_of(unit, client)),
            clients: clients(client, "AND (command <> 'Sleep' OR time <= 30)"),
        }
    }

    /// Waits until it is as well again; an error names what is missing.
    pub fn wait(&self, unit: &Unit<'_>, client: &Client<'_>, left: Duration) -> Result<()> {
        let end = Instant::now() + left.min(RECENT);
        let mut back = clients(client, "");
        while self.clients >= FEW && 2 * back < self.clients {
            if Instant::now() >= end {
                return Err(Fault::failed(format!(
                    "{}: {back} of {} clients came back in {} s; correct what keeps them away",
                    unit.0,
                    self.clients,
                    left.min(RECENT).as_secs()
                )));
            }
            thread::sleep(POLL);
            back = clients(client, "");
        }
        let present = errors(&log_of(unit, client));
        let new: Vec<&str> = present
            .difference(&self.errors)
            .take(3)
            .map(String::as_str)
            .collect();
        if new.is_empty() {
            return Ok(());
        }
        Err(Fault::failed(format!(
            "{}: logs what it did not log before:\n{}\ncorrect the setting",
            unit.0,
            new.join("\n")
        )))
    }
}

/// Returns the number of sessions of others; replicas and the server's own threads are none.
fn clients(client: &Client<'_>, more: &str) -> u64 {
    let shown = client.ask(&format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND \
         user NOT IN ('system user', 'event_scheduler', 'unauthenticated user') AND \
         command NOT IN ('Daemon', 'Slave_IO', 'Slave_SQL', 'Slave_worker') AND \
         command NOT LIKE 'Binlog Dump%' {more}"
    ));
    shown.ok().and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}

/// Returns the end of the server's log: its own file, or the system's journal of this run.
fn log_of(unit: &Unit<'_>, client: &Client<'_>) -> String {
    let named = client.variable("log_error").unwrap_or_default();
    if named.is_empty() || named == "stderr" {
        return unit.journal_of_this_run();
    }
    let folder = client.variable("datadir").unwrap_or_default();
    tail(&Path::new(&folder).join(named)).unwrap_or_default()
}

/// Returns the end of a file that the server's user may have made: a link or a pipe is not read.
fn tail(path: &PathBuf) -> Option<String> {
    if !std::fs::symlink_metadata(path).ok()?.is_file() {
        return None; // some devices act as they are opened
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).ok()?)
        .open(path)
        .ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() {
        return None;
    }
    file.seek(SeekFrom::Start(about.len().saturating_sub(TAIL)))
        .ok()?;
    let mut raw = Vec::new();
    file.take(TAIL).read_to_end(&mut raw).ok()?;
    Some(String::from_utf8_lossy(&raw).into_owned())
}

/// Returns the errors since the server's last start, each once: digits and control characters left out.
fn errors(log: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = log.lines().collect();
    let start = lines.iter().rposition(|one| one.contains(STARTED));
    lines[start.unwrap_or(0)..]
        .iter()
        .filter_map(|one| one.split_once(ERROR))
        .map(|(_, text)| {
            let plain = text.trim().chars().filter(|c| !c.is_control());
            let plain = plain.map(|c| if c.is_ascii_digit() { '#' } else { c });
            plain.take(200).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_the_last_start_whatever_their_numbers() {
        let log = "1 [ERROR] before\n2 [Note] mariadbd starting as process 7\n\
                   3 [ERROR] port 3306\n4 [Warning] [x] y\n5 [ERROR] port 3307\n";
        assert_eq!(errors(log), BTreeSet::from(["port ####".to_owned()]));
        assert_eq!(errors("1 [ERROR] a\n").len(), 1);
        assert!(errors("").is_empty());
    }

    #[test]
    fn a_link_and_a_pipe_are_not_read() {
        let top = std::env::temp_dir().join(format!("mydyno-health-{}", std::process::id()));
        std::fs::create_dir(&top).unwrap();
        std::fs::write(top.join("log"), "x\n").unwrap();
        std::os::unix::fs::symlink(top.join("log"), top.join("link")).unwrap();
        let pipe = top.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert_eq!(tail(&top.join("log")), Some("x\n".to_owned()));
        assert_eq!(tail(&top.join("link")), None);
        assert_eq!(tail(&pipe), None);
        std::fs::remove_dir_all(&top).unwrap();
    }
}
