//! The device's bytes, on one disk and on several, before and after the freeze.

use crate::pages::{PAGE, REGION};
use crate::store::{Files, Store};
use crate::stripe::Stripe;
use std::fs;
use std::path::PathBuf;
use std::thread;

const SIZE: u64 = 2 * REGION;

/// A folder of this test's own, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mydyno-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn store(&self, frozen: bool) -> Store {
        self.striped(Stripe::new(1, PAGE), frozen)
    }

    fn striped(&self, stripe: Stripe, frozen: bool) -> Store {
        let files = |number| Files {
            base: self.0.join(format!("base-{number}")),
            overlay: self.0.join(format!("overlay-{number}")),
        };
        let files: Vec<_> = (0..stripe.disks()).map(files).collect();
        Store::open(&files, stripe, SIZE, frozen).expect("a store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let byte = |i: usize| (i as u64 * 31 + seed * 7 + 1).to_le_bytes()[0];
    (0..len).map(byte).collect()
}

#[test]
fn a_dropped_overlay_gives_the_base_again() {
    let folder = Folder::new("drop");
    let store = folder.store(false);
    let all = u32::try_from(SIZE).expect("small");
    store.write(1000, &pattern(1, 9000)).expect("direct");
    let golden = store.read(0, all).expect("read");
    assert!(store.freeze().expect("freeze"));
    for at in [0, 511, 4096, REGION - 100, SIZE - 3000] {
        store.write(at, &pattern(at, 3000)).expect("overlay");
    }
    assert_ne!(store.read(0, all).expect("read"), golden);
    assert!(store.drop_overlay().expect("drop"));
    assert_eq!(store.read(0, all).expect("read"), golden);
    assert_eq!(store.overlay_pages(), Some(0));
}

#[test]
fn partial_writes_keep_the_base_around_them() {
    let folder = Folder::new("partial");
    let store = folder.store(false);
    let mut want = pattern(3, 20_000);
    store.write(0, &want).expect("direct");
    store.freeze().expect("freeze");
    for (at, len) in [
        (512, 512),
        (4000, 200),
        (8192, 4096),
        (12_000, 7000),
        (600, 10),
    ] {
        let data = pattern(at as u64, len);
        store.write(at as u64, &data).expect("overlay");
        want[at..at + len].copy_from_slice(&data);
    }
    assert_eq!(store.read(0, 20_000).expect("read"), want);
}

#[test]
fn writers_of_one_page_do_not_undo_each_other() {
    let folder = Folder::new("race");
    let store = folder.store(true);
    let sectors = 256_u64;
    thread::scope(|scope| {
        for first in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for sector in (first..sectors).step_by(4) {
                    store
                        .write(sector * 512, &pattern(sector, 512))
                        .expect("write");
                }
            });
        }
    });
    for sector in 0..sectors {
        let got = store.read(sector * 512, 512).expect("read");
        assert_eq!(got, pattern(sector, 512), "sector {sector}");
    }
}

#[test]
fn the_end_of_the_disk_is_held() {
    let folder = Folder::new("end");
    let store = folder.store(false);
    assert_eq!(store.read(SIZE - 100, 4096).expect("read").len(), 100);
    assert_eq!(store.read(SIZE + 1, 4096).expect("read").len(), 0);
    assert!(store.write(SIZE - 100, &[1; 101]).is_err());
}

#[test]
fn what_makes_no_sense_is_refused_and_no_file_is_left() {
    let folder = Folder::new("stages");
    let store = folder.store(false);
    assert!(!store.drop_overlay().expect("nothing to drop"));
    assert!(store.freeze().expect("first"));
    assert!(!store.freeze().expect("second"));
    assert!(!folder.0.join("overlay-0").exists());
}

#[test]
fn striped_bytes_come_back_before_and_after_the_freeze() {
    for (disks, chunk) in [(2, 4096), (3, 12 * 1024), (4, 64 * 1024)] {
        let folder = Folder::new(&format!("striped-{disks}-{chunk}"));
        let store = folder.striped(Stripe::new(disks, chunk), false);
        let all = u32::try_from(store.size()).expect("small");
        let mut want = pattern(disks as u64, store.size().try_into().expect("small"));
        store.write(0, &want).expect("direct");
        store.freeze().expect("freeze");
        for (at, len) in [(0, 512), (4000, 9000), (65_000, 70_000), (130_000, 300)] {
            let data = pattern(at as u64 + 5, len);
            store.write(at as u64, &data).expect("overlay");
            want[at..at + len].copy_from_slice(&data);
        }
        assert!(
            store.read(0, all).expect("read") == want,
            "{disks} x {chunk}"
        );
        store.drop_overlay().expect("drop");
        let golden = pattern(disks as u64, want.len());
        assert!(
            store.read(0, all).expect("read") == golden,
            "{disks} x {chunk}"
        );
    }
}

#[test]
fn each_disk_has_a_file_of_its_own_size() {
    let folder = Folder::new("sizes");
    let store = folder.striped(Stripe::new(3, 64 * 1024), false);
    assert_eq!(store.size(), 3 * 2 * 64 * 1024);
    for number in 0..3 {
        let file = fs::metadata(folder.0.join(format!("base-{number}"))).expect("a file");
        assert_eq!(file.len(), 2 * 64 * 1024);
    }
}
