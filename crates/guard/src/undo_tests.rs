//! Reverts of leases as their records have them, on a host of stand-in commands.

use super::*;
use crate::commands::Commands;
use crate::lease::{Entry, Leases};
use serde_json::{json, Value};
use std::fs;
use std::process::Command;

/// A host whose server's unit is in a state, and a lease that has changed a file for its restart.
struct Scene {
    commands: Commands,
}

impl Scene {
    fn new(state: &str, result: &str, pid: u32) -> Self {
        let commands = Commands::new();
        commands.put("client", "");
        commands.put(
            "systemctl",
            &format!(
                "case \"$*\" in *ActiveState*) echo {state};; *Result*) echo {result};; \
                 *MainPID*) echo {pid};; esac"
            ),
        );
        Self { commands }
    }

    fn place(&self, name: &str) -> String {
        self.commands.folder.join(name).display().to_string()
    }

    /// Returns a lease of these changes after these records.
    fn held(&self, trial: &Value, entries: &[Entry]) -> Held {
        let lease = json!({"id": "l-1", "host": "h", "who": "w", "why": "y", "seconds": 60,
            "unit": "mysql.service", "client": ["client"], "restart": true, "trial": trial,
            "stored": []});
        let leases = Leases::open(&self.commands.folder.join("lease")).unwrap();
        let open = Entry::Open {
            lease: serde_json::from_value(lease).unwrap(),
            boot: "b".to_owned(),
            at: 1,
            order: 1,
        };
        leases.create("l-1", &open).unwrap();
        for entry in entries {
            leases.add("l-1", entry).unwrap();
        }
        leases.one("l-1").unwrap()
    }

    /// Reverts a drop-in, which the restart of the trial has read; returns whether it restarts.
    fn restarts(&self, more: &[Entry]) -> bool {
        let drop_in = self.place("drop-in");
        fs::write(&drop_in, "x").unwrap();
        let landed = Entry::Landed {
            n: 0,
            value: Some("x".to_owned()),
            along: BTreeMap::new(),
        };
        let entries: Vec<Entry> = [Entry::Intent { n: 0 }, landed]
            .into_iter()
            .chain(more.iter().cloned())
            .collect();
        let trial = json!([{"kind": "file", "place": drop_in, "before": null, "wanted": "x"}]);
        assert_eq!(undo(&self.held(&trial, &entries)).unwrap(), [""; 0]);
        assert!(fs::metadata(drop_in).is_err());
        let ran = self.commands.ran();
        assert!(ran.contains(&"systemctl daemon-reload".to_owned()));
        ran.contains(&"systemctl restart mysql.service".to_owned())
    }
}

fn reverting() -> Entry {
    Entry::Reverting {
        at: 3,
        why: "the lease ended".to_owned(),
    }
}

/// An operator may be copying its files.
#[test]
fn a_server_that_was_stopped_during_its_trial_stays_down() {
    for more in [
        vec![Entry::Trial { at: 2 }],
        vec![Entry::Trial { at: 2 }, reverting()],
    ] {
        assert!(!Scene::new("inactive", "success", 0).restarts(&more));
    }
}

#[test]
fn a_server_that_failed_or_is_about_to_start_is_started_as_it_was() {
    for state in ["failed", "activating", "deactivating"] {
        let scene = Scene::new(state, "exit-code", 0);
        assert!(scene.restarts(&[Entry::Trial { at: 2 }]), "{state}");
    }
}

/// Some end in order where an option is wrong.
#[test]
fn a_server_that_our_own_restart_has_ended_is_started_as_it_was() {
    for more in [vec![], vec![reverting()]] {
        assert!(Scene::new("inactive", "success", 0).restarts(&more));
    }
}

#[test]
fn a_server_that_is_started_while_its_trial_is_reverted_is_restarted() {
    let mut server = Command::new("sleep")
        .arg("60")
        .env("MYDYNO_LEASE", "l-1")
        .spawn()
        .unwrap();
    let restarts =
        Scene::new("inactive", "success", server.id()).restarts(&[Entry::Trial { at: 2 }]);
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(restarts);
}

/// Of a service that forks systemd may know no process; a container may hide what it has.
#[test]
fn a_server_of_which_it_is_unknown_whether_it_runs_on_trial_is_restarted() {
    const NOBODY: u32 = 1 << 30; // above all numbers of processes
    for pid in [0, NOBODY] {
        let scene = Scene::new("active", "success", pid);
        assert!(scene.restarts(&[Entry::Trial { at: 2 }]), "{pid}");
    }
}

/// The timer comes again every five seconds until everything is restored.
#[test]
fn a_server_of_which_it_is_unknown_is_not_restarted_as_long_as_something_fails() {
    let scene = Scene::new("active", "success", 0);
    let (drop_in, folder) = (scene.place("drop-in"), scene.place("lease"));
    let trial = json!([{"kind": "file", "place": drop_in, "before": null, "wanted": "x"},
        {"kind": "value", "place": folder, "before": "a", "wanted": "b"}]);
    let entries = [0, 1].map(|n| Entry::Intent { n });
    assert!(undo(&scene.held(&trial, &entries)).is_err()); // a folder has no value
    let restart = "systemctl restart mysql.service".to_owned();
    assert!(!scene.commands.ran().contains(&restart));
}

#[test]
fn a_server_that_never_had_the_file_of_the_trial_is_not_restarted() {
    let scene = Scene::new("active", "success", 0);
    let trial = json!([{"kind": "file", "place": scene.place("x"), "before": null, "wanted": "x"}]);
    assert_eq!(undo(&scene.held(&trial, &[])).unwrap(), [""; 0]);
    let restart = "systemctl restart mysql.service".to_owned();
    assert!(!scene.commands.ran().contains(&restart));
}

/// The timer would come again every five seconds, for ever.
#[test]
fn what_is_gone_is_left_and_ends_no_revert() {
    let scene = Scene::new("inactive", "success", 0);
    let (gone, mount) = (scene.place("detached/scheduler"), scene.place("unmounted"));
    let trial = json!([
        {"kind": "value", "place": gone, "before": "a", "wanted": "b"},
        {"kind": "mount", "place": mount, "before": "rw", "wanted": "ro", "forth": ["false"],
         "back": ["false"]},
    ]);
    // what is written of a change that was cut off is that it began
    let entries = [0, 1].map(|n| Entry::Intent { n });
    assert_eq!(undo(&scene.held(&trial, &entries)).unwrap(), [mount, gone]);
}

/// Reverts a value with which the kernel moved another one from 200 to 128; returns that and what is left.
fn after_a_move(present: &str) -> (String, Vec<String>) {
    let scene = Scene::new("active", "success", 0);
    let (main, other) = (scene.place("scheduler"), scene.place("ahead"));
    fs::write(&main, "new").unwrap();
    fs::write(&other, present).unwrap();
    let trial = json!([{"kind": "value", "place": main, "before": "old", "wanted": "new",
        "along": {&other: "200"}}]);
    let landed = Entry::Landed {
        n: 0,
        value: Some("new".to_owned()),
        along: BTreeMap::from([(other.clone(), "128".to_owned())]),
    };
    let mut held = scene.held(&trial, &[Entry::Intent { n: 0 }, landed]);
    held.lease.restart = false;
    let left = undo(&held).unwrap();
    assert_eq!(fs::read_to_string(main).unwrap(), "old");
    let names = left
        .iter()
        .map(|one| one.rsplit('/').next().unwrap().to_owned());
    (fs::read_to_string(other).unwrap(), names.collect())
}

#[test]
fn what_the_kernel_moved_along_is_restored_unless_somebody_has_set_it_since() {
    assert_eq!(after_a_move("128"), ("200".to_owned(), vec![]));
    assert_eq!(
        after_a_move("409"),
        ("409".to_owned(), vec!["ahead".to_owned()])
    );
}
