//! Wrong requests and files that cannot be read: what is wrong, and the exit code.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use crate::program::{run, run_on, Place, LOG};

fn complaint(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn wrong_options_are_refused() {
    for words in [
        &["--sort=best"][..],
        &["--sort=Query_time:worst"],
        &["--limit=x"],
        &["--limit=200%"],
        &["--since=yesterday"],
        &["--since=2026-02-30"],
        &["--since=1h", "--until=2h"],
        &["--min-time=-1"],
        &["--window=0"],
        &["--window=0.5s"],
        &["--compat=other"],
        &["--threads=0"],
        &["--width=10"],
        &["--every=1s"],
        &["--new"],
        &["--id=1234"],
        &["--id=0xE199401B87FC8B8G"],
        &["--group-by=nothing"],
        &["--duration=1s"],
        &["--follow"],
        &["--follow", "--duration=0"],
        &["-"],
    ] {
        let words = complaint(&run_on(words, LOG.as_bytes()), 2);
        assert!(!words.is_empty());
    }
    complaint(&run(&[], &[]), 2);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let place = Place::new();
    let good = place.file("good.log", LOG);
    let missing = place.path().join("missing.log");
    let dangling = place.path().join("dangling.log");
    symlink(&missing, &dangling).unwrap();
    let cases: [(&Path, &str, i32); 3] = [
        (&missing, "missing.log: no such file", 2),
        (&dangling, "dangling.log: no such file", 2),
        (place.path(), ": is a directory; name the logs in it", 2),
    ];
    for (path, want, code) in cases {
        for follow in [&[][..], &["--follow", "--duration=1s"]] {
            let words = complaint(&run(follow, &[&good, path]), code);
            assert!(
                words.starts_with("mydyno-probe: ") && words.contains(want),
                "{words}"
            );
        }
    }
}

#[test]
fn a_packed_log_is_not_followed() {
    let place = Place::new();
    let packed = place.file("slow.log", b"\x1f\x8b\x08\x00");
    let words = complaint(&run(&["--follow", "--duration=1s"], &[&packed]), 2);
    assert!(words.contains("slow.log: is packed"), "{words}");
}

#[test]
fn a_file_without_rights_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let secret = place.file("secret.log", LOG);
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&secret).is_ok() {
        return; // root may read everything
    }
    let words = complaint(&run(&[], &[&secret]), 2);
    assert!(words.contains("secret.log: may not be read"), "{words}");
}

#[test]
fn utf16_is_named_with_the_command_that_converts_it() {
    let place = Place::new();
    let units = |order: fn(u16) -> [u8; 2]| LOG.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    for bytes in [
        [&[0xff, 0xfe][..], &units(u16::to_le_bytes)].concat(),
        [&[0xfe, 0xff][..], &units(u16::to_be_bytes)].concat(),
        units(u16::to_le_bytes),
    ] {
        let words = complaint(&run(&[], &[&place.file("u.log", &bytes)]), 2);
        assert!(words.contains("iconv -f UTF-16 -t UTF-8"), "{words}");
    }
}

/// Without an event the digest is empty, and the reason stands on standard error.
#[test]
fn a_log_without_an_event_has_a_hint() {
    let place = Place::new();
    let syslog = LOG
        .lines()
        .map(|line| format!("Nov 21 01:41:22 db1 mysqld[812]: {line}\n"))
        .collect::<Vec<_>>()
        .concat();
    for (text, want) in [
        (String::new(), "x.log: is empty;"),
        (syslog, "sed -E 's/^([^:]*:){3} ?//' FILE | mydyno digest -"),
        (
            "[Note] ready for connections\n".to_owned(),
            "x.log: has no event of a slow log",
        ),
    ] {
        let output = run(&[], &[&place.file("x.log", text)]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains(want), "{words}");
    }
}
