//! Orders to a helper by files: `order` has what is wanted, `state` what is in force.

use std::fs;
use std::io::{Error, Result};
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::life::start_time;

/// How often the order and the owner are looked at.
pub const LOOK: Duration = Duration::from_millis(50);

/// Obeys the file `order` of a folder until the owner is gone; `obey` returns what is in force.
///
/// Fails where the owner is gone at the start, or with the error of `obey`.
pub fn follow(
    dir: &Path,
    owner_pid: u32,
    mut obey: impl FnMut(&str) -> Result<String>,
) -> Result<()> {
    let Some(started) = start_time(owner_pid) else {
        return Err(Error::other("--owner-pid: no such process"));
    };
    let mut before = String::new();
    while start_time(owner_pid) == Some(started) {
        let now = obey(&fs::read_to_string(dir.join("order")).unwrap_or_default())?;
        if now != before {
            publish(dir, &now)?;
            before = now;
        }
        thread::sleep(LOOK);
    }
    Ok(())
}

/// The number that an order gives after a name; none where it has none, or one out of range.
pub fn number(order: &str, name: &str, least: f64, most: f64) -> Option<f64> {
    order
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(of, _)| *of == name)
        .and_then(|(_, text)| text.trim().parse().ok())
        .filter(|value| (least..=most).contains(value))
}

/// Replaces the file `state` at once, so that no reader sees half of it.
fn publish(dir: &Path, text: &str) -> Result<()> {
    let part = dir.join("state.part");
    fs::write(&part, text)?;
    fs::rename(part, dir.join("state"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_by_name_and_a_wrong_one_changes_nothing() {
        let order = "server 0.8\nload 0.9\n";
        assert_eq!(number(order, "server", 0.7, 1.0), Some(0.8));
        assert_eq!(number(order, "load", 0.7, 1.0), Some(0.9));
        for order in [
            "",
            "server",
            "server x",
            "server 0.1",
            "server NaN",
            "server 2",
        ] {
            assert_eq!(number(order, "server", 0.7, 1.0), None, "{order:?}");
        }
    }

    #[test]
    fn it_ends_when_its_owner_is_gone() {
        assert!(follow(&std::env::temp_dir(), 0, |_| Ok(String::new())).is_err());
    }
}
