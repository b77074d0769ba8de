//! What threads do, on a recorded tree and on threads of this machine.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use mydyno_probe::file::Root;
use mydyno_probe::process::Found;
use mydyno_probe::server::{Connections, Listed, Listing};
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

/// A list of threads that serve a client; none where there are none.
fn listed(connections: &[u32], asleep: &[u32]) -> Connections {
    let each = connections.iter().map(|tid| {
        let asleep = asleep.contains(tid);
        let serves = true;
        (*tid, Listed { serves, asleep })
    });
    let threads = (!connections.is_empty()).then(|| each.collect());
    Arc::new(Mutex::new(Listing { threads, round: 0 }))
}

/// Threads of process 7 by the list of its server.
fn watched(folder: &Folder, connections: &Connections) -> States {
    let found: Found = Arc::new(Mutex::new(vec![("db".to_owned(), 7)]));
    States::new(
        &Root::at(folder.path()),
        EACH,
        found,
        Arc::clone(connections),
    )
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
    let mut states = watched(&folder, &listed(&[10, 11, 12], &[10, 11]));
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

/// Else the probe's own connection and the cached ones seem to wait for latches.
#[test]
fn threads_named_so_are_connections_only_where_the_server_does_not_list_them() {
    let folder = Folder::new();
    for tid in 20..24 {
        thread(&folder, tid, "connection", "running\n", "");
    }
    let threads = |connections: &Connections| {
        let mut table = Table::new();
        watched(&folder, connections).read(&mut table).unwrap();
        ["", " apart", " unlisted"]
            .map(|class| value(&table, "state.threads", &format!("db/connection{class}")))
    };
    assert_eq!(threads(&listed(&[], &[])), [Some(4), None, None]);
    let connections = listed(&[20], &[]);
    assert_eq!(threads(&connections), [Some(1), None, Some(3)]);
    let own = HashMap::from([(21, Listed::default())]);
    connections.lock().unwrap().threads = Some(own);
    assert_eq!(threads(&connections), [None, Some(1), Some(3)]);
}

#[test]
fn a_list_that_changed_between_two_ticks_counts_from_the_next_look() {
    let folder = recorded();
    let connections = listed(&[10], &[]);
    let mut states = watched(&folder, &connections);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    let serving = Listed {
        serves: true,
        asleep: false,
    };
    *connections.lock().unwrap() = Listing {
        threads: Some(HashMap::from([(11, serving)])),
        round: 1,
    };
    for _ in 0..2 {
        states.look();
        sleep(Duration::from_millis(2));
    }
    states.read(&mut table).unwrap();
    let spent = |state: &str| value(&table, "state.seconds", &format!("db/connection/{state}"));
    assert_eq!(spent("running"), Some(50_000_000), "10, in the first look");
    assert!(spent("read.data").is_some(), "11, in the second one");
}

#[test]
fn a_thread_that_began_after_the_last_list_counts_from_its_begin() {
    let folder = recorded();
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[10, 17]);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    thread(&folder, 17, "mysqld", "running\n", "");
    states.read(&mut table).unwrap();
    assert_eq!(value(&table, "state.cpu", "db/connection"), Some(1000));
    assert_eq!(value(&table, "state.run_delay", "db/connection"), Some(500));
    let busiest = value(&table, "state.busiest", "db/connection");
    assert_eq!(busiest, Some(0), "of short connections one is always busy");
}

/// A hundred connections with the last numbers work, and each stands for itself.
fn worked(folder: &Folder, connections: &Connections) -> Table {
    let mut states = watched(folder, connections);
    let mut table = Table::new();
    states.read(&mut table).unwrap();
    for tid in 1600..1700 {
        folder.write(&format!("proc/7/task/{tid}/schedstat"), "3000 500 3\n");
    }
    states.read(&mut table).unwrap();
    let cpu = value(&table, "state.cpu", "db/connection");
    assert_eq!(cpu, Some(100 * 2000), "each stands for itself");
    table
}

/// A server that has kept a thousand threads for later connections has few at work.
#[test]
fn connections_at_work_are_opened_before_threads_that_serve_nobody() {
    let folder = Folder::new();
    for tid in 1000..1700 {
        thread(&folder, tid, "connection", "running\n", "");
    }
    let serving: Vec<u32> = (1600..1700).collect();
    let table = worked(&folder, &listed(&serving, &[]));
    let kept = value(&table, "state.threads", "db/connection unlisted");
    assert_eq!(kept, Some(600));
}

/// Most connections of a busy site sleep, and the oldest ones are the first by their numbers.
#[test]
fn connections_at_work_are_opened_before_those_that_sleep() {
    let folder = Folder::new();
    let (all, asleep): (Vec<u32>, Vec<u32>) = ((1000..1700).collect(), (1000..1600).collect());
    for tid in &all {
        thread(&folder, *tid, "mysqld", "running\n", "");
    }
    let table = worked(&folder, &listed(&all, &asleep));
    assert_eq!(value(&table, "state.threads", "db/connection"), Some(700));
    assert_eq!(value(&table, "state.idle", "db/connection"), Some(600));
}

#[test]
fn of_connections_that_sleep_some_stand_for_all() {
    let folder = Folder::new();
    let (all, asleep): (Vec<u32>, Vec<u32>) = ((1000..1700).collect(), (1600..1700).collect());
    for tid in &all {
        thread(&folder, *tid, "mysqld", "running\n", "");
    }
    let mut states = watched(&folder, &listed(&all, &asleep));
    let mut table = Table::new();
    for _ in 0..2 {
        states.read(&mut table).unwrap();
    }
    assert_eq!(value(&table, "state.threads", "db/connection"), Some(700));
    assert_eq!(value(&table, "state.idle", "db/connection"), Some(100));
}

/// A file that nobody may read, not even root, stands for one that needs the rights of a tracer.
#[test]
fn a_thread_that_may_not_be_looked_at_is_noted_once_with_the_next_step() {
    if fs::File::open("/proc/sys/vm/drop_caches").is_ok() {
        return; // before Linux 5.6 root may read it
    }
    let folder = recorded();
    folder.remove("proc/7/task/11/syscall");
    let place = folder.path().join("proc/7/task/11/syscall");
    symlink("/proc/sys/vm/drop_caches", place).unwrap();
    let (mut states, _) = source(&Root::at(folder.path()), 7, &[]);
    let mut table = Table::new();
    for _ in 0..2 {
        states.read(&mut table).unwrap();
        states.look();
    }
    let notes: Vec<_> = table.notes().iter().collect();
    assert_eq!(notes.len(), 1);
    assert_eq!(
        (notes[0].source.as_str(), notes[0].of.as_str()),
        ("states", "db")
    );
    assert!(notes[0]
        .text
        .contains("permission denied; run as root, or with CAP_SYS_PTRACE"));
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
