//! What threads do, on a recorded tree and on threads of this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use mydyno_probe::file::Root;
use mydyno_probe::process::Found;
use mydyno_probe::server::Connections;
use mydyno_probe::states::States;
use mydyno_probe::table::{Source, Table};

use crate::folder::Folder;

const EACH: Duration = Duration::from_millis(50);

fn value(table: &Table, name: &str, of: &str) -> Option<i64> {
    table.get(table.find(name, of)?)
}

/// A thread of process 7 with its system call and where it waits.
fn thread(folder: &Folder, tid: u32, name: &str, call: &str, place: &str) {
    let at = |file: &str| format!("proc/7/task/{tid}/{file}");
    folder.write(&at("comm"), &format!("{name}\n"));
    folder.write(&at("syscall"), call);
    folder.write(&at("wchan"), place);
    folder.write(&at("schedstat"), "1000 500 3\n");
}

fn recorded() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path().join("proc/7/fd")).unwrap();
    for (fd, link) in [
        (3, "/d/ib_logfile0"),
        (4, "/d/sbtest/t.ibd"),
        (5, "socket:[9]"),
    ] {
        symlink(link, folder.path().join(format!("proc/7/fd/{fd}"))).unwrap();
    }
    let call = |number: libc::c_long, argument: u32| format!("{number} 0x{argument:x} 0x1 0x2\n");
    let journal = "jbd2_log_wait_commit";
    thread(&folder, 10, "mysqld", "running\n", "0");
    thread(
        &folder,
        11,
        "mysqld",
        &call(libc::SYS_pread64, 4),
        "folio_wait",
    );
    thread(
        &folder,
        12,
        "mysqld",
        &call(libc::SYS_fdatasync, 3),
        journal,
    );
    thread(
        &folder,
        13,
        "mysqld",
        &call(libc::SYS_recvfrom, 5),
        "sk_wait",
    );
    thread(&folder, 14, "mysqld", "-1 0x7ffe 0x55\n", "do_swap_page");
    thread(
        &folder,
        15,
        "ib_io_rd-1",
        &call(libc::SYS_io_getevents, 6),
        "",
    );
    thread(&folder, 16, "ib_io_rd-2", &call(libc::SYS_futex, 1), "");
    folder
}

fn source(root: &Root, pid: u32, connections: &[u32]) -> (States, Found) {
    let found: Found = Arc::new(Mutex::new(vec![("db".to_owned(), pid)]));
    (
        States::new(root, EACH, Arc::clone(&found), listed(connections, &[])),
        found,
    )
}

fn listed(connections: &[u32], asleep: &[u32]) -> Connections {
    let each = connections.iter().map(|tid| (*tid, asleep.contains(tid)));
    Arc::new(Mutex::new(each.collect()))
}

#[test]
fn each_thread_is_in_the_state_of_its_call() {
    let folder = recorded();
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[10, 11, 12, 13, 14]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    states.look();
    states.read(&mut table).unwrap();
    for state in [
        "connection/running",
        "connection/read.data",
        "connection/sync.redo.journal",
        "connection/read.socket",
        "connection/fault",
        "ib_io_rd/aio",
        "ib_io_rd/futex",
    ] {
        let spent = value(&table, "state.seconds", &format!("db/{state}"));
        assert_eq!(spent, Some(50_000_000), "{state}");
    }
    assert_eq!(value(&table, "state.looks", "db"), Some(1));
    assert_eq!(value(&table, "state.threads", "db/connection"), Some(5));
    assert_eq!(value(&table, "state.threads", "db/ib_io_rd"), Some(2));
}

#[test]
fn time_on_a_processor_counts_from_the_second_reading() {
    let folder = recorded();
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[10, 11]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    assert_eq!(value(&table, "state.cpu", "db/connection"), Some(0));
    folder.write("proc/7/task/10/schedstat", "4000 900 5\n");
    states.read(&mut table).unwrap();
    assert_eq!(value(&table, "state.cpu", "db/connection"), Some(3000));
    assert_eq!(value(&table, "state.run_delay", "db/connection"), Some(400));
}

#[test]
fn the_busiest_thread_of_a_class_is_no_sum() {
    let folder = recorded();
    let used = |tid: u32, text: &str| folder.write(&format!("proc/7/task/{tid}/schedstat"), text);
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[10, 11]);
    let mut table = Table::new();
    for (one, other) in [("0 0 1\n", "0 0 1\n"), ("500 50 2\n", "200 10 2\n")] {
        used(10, one);
        used(11, other);
        states.read(&mut table).unwrap();
    }
    let busiest = value(&table, "state.busiest", "db/connection");
    assert_eq!(busiest, Some(550));
}

#[test]
fn a_connection_that_sleeps_and_used_no_processor_is_idle() {
    let folder = recorded();
    let found: Found = Arc::new(Mutex::new(vec![("db".to_owned(), 7)]));
    let connections = listed(&[10, 11, 12], &[10, 11]);
    let mut states = States::new(&Root::at(folder.path()), EACH, found, connections);
    let mut table = Table::new();
    let mut idle = || {
        states.read(&mut table).unwrap();
        value(&table, "state.idle", "db/connection")
    };
    assert_eq!(idle(), Some(0), "nothing is known of the time before");
    folder.write("proc/7/task/10/schedstat", "4000 900 5\n");
    assert_eq!(idle(), Some(1), "10 had work, 12 is in a query");
    assert_eq!(idle(), Some(2));
}

/// Seconds of threads must add up to all of them, though a part is looked at.
#[test]
fn of_many_threads_a_part_stands_for_all() {
    let folder = Folder::new();
    for tid in 100..300 {
        let call = if tid % 2 == 0 {
            "running\n"
        } else {
            "202 0x1\n"
        };
        thread(&folder, tid, "w", call, "");
    }
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    for _ in 0..40 {
        states.look();
        sleep(Duration::from_millis(2));
    }
    states.read(&mut table).unwrap();
    let spent = |state: &str| value(&table, "state.seconds", &format!("db/w/{state}")).unwrap();
    let other = if cfg!(target_arch = "x86_64") {
        "futex"
    } else {
        "other"
    };
    let (running, waiting) = (spent("running"), spent(other));
    let looked = value(&table, "state.looks", "db").unwrap();
    assert_eq!(looked, 40);
    let half = f64::from(u32::try_from(running / 1000).unwrap())
        / f64::from(u32::try_from((running + waiting) / 1000).unwrap());
    assert!((0.4..0.6).contains(&half), "{half}");
    assert!((running + waiting) / 200 > 40 * 2_000_000);
}

#[test]
fn more_threads_than_are_opened_are_stood_for_and_noted() {
    let folder = Folder::new();
    for tid in 1000..1600 {
        thread(&folder, tid, "w", "running\n", "");
    }
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    states.look();
    states.read(&mut table).unwrap();
    let spent = value(&table, "state.seconds", "db/w/running").unwrap();
    assert!((spent - 600 * 50_000_000).abs() < 1000, "{spent}");
    assert_eq!(value(&table, "state.threads", "db/w"), Some(600));
    let notes: Vec<_> = table.notes().iter().map(|note| &note.text).collect();
    assert_eq!(notes, ["600 threads, of which 512 stand for all"]);
}

/// Their names need not be read at each tick.
#[test]
fn threads_that_are_not_opened_have_no_class() {
    let folder = Folder::new();
    for tid in 1000..1600 {
        thread(&folder, tid, &format!("n{tid}x"), "running\n", "");
    }
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    let is_class = |tid: &u32| {
        table
            .find("state.threads", &format!("db/n{tid}x"))
            .is_some()
    };
    assert_eq!((1000..1600).filter(is_class).count(), 512);
}

#[test]
fn what_ended_has_no_states() {
    let folder = recorded();
    let (mut states, found) = source(&Root::at(folder.path()), 7, &[]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    states.look();
    states.read(&mut table).unwrap();
    assert!(table.present() > 0);
    found.lock().unwrap().clear();
    states.read(&mut table).unwrap();
    assert_eq!(table.present(), 0);
}

#[test]
fn a_sleeping_process_sleeps() {
    let mut sleeper = std::process::Command::new("sleep")
        .arg("30")
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(100));
    let (mut states, _) = source(&Root::default(), sleeper.id(), &[]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    states.look();
    states.read(&mut table).unwrap();
    let spent = value(&table, "state.seconds", "db/sleep/sleep");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(spent, Some(50_000_000));
}
