//! One change, made or restored: each is a comparison before it is an act.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{fchown, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::fault::{At as _, Fault, Result};
use crate::lease::{synced, Change, Kind, Landed};
use crate::system::{run, Client};

const REMOUNT: Duration = Duration::from_secs(20);
const LARGEST: u64 = 1 << 20;

impl Change {
    /// Returns why it cannot be taken from a request: only known places are written.
    pub fn problem(&self) -> Option<String> {
        let fits = match self.kind {
            Kind::Value => is_value(&self.place),
            Kind::File => is_below(&self.place, &["/etc", "/run/systemd/system"]),
            Kind::Mount => is_below(&self.place, &["/"]) && !self.forth.is_empty(),
            Kind::Variable => self
                .place
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
        };
        let fits = fits && self.along.keys().all(|place| is_value(place));
        (!fits).then(|| format!("{}: not a place that a lease may change", self.place))
    }

    /// Returns its present value; of what is absent, none.
    pub fn present(&self, client: &Client<'_>) -> Result<Option<String>> {
        match self.kind {
            _ if self.is_gone() => Ok(None),
            Kind::Value => value(&self.place).map(Some),
            Kind::File => text(Path::new(&self.place)),
            Kind::Variable => client.variable(&self.place).map(Some),
            Kind::Mount => mounted(&self.place).map(Some),
        }
    }

    /// Returns whether a device was detached, a module unloaded or a filesystem unmounted.
    fn is_gone(&self) -> bool {
        match self.kind {
            Kind::Value => matches!(Path::new(&self.place).try_exists(), Ok(false)),
            Kind::Mount => !is_mounted(&self.place),
            Kind::File | Kind::Variable => false,
        }
    }

    /// Returns whether two of its values are the same.
    pub fn same(&self, one: Option<&str>, other: Option<&str>) -> bool {
        let (Some(one), Some(other)) = (one, other) else {
            return one.is_none() && other.is_none();
        };
        match self.kind {
            Kind::Value => one.split_whitespace().eq(other.split_whitespace()),
            Kind::Mount => sorted(one) == sorted(other),
            Kind::File | Kind::Variable => one == other,
        }
    }

    /// Returns whether a present value is one that this lease has made.
    pub fn ours(&self, present: Option<&str>, landed: Option<&Landed>) -> bool {
        // What is gone took our value with it; only a file can be restored then.
        let Some(landed) = landed.filter(|_| present.is_some() || self.kind == Kind::File) else {
            return false;
        };
        self.same(present, self.wanted.as_deref())
            || !landed.sure
            || self.same(present, landed.value.as_deref())
    }

    /// Makes the change, or with `back` takes it back.
    pub fn write(&self, client: &Client<'_>, back: bool) -> Result<()> {
        let target = if back { &self.before } else { &self.wanted };
        match (self.kind, target) {
            (Kind::Mount, _) => {
                let argv = if back { &self.back } else { &self.forth };
                let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
                run(&argv, "", REMOUNT).map(drop)
            }
            (Kind::Value, Some(value)) => set_value(&self.place, value),
            (Kind::Variable, Some(value)) => client.set(&self.place, value),
            (Kind::File, Some(text)) => {
                self.stage(text)?;
                self.install()
            }
            (Kind::File, None) => self.remove(),
            (_, None) => Err(Fault::wrong(format!("{}: no value", self.place))),
        }
    }

    /// Takes the change back, then what the kernel moves along with it, but what is `kept`.
    ///
    /// Of a pair in two units the kernel takes a value for one and then shows no other: where the
    /// first one is refused, it comes with its partner.
    pub fn write_back(&self, client: &Client<'_>, kept: &BTreeMap<String, String>) -> Result<()> {
        let done = self.write(client, true);
        // A server may answer with a warning, and leave a pool as it is while it is resized.
        if self.along.is_empty() && self.kind != Kind::Variable {
            return done;
        }
        self.move_along(kept)?;
        let present = self.present(client)?;
        if self.same(present.as_deref(), self.before.as_deref()) {
            return Ok(());
        }
        done.and(Err(Fault::failed(format!(
            "{}: is not as it was",
            self.place
        ))))
    }

    /// Restores what the kernel has moved along, or sets it to what is `kept`; what went is passed
    /// over.
    pub fn move_along(&self, kept: &BTreeMap<String, String>) -> Result<()> {
        for (place, before) in &self.along {
            let wanted = kept.get(place).unwrap_or(before);
            if value(place).is_ok_and(|present| present != *wanted) {
                set_value(place, wanted)?;
            }
        }
        Ok(())
    }

    /// Returns the present values of what the kernel moves along.
    pub fn moved_along(&self) -> BTreeMap<String, String> {
        let places = self.along.keys();
        places
            .filter_map(|place| Some((place.clone(), value(place).ok()?)))
            .collect()
    }

    /// Returns the values, by place, that somebody has set since the kernel moved these along.
    pub fn set_since(&self, landed: Option<&Landed>) -> BTreeMap<String, String> {
        let mut found = self.moved_along();
        found.retain(|place, present| {
            let moved = landed.and_then(|one| one.along.get(place));
            moved.is_some_and(|moved| moved != present) && self.along[place] != *present
        });
        found
    }

    /// Returns the folders above a file that are missing, outermost first.
    pub fn missing_folders(&self) -> Vec<String> {
        let above = Path::new(&self.place).ancestors().skip(1);
        let mut found: Vec<String> = above
            .take_while(|folder| !folder.exists())
            .map(|folder| folder.display().to_string())
            .collect();
        found.reverse();
        found
    }

    /// Returns the change that gives a file its text, with the folders that are missing above it.
    pub fn file(place: &Path, text: &str) -> Self {
        let mut one = Self {
            kind: Kind::File,
            place: place.display().to_string(),
            before: None,
            wanted: Some(text.to_owned()),
            forth: Vec::new(),
            back: Vec::new(),
            made: Vec::new(),
            along: BTreeMap::new(),
        };
        one.made = one.missing_folders();
        one
    }

    /// Makes the folders of a file; raises where another user can change one above it.
    pub fn make_folders(&self) -> Result<()> {
        for folder in &self.made {
            trusted(Path::new(folder))?; // before: nobody else can put a link in its place then
            match fs::create_dir(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(Fault::failed(format!("{folder}: {error}")));
                }
                Err(_) => {}
                Ok(()) => {
                    let rights = fs::Permissions::from_mode(0o755);
                    fs::set_permissions(folder, rights).at(folder)?;
                    synced(parent(Path::new(folder)))?;
                }
            }
        }
        trusted(Path::new(&self.place))
    }

    /// Writes a file's new text beside it, with the rights of the present one.
    pub fn stage(&self, text: &str) -> Result<()> {
        self.make_folders()?;
        let (place, new) = (Path::new(&self.place), self.staged());
        let _ = fs::remove_file(&new); // one of a crash
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .at(new.display())?;
        let done = file
            .write_all(text.as_bytes())
            .at(new.display())
            .and_then(|()| like(place, &file))
            .and_then(|()| file.sync_all().at(new.display()));
        if done.is_err() {
            let _ = fs::remove_file(&new);
        }
        done
    }

    /// Puts a staged file into its place.
    pub fn install(&self) -> Result<()> {
        fs::rename(self.staged(), &self.place).at(&self.place)?;
        synced(parent(Path::new(&self.place)))
    }

    /// Removes a staged file, and the folders made for it as far as they are empty.
    pub fn unstage(&self) {
        if self.kind == Kind::File {
            let _ = fs::remove_file(self.staged());
            if text(Path::new(&self.place)).is_ok_and(|found| found.is_none()) {
                self.remove_folders();
            }
        }
    }

    fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.place) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Fault::failed(format!("{}: {error}", self.place)));
            }
            _ => {}
        }
        let _ = synced(parent(Path::new(&self.place))); // the folder may be gone, too
        self.remove_folders();
        Ok(())
    }

    fn remove_folders(&self) {
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder); // with another's file in it, it stays
        }
    }

    fn staged(&self) -> PathBuf {
        let place = Path::new(&self.place);
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        parent(place).join(format!(".{name}.mydyno"))
    }
}

fn is_below(place: &str, tops: &[&str]) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@:+-\\".contains(c);
    let is_path = !place.contains("..") && place.chars().all(plain);
    is_path && tops.iter().any(|top| Path::new(place).starts_with(top))
}

fn is_value(place: &str) -> bool {
    is_below(place, &["/proc/sys", "/sys"])
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Gives a new file the owner, the rights and the labels of the one that it replaces.
fn like(place: &Path, file: &File) -> Result<()> {
    let Ok(found) = fs::symlink_metadata(place) else {
        let rights = fs::Permissions::from_mode(0o644);
        return file.set_permissions(rights).at(place.display());
    };
    fchown(file, Some(found.uid()), Some(found.gid())).at(place.display())?;
    file.set_permissions(fs::Permissions::from_mode(found.mode() & 0o7777))
        .at(place.display())?;
    let mut names = vec![0; 4096];
    let Ok(length) = rustix::fs::llistxattr(place, &mut names) else {
        return Ok(()); // a filesystem without labels
    };
    for name in names[..length].split(|b| *b == 0).filter(|n| !n.is_empty()) {
        let mut label = vec![0; 65536];
        if let Ok(size) = rustix::fs::lgetxattr(place, name, &mut label) {
            let flags = rustix::fs::XattrFlags::empty();
            rustix::fs::fsetxattr(file, name, &label[..size], flags).at(place.display())?;
        }
    }
    Ok(())
}

/// Raises where another user can change a folder above the file.
fn trusted(place: &Path) -> Result<()> {
    let folder = fs::canonicalize(parent(place)).at(place.display())?;
    // Of a link also the folders that it is in: who can change those points it elsewhere.
    for above in parent(place).ancestors().chain(folder.ancestors()) {
        let found = fs::metadata(above).at(above.display())?;
        let own = rustix::process::geteuid().as_raw();
        if ![0, own].contains(&found.uid()) || found.mode() & 0o022 != 0 {
            return Err(Fault::refused(format!(
                "{}: another user can change it; give it to root with mode 0755",
                above.display()
            )));
        }
    }
    Ok(())
}

/// Returns a file's text; none where there is no file.
fn text(place: &Path) -> Result<Option<String>> {
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Fault::failed(format!("{}: {error}", place.display()))),
        Ok(found) if !found.is_file() || found.len() > LARGEST => Err(Fault::refused(format!(
            "{}: not a plain file of up to 1 MiB; a lease changes no other",
            place.display()
        ))),
        Ok(_) => fs::read_to_string(place).at(place.display()).map(Some),
    }
}

fn value(place: &str) -> Result<String> {
    let shown = fs::read_to_string(place).at(place)?;
    let chosen = shown
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(shown.trim(), |(word, _)| word);
    Ok(chosen.to_owned())
}

fn set_value(place: &str, value: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).open(place);
    file.and_then(|mut one| one.write_all(value.as_bytes()))
        .at(place)
}

/// Returns whether something is mounted there; where that cannot be read, that it is.
fn is_mounted(place: &str) -> bool {
    let escaped = place.replace('\\', "\\134"); // others that are escaped stand in no place
    fs::read_to_string("/proc/self/mountinfo").map_or(true, |all| {
        all.lines()
            .any(|line| line.split(' ').nth(4) == Some(escaped.as_str()))
    })
}

fn mounted(place: &str) -> Result<String> {
    let argv = [
        "findmnt",
        "--noheadings",
        "--output",
        "OPTIONS",
        "--mountpoint",
        place,
    ];
    run(&argv, "", REMOUNT).map(|shown| shown.trim().to_owned())
}

fn sorted(options: &str) -> Vec<&str> {
    let mut words: Vec<&str> = options.split(',').collect();
    words.sort_unstable();
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Commands;
    use std::collections::BTreeMap;

    fn change(kind: Kind, place: &str) -> Change {
        Change {
            kind,
            place: place.to_owned(),
            before: Some("a".to_owned()),
            wanted: None,
            forth: vec!["mount".to_owned()],
            back: Vec::new(),
            made: Vec::new(),
            along: BTreeMap::new(),
        }
    }

    /// A plain file stands for a value that the kernel takes and shows again.
    #[test]
    fn what_moved_along_is_restored_with_a_value_and_what_is_gone_is_passed_over() {
        let top = std::env::temp_dir().join(format!("mydyno-along-{}", std::process::id()));
        fs::create_dir(&top).unwrap();
        let at = |name: &str| top.join(name).to_string_lossy().into_owned();
        let mut one = change(Kind::Value, &at("scheduler"));
        one.before = Some("mq-deadline".to_owned());
        for (name, before) in [("depth", "77"), ("same", "5"), ("gone", "1")] {
            one.along.insert(at(name), before.to_owned());
        }
        for (name, now) in [("scheduler", "none"), ("depth", "256"), ("same", "5")] {
            fs::write(top.join(name), now).unwrap();
        }
        one.write_back(&Client(&[]), &BTreeMap::new()).unwrap();
        let shown = ["scheduler", "depth", "same"].map(|name| value(&at(name)).unwrap());
        assert!(shown[0].starts_with("mq-deadline"));
        assert!(shown[1].starts_with("77"));
        assert_eq!(shown[2], "5");
        fs::remove_dir_all(&top).unwrap();
    }

    /// A server that answers yes, and leaves its pool as it is as long as that is being resized.
    #[test]
    fn a_variable_that_the_server_leaves_as_it_is_was_not_restored() {
        let commands = Commands::new();
        let at = |name: &str| commands.folder.join(name).display().to_string();
        commands.put(
            "client",
            &format!(
                "read -r text; case $text in SET*) [ -e {resizing} ] || echo \"${{text##* }}\" \
                 >{value};; *) printf 'pool\\t'; cat {value};; esac",
                resizing = at("resizing"),
                value = at("value")
            ),
        );
        fs::write(at("value"), "200\n").unwrap();
        fs::write(at("resizing"), "").unwrap();
        let client = ["client".to_owned()];
        let mut one = change(Kind::Variable, "pool");
        one.before = Some("100".to_owned());
        assert!(one.write_back(&Client(&client), &BTreeMap::new()).is_err());
        fs::remove_file(at("resizing")).unwrap();
        one.write_back(&Client(&client), &BTreeMap::new()).unwrap();
    }

    #[test]
    fn only_known_places_are_written() {
        for (kind, place) in [
            (Kind::Value, "/proc/sys/vm/swappiness"),
            (Kind::Value, "/sys/block/sdc/queue/scheduler"),
            (Kind::File, "/etc/fstab"),
            (Kind::File, "/run/systemd/system/a.service.d/b.conf"),
            (Kind::Variable, "sort_buffer_size"),
            (Kind::Mount, "/data"),
        ] {
            assert_eq!(change(kind, place).problem(), None, "{place}");
        }
        for (kind, place) in [
            (Kind::Value, "/proc/1/mem"),
            (Kind::Value, "/sys/../etc/shadow"),
            (Kind::File, "/root/.ssh/authorized_keys"),
            (Kind::File, "/etc/../root/x"),
            (Kind::File, "/etcetera"),
            (Kind::File, "/run/x"),
            (Kind::Variable, "x = 1; DROP TABLE t"),
            (Kind::Variable, "x'y"),
            (Kind::Mount, "data"),
        ] {
            assert!(change(kind, place).problem().is_some(), "{place}");
        }
        let mut one = change(Kind::Value, "/proc/sys/vm/dirty_bytes");
        one.along.insert("/etc/shadow".to_owned(), String::new());
        assert!(one.problem().is_some());
    }

    #[test]
    fn a_new_file_is_made_with_its_folders_and_both_are_removed() {
        let top = std::env::temp_dir().join(format!("mydyno-change-{}", std::process::id()));
        fs::create_dir(&top).unwrap();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).unwrap();
        let mut one = change(Kind::File, &top.join("a/b/c.conf").to_string_lossy());
        one.before = None;
        one.wanted = Some("text\n".to_owned());
        one.made = one.missing_folders();
        assert_eq!(one.made.len(), 2);
        // /tmp can be written to by others, so the file is refused, and nothing stays
        assert!(one.write(&Client(&[]), false).is_err());
        one.unstage();
        assert!(!top.join("a").exists());
        fs::remove_dir(&top).unwrap();
    }

    #[test]
    fn a_link_that_another_user_can_change_is_not_followed() {
        let top = std::env::temp_dir().join(format!("mydyno-link-{}", std::process::id()));
        fs::create_dir(&top).unwrap();
        std::os::unix::fs::symlink("/etc", top.join("etc")).unwrap();
        assert!(trusted(Path::new("/etc/a.conf")).is_ok());
        assert!(trusted(&top.join("etc/a.conf")).is_err());
        fs::remove_dir_all(&top).unwrap();
    }

    #[test]
    fn values_are_compared_by_words_and_options_as_sets() {
        let value = change(Kind::Value, "/proc/sys/x");
        assert!(value.same(Some("4096\t131072"), Some("4096 131072")));
        let mount = change(Kind::Mount, "/data");
        assert!(mount.same(Some("rw,noatime"), Some("noatime,rw")));
        assert!(!mount.same(Some("rw"), None));
    }
}
