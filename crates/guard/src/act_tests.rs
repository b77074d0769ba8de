//! What a boot completes and what `begin` refuses, on a host of stand-in commands.

use super::*;
use crate::commands::Commands;
use serde_json::json;

/// Records a confirmed lease that removes a udev rule.
fn confirmed(commands: &Commands, boot: String) -> Host {
    for name in ["udevadm", "systemctl"] {
        commands.put(name, "");
    }
    let rules = commands.folder.join("udev/rules");
    fs::create_dir(commands.folder.join("udev")).unwrap();
    fs::write(&rules, "x").unwrap();
    let lease = json!({"id": "l-1", "host": "h", "who": "w", "why": "y", "seconds": 60,
        "trial": [],
        "stored": [{"kind": "file", "place": rules, "before": "x", "wanted": null}]});
    let host = Host::new(&commands.folder.join("lease"), false).unwrap();
    let open = Entry::Open {
        lease: serde_json::from_value(lease).unwrap(),
        boot,
        at: 1,
        order: 1,
    };
    host.leases.create("l-1", &open).unwrap();
    let who = "w".to_owned();
    for entry in [Entry::Trial { at: 2 }, Entry::Confirmed { at: 3, who }] {
        host.leases.add("l-1", &entry).unwrap();
    }
    host
}

fn udevadm(commands: &Commands) -> Vec<String> {
    let mut ran = commands.ran();
    ran.retain(|one| one.starts_with("udevadm"));
    ran
}

#[test]
fn rules_that_change_after_a_boot_has_applied_them_are_applied_again() {
    let commands = Commands::new();
    let host = confirmed(&commands, "an earlier one".to_owned());
    host.close_those_of_earlier_boots().unwrap();
    let trigger = "udevadm trigger --subsystem-match=block --action=change";
    assert_eq!(udevadm(&commands), ["udevadm control --reload", trigger]);
    assert_eq!(host.all().unwrap()[0].state, State::Kept);
}

/// The trial's values are in force; what somebody has set by hand would be lost.
#[test]
fn rules_are_not_applied_again_on_a_host_that_runs() {
    let commands = Commands::new();
    let host = confirmed(&commands, boot().unwrap());
    host.revert("l-1", "a timer completes what was confirmed")
        .unwrap();
    assert_eq!(udevadm(&commands), ["udevadm control --reload"]);
    assert_eq!(host.all().unwrap()[0].state, State::Kept);
}

/// Nothing could show that the server runs on trial, or that a revert has ended that.
#[test]
fn a_restart_of_a_server_whose_process_is_unknown_is_refused() {
    let commands = Commands::new();
    commands.put("client", "");
    commands.put("systemctl", "case \"$*\" in *MainPID*) echo 0;; esac");
    let host = Host::new(&commands.folder.join("lease"), false).unwrap();
    // one that is not as it was when this was planned, so that no test changes its host
    let file = json!({"kind": "file", "place": "/run/systemd/system/x", "before": "x"});
    let lease = json!({"id": "l-1", "host": "h", "who": "w", "why": "y", "seconds": 60,
        "unit": "mysql.service", "client": ["client"], "restart": true, "trial": [file],
        "stored": []});
    let fault = host
        .begin(serde_json::from_value(lease).unwrap())
        .unwrap_err();
    assert!(fault
        .text
        .starts_with("mysql.service: systemd knows no main process"));
    assert!(host.all().unwrap().is_empty());
}
