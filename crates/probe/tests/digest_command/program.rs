//! The program, a log, and a place for files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// Three events, 2.400007 seconds, two classes.
pub const LOG: &str = "\
# Time: 2026-11-21T01:41:22.000001Z
# User@Host: app[app] @ web1 [10.0.0.1]  Id:     7
# Query_time: 0.100000  Lock_time: 0.000002 Rows_sent: 1  Rows_examined: 10
use shop;
SET timestamp=1795225282;
SELECT c FROM item WHERE id=1;
# Time: 2026-11-21T01:41:23.000000Z
# User@Host: app[app] @ web2 [10.0.0.2]  Id:     8
# Query_time: 0.300007  Lock_time: 0.000002 Rows_sent: 3  Rows_examined: 30
SET timestamp=1795225283;
SELECT c FROM item WHERE id=22;
# Time: 2026-11-21T01:42:30.500000Z
# User@Host: root[root] @ localhost []  Id:     9
# Query_time: 2.000000  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0
SET timestamp=1795225350;
UPDATE item SET c='x\x1b[31m' WHERE id=3;
";

/// A directory that goes with the value.
pub struct Place(PathBuf);

impl Place {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("digest-command-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Writes a file and returns its path.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mydyno-probe"));
    command
        .arg("digest")
        .args(words)
        .env_remove("COLUMNS")
        .stdin(Stdio::null());
    command
}

/// Runs it with these options and files.
pub fn run(words: &[&str], files: &[&Path]) -> Output {
    command(words).args(files).output().unwrap()
}

/// Runs it on standard input.
pub fn run_on(words: &[&str], input: &[u8]) -> Output {
    let mut child = command(words)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may end before it reads, when the request is wrong.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// The text of a run that went well.
pub fn text(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The JSON of a run that went well.
pub fn json(output: Output) -> Value {
    serde_json::from_str(&text(output)).unwrap()
}
