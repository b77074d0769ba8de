//! Commands that stand for those of a host, for the tests of one thread.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

thread_local! {
    static FIRST: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Returns where this thread's commands are looked for, if it has some of its own.
pub fn path() -> Option<OsString> {
    let first = FIRST.with_borrow(Clone::clone)?;
    Some(format!("{}:/usr/bin:/bin", first.display()).into())
}

/// A folder of scripts; they and what they wrote are removed with it.
pub struct Commands {
    pub folder: PathBuf,
}

impl Commands {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mydyno-commands-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        FIRST.set(Some(folder.clone()));
        Self { folder }
    }

    /// Makes a command that notes its arguments, and then does what the script does.
    ///
    /// Another process writes it: a file that this one has open could not be run by its threads.
    pub fn put(&self, name: &str, script: &str) {
        let ran = self.folder.join("ran");
        let text = format!(
            "#!/bin/sh\necho \"{name} $*\" >>{}\n{script}\n",
            ran.display()
        );
        let write = "printf %s \"$1\" >\"$0\" && chmod 755 \"$0\"";
        let path = self.folder.join(name);
        let done = Command::new("sh")
            .args(["-c", write])
            .arg(path)
            .arg(text)
            .status();
        assert!(done.unwrap().success());
    }

    /// Returns what was run, in order.
    pub fn ran(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Commands {
    fn drop(&mut self) {
        FIRST.set(None);
        let _ = fs::remove_dir_all(&self.folder);
    }
}
