//! Commands of the host, the server's unit and its client, the clock, the system's log.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::fault::{At as _, Fault, Result};
use crate::lease::Lease;

const POLL: Duration = Duration::from_millis(20);
const SHORT: Duration = Duration::from_secs(20);
/// A statement asks for another size of it, and a thread of the server makes that.
const POOL: &str = "innodb_buffer_pool_size";
const RESIZE: Duration = Duration::from_secs(900);
/// After so long without a sign of a resize, there is none: the size is as it was.
const QUIET: Duration = Duration::from_secs(3);
/// The column of the process list with the statement: `MariaDB` has another one after it.
const INFO: usize = 7;
/// The state of a unit that runs.
pub const ACTIVE: &str = "active";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a command to its end, which comes within `limit`; returns what it printed.
///
/// It has the environment of the dead man, whoever calls: an account that only a session can log
/// in with could not take back what it has set.
pub fn run(argv: &[&str], input: &str, limit: Duration) -> Result<String> {
    let name = argv.iter().take(3).copied().collect::<Vec<_>>().join(" ");
    let mut child = Command::new(argv[0])
        .args(&argv[1..])
        .env_clear()
        .env("PATH", path())
        .env("HOME", "/root")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .at(&name)?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes()); // one that reads nothing may have ended
    }
    let gather = |stream: Option<Box<dyn std::io::Read + Send>>| {
        thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut one) = stream {
                let _ = one.read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let out = gather(child.stdout.take().map(|s| Box::new(s) as _));
    let err = gather(child.stderr.take().map(|s| Box::new(s) as _));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().at(&name)? {
            break status;
        }
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Fault::failed(format!(
                "{name}: not done in {} s",
                limit.as_secs()
            )));
        }
        thread::sleep(POLL);
    };
    let (out, err) = (
        out.join().unwrap_or_default(),
        err.join().unwrap_or_default(),
    );
    if status.success() {
        return Ok(out);
    }
    let words: String = err.trim().chars().take(400).collect();
    Err(Fault::failed(format!("{name}: {status}: {words}")))
}

/// Returns where commands are looked for.
fn path() -> OsString {
    #[cfg(test)]
    if let Some(path) = crate::commands::path() {
        return path;
    }
    std::env::var_os("PATH").unwrap_or_else(|| PATH.into())
}

/// Runs a command of systemd.
pub fn systemctl(arguments: &[&str]) -> Result<String> {
    let mut argv = vec!["systemctl"];
    argv.extend(arguments);
    run(&argv, "", SHORT)
}

/// Lets udev read its rules again, and apply them where a boot `has_applied` the old ones.
pub fn reload_rules(has_applied: bool) {
    let _ = run(&["udevadm", "control", "--reload"], "", SHORT);
    if has_applied {
        let disks = ["--subsystem-match=block", "--action=change"];
        let _ = run(&["udevadm", "trigger", disks[0], disks[1]], "", SHORT);
    }
}

/// The server's unit.
pub struct Unit<'a>(pub &'a str);

impl Unit<'_> {
    fn property(&self, name: &str) -> Result<String> {
        let shown = systemctl(&["show", "--property", name, "--value", self.0])?;
        Ok(shown.trim().to_owned())
    }

    /// Returns whether its process was started by a lease: the drop-in of a trial names it; none
    /// where that is unknown: systemd knows no process, or that one's environment cannot be read.
    pub fn runs_on(&self, id: &str) -> Result<Option<bool>> {
        let path = format!("/proc/{}/environ", self.property("MainPID")?);
        let wanted = format!("MYDYNO_LEASE={id}");
        let has = |all: Vec<u8>| all.split(|b| *b == 0).any(|word| word == wanted.as_bytes());
        Ok(std::fs::read(path).ok().map(has))
    }

    /// Returns `active`, `inactive`, `failed`, or what it is about to be; an error where systemd is
    /// not reached.
    pub fn state(&self) -> Result<String> {
        self.property("ActiveState")
    }

    /// Returns whether it was stopped, and did not fail.
    pub fn was_stopped(&self) -> Result<bool> {
        Ok(self.state()? == "inactive" && self.property("Result")? == "success")
    }

    pub fn is_active(&self) -> bool {
        self.state().is_ok_and(|state| state == ACTIVE)
    }

    /// Returns how long the unit gives itself to start, at least a minute.
    fn start_limit(&self, most: Duration) -> Duration {
        // printed as 1min 30s, or infinity
        let shown = self.property("TimeoutStartUSec").unwrap_or_default();
        let mut seconds = 0;
        for part in shown.split_whitespace() {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            let number: u64 = digits.parse().unwrap_or(0);
            seconds += number
                * match &part[digits.len()..] {
                    "min" => 60,
                    "h" => 3600,
                    "s" => 1,
                    _ => 0,
                };
        }
        if seconds == 0 {
            most
        } else {
            most.min(Duration::from_secs(seconds.max(60)))
        }
    }

    /// Restarts the server, and waits until it answers; at most as long as its unit does, and
    /// `answers` after it was started.
    pub fn restart(&self, client: &Client<'_>, most: Duration, answers: Duration) -> Result<()> {
        let _ = systemctl(&["reset-failed", self.0]); // it is not failed, as a rule
        let limit = self.start_limit(most);
        let begun = Instant::now();
        let done = run(&["systemctl", "restart", self.0], "", most).and_then(|_| {
            let end = (begun + limit).min(Instant::now() + answers);
            loop {
                match client.ask("SELECT 1") {
                    Ok(_) => break Ok(()),
                    Err(fault) if Instant::now() >= end || !self.is_active() => break Err(fault),
                    Err(_) => thread::sleep(POLL * 5),
                }
            }
        });
        done.map_err(|fault| {
            Fault::failed(format!(
                "{}: does not start: {}\n{}",
                self.0,
                fault.text,
                self.last_lines()
            ))
        })
    }

    /// Returns what the journal has of the process that runs now.
    pub fn journal_of_this_run(&self) -> String {
        let _ = run(&["journalctl", "--sync"], "", SHORT);
        let number = self.property("InvocationID").unwrap_or_default();
        self.journal(&["-n", "2000", &format!("_SYSTEMD_INVOCATION_ID={number}")])
    }

    fn last_lines(&self) -> String {
        self.journal(&["-n", "20"])
    }

    fn journal(&self, more: &[&str]) -> String {
        let mut argv = vec!["journalctl", "-u", self.0, "-o", "cat", "--no-pager"];
        argv.extend(more);
        run(&argv, "", SHORT).unwrap_or_default()
    }
}

/// A client of the server.
pub struct Client<'a>(pub &'a [String]);

impl Client<'_> {
    /// Runs statements; returns the rows as printed.
    pub fn ask(&self, text: &str) -> Result<String> {
        let argv: Vec<&str> = self.0.iter().map(String::as_str).collect();
        if argv.is_empty() {
            return Err(Fault::wrong("client: is empty; name one"));
        }
        run(&argv, text, SHORT)
    }

    /// Returns a global variable as the server shows it.
    pub fn variable(&self, name: &str) -> Result<String> {
        let shown = self.ask(&format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name = '{name}'"
        ))?;
        let row = shown.lines().next().unwrap_or_default();
        match row.split_once('\t') {
            Some((_, value)) => Ok(value.to_owned()),
            None => Err(Fault::failed(format!(
                "{name}: the server has no such variable"
            ))),
        }
    }

    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        if name != POOL {
            return self.ask(&assignment(name, value)).map(drop);
        }
        let before = (self.variable(name)?, self.resizing()?);
        self.ask(&assignment(name, value))?;
        let begun = Instant::now();
        loop {
            let present = (self.variable(name)?, self.resizing()?);
            let quiet = present == before && begun.elapsed() > QUIET;
            let ended = present.1 != before.1 && !is_resizing(&present.1);
            if present.0 != before.0 || ended || quiet {
                return Ok(());
            }
            wait_for_pool(begun)?;
        }
    }

    /// Waits for the end of a resize that was asked for: until then the old size is shown.
    pub fn settle(&self, name: &str) -> Result<()> {
        let begun = Instant::now();
        // One that does not end is looked at as it is.
        while name == POOL && is_resizing(&self.resizing()?) && wait_for_pool(begun).is_ok() {}
        Ok(())
    }

    /// Returns how far the resize of the buffer pool is; nothing from a server that does not show it.
    fn resizing(&self) -> Result<String> {
        let shown = self.ask("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_resize_status'")?;
        Ok(shown
            .split_once('\t')
            .map_or("", |row| row.1)
            .trim()
            .to_owned())
    }

    /// Ends an assignment of ours that has outlived its client: it would land after the revert.
    pub fn end_assignment(&self, name: &str, value: &str) -> Result<()> {
        let ours = assignment(name, value);
        let end = Instant::now() + SHORT;
        loop {
            let shown = self.ask("SHOW FULL PROCESSLIST")?;
            let running = shown
                .lines()
                .filter(|row| row.split('\t').nth(INFO) == Some(ours.as_str()));
            let ids: Vec<&str> = running.filter_map(|row| row.split('\t').next()).collect();
            if ids.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(Fault::failed(format!(
                    "{name}: the server is still at work on SET GLOBAL of it (connection {})",
                    ids.join(", ")
                )));
            }
            for id in ids {
                let _ = self.ask(&format!("KILL {id}")); // it may have ended
            }
            thread::sleep(POLL * 5);
        }
    }
}

/// Whether a server is at work on its pool; it ends with a sentence of one of these forms.
fn is_resizing(status: &str) -> bool {
    const ENDED: [&str; 6] = [
        "completed",
        "did not change",
        "not started",
        "cannot",
        "failed",
        "abort",
    ];
    let plain = status.to_lowercase();
    !plain.is_empty() && !ENDED.iter().any(|words| plain.contains(words))
}

fn wait_for_pool(begun: Instant) -> Result<()> {
    if begun.elapsed() > RESIZE {
        return Err(Fault::failed(format!(
            "{POOL}: the server is still resizing it"
        )));
    }
    thread::sleep(POLL * 5);
    Ok(())
}

fn assignment(name: &str, value: &str) -> String {
    let literal = if value.parse::<f64>().is_ok() {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
    };
    format!("SET GLOBAL {name} = {literal}")
}

/// Arms the timer that reverts a lease; it lives as long as this boot, as the trial does.
pub fn arm(lease: &Lease, number: u32, seconds: u64) -> Result<()> {
    let program = std::env::current_exe().at("mydyno-guard")?;
    let guard = program.to_string_lossy();
    let unit = format!("--unit={}", dead_man(&lease.id, number));
    let after = format!("--on-active={seconds}");
    let argv = [
        "systemd-run",
        "--quiet",
        "--collect",
        &unit,
        &after,
        "--timer-property=AccuracySec=1s",
        "--timer-property=IgnoreOnIsolate=yes", // systemctl isolate stops all others
        "--property=IgnoreOnIsolate=yes",
        "--property=TimeoutStartSec=infinity",
        "--property=StartLimitIntervalSec=0",
        "--property=Restart=on-failure",
        "--property=RestartSec=5",
        &guard,
        "revert",
        &lease.id,
        "--why=the lease ended",
        "--takeover",
    ];
    run(&argv, "", SHORT).map(drop)
}

/// Stops the timer; a service that it has started goes on.
pub fn disarm(id: &str, number: u32) {
    let _ = systemctl(&["stop", &format!("{}.timer", dead_man(id, number))]);
}

/// Returns whether the timer waits, or the service that it has started runs.
pub fn is_armed(id: &str, number: u32) -> bool {
    let name = dead_man(id, number);
    let units = [format!("{name}.timer"), format!("{name}.service")];
    systemctl(&["is-active", "--quiet", &units[0], &units[1]]).is_ok()
}

fn dead_man(id: &str, number: u32) -> String {
    format!("mydyno-deadman-{id}-{number}")
}

/// Returns what identifies this boot of the host.
pub fn boot() -> Result<String> {
    let path = "/proc/sys/kernel/random/boot_id";
    // In a container it is the host's; the manager's start differs at each of its own boots.
    let id = std::fs::read_to_string(path).at(path)?;
    let manager = std::fs::read_to_string("/proc/1/stat").unwrap_or_default();
    let started = manager.rsplit(' ').nth(30).unwrap_or_default();
    Ok(format!("{} {started}", id.trim()))
}

/// Returns the seconds since the epoch.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Writes a line to the system's log; where there is none, it is lost.
pub fn log(text: &str) {
    const NOTICE_OF_DAEMON: u8 = 3 << 3 | 5;
    if let Ok(socket) = UnixDatagram::unbound() {
        let plain: String = text.chars().filter(|c| !c.is_control()).collect();
        let line = format!("<{NOTICE_OF_DAEMON}>mydyno: {plain}");
        let _ = socket.set_nonblocking(true); // a log that is stuck holds up no revert
        let _ = socket.send_to(line.as_bytes(), "/dev/log");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resize_ends_with_a_sentence_of_any_release() {
        for ended in [
            "",
            "Completed resizing buffer pool at 261130 18:00:00.",
            "Resizing buffer pool failed, finished resizing at 261130 18:00:00.",
            "Size did not change: old size = new size. Nothing to do.",
            "not started",
        ] {
            assert!(!is_resizing(ended), "{ended}");
        }
        assert!(is_resizing("Withdrawing blocks to be shrunken."));
        assert!(is_resizing(
            "Resizing buffer pool from 134217728 to 268435456."
        ));
    }

    #[test]
    fn a_command_has_the_environment_of_the_dead_man_whoever_calls() {
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let script = "echo \"$HOME $PWD [$CARGO_MANIFEST_DIR]\"";
        let shown = run(&["sh", "-c", script], "", SHORT).unwrap();
        assert_eq!(shown, "/root / []\n");
    }
}
