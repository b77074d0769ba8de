//! Whatever way a log comes, packed or not, at once or in parts, the digest is the same.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::GzEncoder;
use flate2::Compression;
use serde_json::{json, Value};

use crate::program::{command, json, run, run_on, Place, LOG};

/// `LOG` by `zstd -19`.
const ZST: &[u8] = include_bytes!("log.zst");

fn gz(text: &str) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// A digest without the names of its files.
fn nameless(mut digest: Value) -> Value {
    digest["summary"]["files"] = Value::Null;
    digest
}

#[test]
fn packed_or_not_the_digest_is_the_same() {
    let place = Place::new();
    let plain = nameless(json(run(&["--json"], &[&place.file("slow.log", LOG)])));
    assert_eq!(plain["summary"]["events"], json!(3));
    // The bytes and not the name show the packing.
    for (name, bytes) in [("slow.log", gz(LOG)), ("slow.log.gz", ZST.to_vec())] {
        assert_eq!(
            nameless(json(run(&["--json"], &[&place.file(name, &bytes)]))),
            plain
        );
        assert_eq!(nameless(json(run_on(&["--json"], &bytes))), plain);
    }
    assert_eq!(nameless(json(run_on(&["--json"], LOG.as_bytes()))), plain);
    assert_eq!(
        nameless(json(run(
            &["--json", "--threads=1"],
            &[&place.file("a", LOG)]
        ))),
        plain
    );
}

#[test]
fn xz_and_bzip2_are_unpacked_by_their_programs() {
    let place = Place::new();
    let plain = nameless(json(run(&["--json"], &[&place.file("slow.log", LOG)])));
    for program in ["xz", "bzip2"] {
        let log = place.file("packed", LOG);
        let packed = std::process::Command::new(program)
            .arg("-c")
            .arg(&log)
            .output();
        let Ok(packed) = packed.map(|output| output.stdout) else {
            continue; // not on this host
        };
        let found = json(run(&["--json"], &[&place.file("slow", &packed)]));
        assert_eq!(nameless(found), plain, "{program}");
        assert_eq!(
            nameless(json(run_on(&["--json"], &packed))),
            plain,
            "{program}"
        );
        let torn = run(
            &["--json"],
            &[&place.file("torn", &packed[..packed.len() / 2])],
        );
        assert_eq!(torn.status.code(), Some(3), "{torn:?}");
        let none = command(&["--json"])
            .arg(place.path().join("slow"))
            .env("PATH", "")
            .output();
        let none = none.unwrap();
        assert_eq!(none.status.code(), Some(2), "{none:?}");
        assert!(String::from_utf8_lossy(&none.stderr).contains(&format!("install {program}")));
    }
}

#[test]
fn packed_parts_follow_one_another() {
    let place = Place::new();
    let (first, second) = LOG.split_at(500);
    let parts = place.file("a", [gz(first), gz(second)].concat());
    let digest = json(run(&["--json"], &[&parts]));
    assert_eq!(digest["summary"]["events"], json!(3));
    assert_eq!(digest["summary"]["bytes"], json!(LOG.len()));
    let twice = place.file("b", [ZST, ZST].concat());
    assert_eq!(
        json(run(&["--json"], &[&twice]))["summary"]["query_time_s"],
        json!(4.800_014)
    );
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let place = Place::new();
    // A file begins without a database, whatever the one before it used.
    let log = LOG.replace("use shop;\n", "");
    let cut = log.find("# Time: 2026-11-21T01:42").unwrap();
    let (old, new) = (
        place.file("slow.log.1", &log[..cut]),
        place.file("slow.log", &log[cut..]),
    );
    let digest = |files: &[&Path]| nameless(json(run(&["--json", "--window=60s"], files)));
    let right = digest(&[&old, &new]);
    assert_eq!(right, digest(&[&new, &old]));
    assert_eq!(right, digest(&[&place.file("plain", &log)]));
    assert_eq!(right["windows"].as_array().unwrap().len(), 2);
}

#[test]
fn a_torn_pack_gives_what_was_read_and_is_reported() {
    let place = Place::new();
    let packed = gz(&LOG.repeat(2000));
    let torn = place.file("slow.log.gz", &packed[..packed.len() / 2]);
    let output = run(&["--json"], &[&torn]);
    assert_eq!(output.status.code(), Some(3));
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(complaint.starts_with("mydyno-probe: "), "{complaint}");
    assert!(complaint.contains("slow.log.gz: "), "{complaint}");
    let digest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        digest["summary"]["events"].as_u64().unwrap() > 1000,
        "{}",
        digest["summary"]
    );
}

#[test]
fn a_log_is_left_as_it_is() {
    let place = Place::new();
    let log = place.file("slow.log", LOG);
    let before = fs::metadata(&log).unwrap();
    json(run(&["--json"], &[&log]));
    let after = fs::metadata(&log).unwrap();
    assert_eq!(fs::read(&log).unwrap(), LOG.as_bytes());
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}
