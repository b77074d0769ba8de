//! Processes of this machine that come, go and come again.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use mydyno_probe::file::Root;
use mydyno_probe::options::Named;
use mydyno_probe::process::Processes;
use mydyno_probe::table::{Event, Source, Table};

use crate::folder::Folder;

/// Held by the tests that look at the threads of this very process.
static THREADS: Mutex<()> = Mutex::new(());

/// A process that ends with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        Self(Command::new("sleep").arg("60").spawn().unwrap())
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn by_pid(pid: u32) -> Processes {
    let named = Named {
        role: "x".to_owned(),
        value: pid,
    };
    Processes::new(&Root::default(), &[named], &[])
}

fn by_file(path: PathBuf) -> Processes {
    let named = Named {
        role: "x".to_owned(),
        value: path,
    };
    Processes::new(&Root::default(), &[], &[named])
}

/// Waits until a child has ended; nobody has waited for it.
fn ended(child: &Child) {
    let stat = format!("/proc/{}/stat", child.id());
    let begin = Instant::now();
    while !fs::read_to_string(&stat).unwrap().contains(") Z ") {
        assert!(begin.elapsed() < Duration::from_secs(20));
        sleep(Duration::from_millis(5));
    }
}

fn value(table: &Table, name: &str, of: &str) -> Option<i64> {
    table.get(table.find(name, of)?)
}

fn events(table: &Table) -> Vec<Event> {
    table.notes().iter().map(|note| note.event).collect()
}

#[test]
fn a_process_is_read_until_it_is_gone() {
    let mut table = Table::new();
    let sleeper = Sleeper::new();
    let mut source = by_pid(sleeper.pid());
    source.read(&mut table).unwrap();
    assert_eq!(value(&table, "process.threads", "x"), Some(1));
    assert!(value(&table, "process.rss", "x").unwrap() > 0);
    assert!(value(&table, "process.thread_cpu", "x/sleep").is_some());
    assert_eq!(events(&table), []);
    drop(sleeper);
    source.read(&mut table).unwrap();
    assert_eq!(events(&table), [Event::Gone]);
    assert_eq!(table.present(), 0);
    source.read(&mut table).unwrap();
    assert_eq!(events(&table), [Event::Gone]);
}

#[test]
fn a_process_that_was_not_waited_for_is_gone() {
    let mut table = Table::new();
    let mut sleeper = Sleeper::new();
    let mut source = by_pid(sleeper.pid());
    source.read(&mut table).unwrap();
    sleeper.0.kill().unwrap();
    ended(&sleeper.0);
    source.read(&mut table).unwrap();
    assert_eq!(events(&table), [Event::Gone]);
}

#[test]
fn a_file_may_come_later_and_name_the_next_process() {
    let folder = Folder::new();
    let path = folder.path().join("pid");
    let mut table = Table::new();
    let mut source = by_file(path.clone());
    source.read(&mut table).unwrap();
    assert_eq!(events(&table), [Event::Gone]);
    let first = Sleeper::new();
    fs::write(&path, format!("{}\n", first.pid())).unwrap();
    source.read(&mut table).unwrap();
    assert_eq!(events(&table), [Event::Gone, Event::Appeared]);
    let second = Sleeper::new();
    drop(first);
    fs::write(&path, format!("{}\n", second.pid())).unwrap();
    source.read(&mut table).unwrap();
    assert_eq!(events(&table)[2..], [Event::Gone, Event::Restart]);
    assert_eq!(table.present(), 0, "a row without values parts the two");
    source.read(&mut table).unwrap();
    assert_eq!(value(&table, "process.threads", "x"), Some(1));
}

#[test]
fn the_time_of_threads_is_that_of_their_class_also_after_they_end() {
    let _alone = THREADS.lock();
    let mut table = Table::new();
    let mut source = by_pid(std::process::id());
    let over = Arc::new(AtomicBool::new(false));
    let spin = |name: &str| {
        let spinning = std::thread::Builder::new().name(name.to_owned());
        let over = Arc::clone(&over);
        spinning.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    };
    let threads = [spin("spin-1").unwrap(), spin("spin-2").unwrap()];
    sleep(Duration::from_millis(50));
    source.read(&mut table).unwrap();
    let early = value(&table, "process.thread_cpu", "x/spin").unwrap();
    let (begin, mut busy) = (Instant::now(), early);
    while busy <= early + 20_000_000 && begin.elapsed() < Duration::from_secs(20) {
        sleep(Duration::from_millis(50));
        source.read(&mut table).unwrap();
        busy = value(&table, "process.thread_cpu", "x/spin").unwrap();
    }
    over.store(true, Ordering::Relaxed);
    assert!(busy > early + 20_000_000, "{early} {busy}");
    for thread in threads {
        thread.join().unwrap();
    }
    source.read(&mut table).unwrap();
    source.read(&mut table).unwrap();
    assert!(value(&table, "process.thread_cpu", "x/spin").unwrap() >= busy);
}

#[test]
fn more_threads_than_are_read_are_noted() {
    let _alone = THREADS.lock();
    let mut table = Table::new();
    // The threads wait for it until they were counted.
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let many: Vec<_> = (0..600)
        .map(|_| {
            let small = std::thread::Builder::new().stack_size(16 * 1024);
            let gate = Arc::clone(&gate);
            small.spawn(move || drop(gate.lock())).unwrap()
        })
        .collect();
    let mut source = by_pid(std::process::id());
    source.read(&mut table).unwrap();
    source.read(&mut table).unwrap();
    assert_eq!(events(&table), [Event::Gap]);
    assert!(value(&table, "process.threads", "x").unwrap() > 600);
    drop(closed);
    for thread in many {
        thread.join().unwrap();
    }
}

/// Process 7 of a recorded tree, by its number.
fn recorded(folder: &Folder) -> Processes {
    let named = Named {
        role: "x".to_owned(),
        value: 7,
    };
    Processes::new(&Root::at(folder.path()), &[named], &[])
}

fn stat(folder: &Folder, state: char, threads: u32, started: u32) {
    let used = "1 7 7 0 -1 4194560 11 2 33 4 55 66 7 8 20 0";
    let text = format!("7 (a) {state} {used} {threads} 0 {started} 9000 99 1\n");
    folder.write("proc/7/stat", &text);
}

#[test]
fn a_number_that_another_process_has_later_is_not_watched() {
    let folder = Folder::new();
    let (mut source, mut table) = (recorded(&folder), Table::new());
    stat(&folder, 'S', 1, 100);
    source.read(&mut table).unwrap();
    assert_eq!(value(&table, "process.threads", "x"), Some(1));
    for (state, started) in [('Z', 100), ('S', 200), ('S', 200)] {
        stat(&folder, state, 1, started);
        source.read(&mut table).unwrap();
        assert_eq!(table.present(), 0);
    }
    assert_eq!(events(&table), [Event::Gone]);
}

#[test]
fn what_a_thread_used_before_there_was_room_for_it_is_not_of_this_time() {
    let folder = Folder::new();
    let thread = |tid: u32, used: u32| {
        let at = |file: &str| format!("proc/7/task/{tid}/{file}");
        folder.write(&at("comm"), "w\n");
        folder.write(&at("schedstat"), &format!("{used} 500 3\n"));
    };
    let end = |tid: u32| {
        folder.write(&format!("proc/7/task/{tid}/schedstat"), "");
        fs::remove_dir_all(folder.path().join(format!("proc/7/task/{tid}"))).unwrap();
    };
    let (mut source, mut table) = (recorded(&folder), Table::new());
    let mut used = |threads: u32| {
        stat(&folder, 'S', threads, 100);
        source.read(&mut table).unwrap();
        value(&table, "process.thread_cpu", "x/w").unwrap()
    };
    (1000..1520).for_each(|tid| thread(tid, 1_000_000));
    assert_eq!(used(520), 512_000_000);
    (1000..1008).for_each(end);
    assert_eq!(used(512), 512_000_000);
    assert_eq!(used(512), 512_000_000, "others are read in their places");
    // With room for all, one that was not there before is new.
    end(1008);
    assert_eq!(used(511), 512_000_000);
    thread(2000, 7_000_000);
    assert_eq!(used(512), 519_000_000);
}
