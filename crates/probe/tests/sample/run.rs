//! The sampler as a process: how it begins, ends, is stopped, and is killed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};

use crate::decode::File;
use crate::folder::Folder;

/// A sampler that is killed with the test.
struct Sampler {
    child: Child,
    out: PathBuf,
    _folder: Folder,
}

impl Sampler {
    fn start(options: &[&str]) -> Self {
        let folder = Folder::new();
        let out = folder.path().join("x.frames");
        let child = command(&out, options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let sampler = Self {
            child,
            out,
            _folder: folder,
        };
        sampler.wait_for(|file| !file.head.is_null());
        sampler
    }

    fn file(&self) -> File {
        File::decode(&fs::read(&self.out).unwrap_or_default())
    }

    /// Waits until the file, while it is written, is as wanted.
    fn wait_for(&self, wanted: impl Fn(&File) -> bool) {
        let begin = Instant::now();
        while !wanted(&self.file()) {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "{:?}",
                self.file().head
            );
            sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits for its end in order.
    fn end(mut self) -> File {
        let status = self.child.wait().unwrap();
        assert_eq!(status.code(), Some(0));
        let bytes = fs::read(&self.out).unwrap();
        let file = File::decode(&bytes);
        assert_eq!(file.complete, bytes.len());
        assert_eq!(file.end["ticks"], file.ticks.len());
        file
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(out: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mydyno-probe"));
    command.args(["sample", "--out"]).arg(out).args(options);
    command
}

fn refused(options: &[&str]) -> String {
    let folder = Folder::new();
    let out = folder.path().join("x.frames");
    let Output {
        status,
        stderr,
        stdout,
    } = command(&out, options).output().unwrap();
    assert_eq!((status.code(), stdout.len()), (Some(2), 0));
    assert!(!out.exists());
    String::from_utf8(stderr).unwrap()
}

#[test]
fn a_sample_lasts_as_long_as_was_asked() {
    let sampler = Sampler::start(&["--interval", "50ms", "--duration", "500ms"]);
    let mode = fs::metadata(&sampler.out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let file = sampler.end();
    assert_eq!(file.end["reason"], "duration");
    let missed = file.end["missed"].as_u64().unwrap();
    assert_eq!(file.ticks.len() as u64 + missed, 11);
    assert_eq!(file.head["interval_ns"], 50_000_000);
    assert_eq!(file.head["cpus"], cpus(&file));
    let at = file.series("probe.read_at", "host");
    assert!(at.windows(2).all(|pair| pair[0] < pair[1]));
    for (tick, late) in file.ticks.iter().zip(file.series("probe.late", "")) {
        let deadline = i64::try_from(tick.seq * 50_000_000).unwrap();
        assert_eq!(
            i64::try_from(tick.begin_ns).unwrap() - deadline,
            late.unwrap()
        );
        assert!((0..50_000_000).contains(&late.unwrap()));
        assert!(tick.took_ns > 0 && tick.drift_ns.abs() < 1_000_000_000);
    }
    let cpu = file.series("probe.cpu", "");
    assert!(cpu.windows(2).all(|pair| pair[0] < pair[1]));
    let kib = file.series("probe.rss", "").last().copied().flatten();
    assert!((400..16_384).contains(&kib.unwrap()), "{kib:?}");
}

fn cpus(file: &File) -> usize {
    let name = |column: &&serde_json::Value| column["name"] == "cpu.user";
    file.columns.iter().filter(name).count() - 1
}

#[test]
fn a_signal_ends_it_at_once_and_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let sampler = Sampler::start(&["--interval", "1h"]);
        sampler.wait_for(|file| file.ticks.len() == 1);
        let begin = Instant::now();
        sampler.signal(signal);
        let file = sampler.end();
        assert!(begin.elapsed() < Duration::from_secs(5));
        assert_eq!(file.end["reason"], "signal");
        assert_eq!(file.end["seq"], 0);
    }
}

#[test]
fn it_ends_with_its_owner() {
    let mut owner = Command::new("sleep").arg("60").spawn().unwrap();
    let sampler = Sampler::start(&["--interval", "1h", "--owner", &owner.id().to_string()]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(sampler.end().end["reason"], "owner-gone");
}

#[test]
fn a_kill_loses_at_most_the_tick_being_written() {
    let mut sampler = Sampler::start(&["--interval", "10ms"]);
    sampler.wait_for(|file| file.ticks.len() > 20);
    let before = sampler.file();
    sampler.child.kill().unwrap();
    sampler.child.wait().unwrap();
    let file = sampler.file();
    assert!(file.end.is_null());
    assert!(file.ticks.len() >= before.ticks.len());
    assert_eq!(file.ticks[..before.ticks.len()], before.ticks[..]);
    let bytes = fs::metadata(&sampler.out).unwrap().len();
    assert_eq!(file.complete as u64, bytes);
}

#[test]
fn ticks_in_which_it_was_stopped_are_missed_and_not_caught_up() {
    let sampler = Sampler::start(&["--interval", "50ms", "--duration", "3s"]);
    sampler.wait_for(|file| file.ticks.len() >= 4);
    sampler.signal(Signal::STOP);
    sleep(Duration::from_secs(1));
    sampler.signal(Signal::CONT);
    let file = sampler.end();
    let missed = file.end["missed"].as_i64().unwrap();
    assert!((15..=30).contains(&missed), "{missed}");
    let last = file.ticks.last().unwrap().seq;
    assert_eq!(last, 60);
    assert_eq!(
        last + 1 - file.ticks.len() as u64,
        u64::try_from(missed).unwrap()
    );
    let counted = file.series("probe.missed", "").last().copied().flatten();
    assert_eq!(counted, Some(missed));
    // After the stop there is one late tick at most; the others are where they belong.
    for (tick, next) in file.ticks.iter().zip(&file.ticks[1..]) {
        assert!(next.seq > tick.seq);
        assert!(next.begin_ns >= next.seq * 50_000_000);
    }
}

#[test]
fn a_process_that_vanishes_leaves_its_columns_absent_and_the_file_going_on() {
    let mut watched = Command::new("sleep").arg("60").spawn().unwrap();
    let process = format!("load={}", watched.id());
    let sampler = Sampler::start(&["--interval", "20ms", "--process", &process]);
    sampler.wait_for(|file| file.ticks.len() > 5);
    watched.kill().unwrap();
    watched.wait().unwrap();
    let before = sampler.file().ticks.len();
    sampler.wait_for(|file| file.ticks.len() > before + 5);
    sampler.signal(Signal::TERM);
    let file = sampler.end();
    assert_eq!(file.events("process"), ["gone"]);
    let threads = file.series("process.threads", "load");
    assert_eq!((threads[0], threads.last()), (Some(1), Some(&None)));
    let at = file.column("probe.read_at", "process");
    assert!(file.ticks.iter().all(|tick| tick.changed.contains(&at)));
}

#[test]
fn a_wrong_request_is_refused_before_there_is_a_file() {
    assert!(refused(&["--interval", "1ms"]).contains("10ms"));
    assert!(refused(&["--owner", "4194304"]).contains("no such process"));
    assert!(refused(&["--process", "x=1", "--process-file", "x=/y"]).contains("once"));
    assert!(refused(&["--process", "1"]).contains("ROLE=VALUE"));
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let folder = Folder::new();
    folder.write("x", "precious");
    let path = folder.path().join("x");
    let output = command(&path, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn a_file_that_cannot_be_made_is_the_hosts_fault() {
    let path = Path::new("/proc/nowhere/x");
    let output = command(path, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
}
