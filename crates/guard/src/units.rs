//! Our two units on the host: one closes leases at boot, one compares kept leases afterwards.
//!
//! They lie below /usr/local, so that nothing of a trial is in /etc, and are removed by `forget`.
//! Where /usr/local is a filesystem of its own they lie in /etc: systemd reads its units before it
//! mounts that.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{symlink, MetadataExt as _};
use std::path::Path;

use crate::fault::{At as _, Result};
use crate::lease::{settled, synced, Change};
use crate::system::Client;

const LOCAL: &str = "/usr/local/lib/systemd/system";
const ETC: &str = "/etc/systemd/system";
const BOOT: &str = "mydyno-boot.service";
const VERIFY: &str = "mydyno-verify.service";
const WANTS: [(&str, &str); 2] = [
    ("sysinit.target.wants", BOOT),
    ("multi-user.target.wants", VERIFY),
];

/// Writes both units and what makes systemd start them.
pub fn install(server: &str) -> Result<()> {
    let guard = std::env::current_exe().at("mydyno-guard")?;
    let servers = format!("mariadb.service mysql.service mysqld.service {server}");
    let (guard, servers) = (guard.display().to_string(), servers.trim_end());
    let local = device("/usr/local")?;
    let is_there_at_boot = local == device("/usr")? || local == device("/")?;
    let folder = Path::new(if is_there_at_boot { LOCAL } else { ETC });
    write(folder, BOOT, &boot_unit(&guard, servers))?;
    write(
        folder,
        VERIFY,
        &format!(
            "[Unit]\nDescription=Compares what mydyno keeps with what is in force\n\
             After={servers}\nConditionDirectoryNotEmpty=/var/lib/mydyno/lease\n\n\
             [Service]\nType=oneshot\nExecStart={guard} verify\n"
        ),
    )?;
    for (wants, unit) in WANTS {
        let folder = folder.join(wants);
        let link = folder.join(unit);
        Change::file(&link, "").make_folders()?;
        match symlink(format!("../{unit}"), &link) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).at(link.display());
            }
            _ => synced(&folder)?,
        }
    }
    Ok(())
}

/// Returns the unit that closes leases before servers start and sysctl.d and tmpfiles.d are read.
///
/// It is not before udev: that makes the devices which `local-fs.target` waits for.
fn boot_unit(guard: &str, servers: &str) -> String {
    format!(
        "[Unit]\nDescription=Ends the trials of mydyno that a reboot has ended\n\
         DefaultDependencies=no\nAfter=local-fs.target\n\
         Before=sysinit.target systemd-sysctl.service systemd-tmpfiles-setup.service {servers}\n\
         ConditionDirectoryNotEmpty=/var/lib/mydyno/lease\n\n\
         [Service]\nType=oneshot\nExecStart={guard} boot\n"
    )
}

/// Removes both, and the folders that are empty then.
pub fn remove() -> Result<()> {
    for parent in [LOCAL, ETC].map(Path::new) {
        for (wants, unit) in WANTS {
            let folder = parent.join(wants);
            for path in [folder.join(unit), parent.join(unit)] {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(error).at(path.display());
                    }
                    _ => {}
                }
            }
            let _ = fs::remove_dir(&folder); // another's links may be there
        }
    }
    let _ = fs::remove_dir(LOCAL);
    let _ = fs::remove_dir("/usr/local/lib/systemd");
    [LOCAL, ETC]
        .map(Path::new)
        .into_iter()
        .try_for_each(settled)
}

fn device(path: &str) -> Result<u64> {
    Ok(fs::metadata(path).at(path)?.dev())
}

/// Writes a unit where nobody else can change it; it is durable when this returns.
fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let unit = Change::file(&folder.join(name), text);
    unit.make_folders()?;
    let nobody = Client(&[]);
    if unit.same(unit.present(&nobody)?.as_deref(), Some(text)) {
        return synced(folder);
    }
    unit.write(&nobody, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Before it, the boot would wait 90 s for the disks in fstab, and end in the emergency mode.
    #[test]
    fn the_boot_unit_waits_for_filesystems_and_udev_does_not_wait_for_it() {
        let text = boot_unit("/usr/local/libexec/mydyno-guard", "mysql.service");
        assert!(text.contains("\nAfter=local-fs.target\n"));
        let before = text
            .lines()
            .find(|line| line.starts_with("Before="))
            .unwrap();
        assert!(before.contains(" systemd-sysctl.service "));
        assert!(before.ends_with(" mysql.service"));
        assert!(!before.contains("udev"));
    }

    /// Whoever can write there would choose what root starts at each boot.
    #[test]
    fn a_unit_is_not_written_where_another_user_can_change_it() {
        let top = std::env::temp_dir().join(format!("mydyno-units-{}", std::process::id()));
        let folder = top.join("system");
        fs::create_dir_all(&folder).unwrap();
        fs::write(top.join("theirs"), "x").unwrap();
        for name in [".a.service.new", ".a.service.mydyno"] {
            symlink(top.join("theirs"), folder.join(name)).unwrap();
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(write(&folder, "a.service", "text").is_err());
        assert!(!folder.join("a.service").exists());
        assert_eq!(fs::read_to_string(top.join("theirs")).unwrap(), "x");
        fs::remove_dir_all(&top).unwrap();
    }
}
