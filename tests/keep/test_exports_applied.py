"""What `export` writes, applied by its own tools on a host run by systemd, seen, and taken back."""

import json
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest

from keep.desk import MYDYNO
from keep.guest import run
from mydyno.keep.kept import KEPT, Kept, KeptOn, bundle, form_of

pytestmark = [pytest.mark.root, pytest.mark.mysqld]
SETTINGS = {
    "mysqld.innodb_log_buffer_size": "32M",
    "mysqld.max_connections": "300",
    "kernel.sysctl.net.core.somaxconn": "2048",
    "limits.nofile": "15000",
    "env.NOTE": "a b",
}
FIRST = {"kernel.sysctl.net.core.somaxconn": "4096"}
TREATMENT = Kept(
    SETTINGS, ("mydyno: FAST of the campaign c",), FIRST, "mariadb", (10, 11, 19), KeptOn()
)


def exported(folder, name, settings=SETTINGS):
    """Write a treatment and its inverse as `export` does; return both."""
    kept = TREATMENT.only(list(settings))
    made = bundle(kept, form_of(name))
    for part, files in (("apply", made.write), ("revert", made.inverse)):
        for file in files:
            path = folder / part / file.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text)
    (folder / KEPT).write_text(json.dumps(asdict(kept)))
    return made


def copied(guest, folder):
    """Copy a folder to the guest's root, with the rights of /etc."""
    for path in sorted(folder.rglob("*")):
        there = guest.root / path.relative_to(folder)
        if path.is_dir():
            there.mkdir(exist_ok=True)
        else:
            there.write_text(path.read_text())
            there.chmod(0o644)


def reloaded(guest, files):
    for file in files:
        if file.reload:
            guest.inside(*file.reload)
    guest.inside("systemctl", "restart", "mariadb")


def test_native_files_are_in_force_after_their_reloads_and_a_reboot(desk, tmp_path):
    values = desk.values()
    made = exported(tmp_path, "native")
    copied(desk.guest, tmp_path / "apply")
    reloaded(desk.guest, made.write)
    assert drifted(desk, tmp_path) == {}
    desk.guest.reboot()
    assert drifted(desk, tmp_path) == {}
    copied(desk.guest, tmp_path / "revert")
    reloaded(desk.guest, made.inverse)
    assert desk.values() == values


def drifted(desk, folder):
    """Return the settings that `verify` finds elsewhere than kept."""
    words = ("verify", str(folder), "--host", desk.guest.ssh, "--json")
    done = subprocess.run(
        [MYDYNO, *words], env=desk.env, capture_output=True, text=True, check=False
    )
    return {row["key"]: row["state"] for row in json.loads(done.stdout) if row["state"] != "kept"}


def played(desk, playbook):
    """Run a playbook on the guest by ssh; return the number of changes."""
    inventory = desk.folder / "hosts"
    options = f"ansible_ssh_common_args='-F {desk.guest.folder}/ssh_config'"
    inventory.write_text(f"{desk.guest.address} ansible_user=root {options}\n")
    done = run("ansible-playbook", "-i", inventory, playbook)
    (line,) = [one for one in done.splitlines() if "changed=" in one and "ok=" in one]
    return int(line.split("changed=")[1].split()[0])


def test_a_playbook_changes_once_and_its_inverse_restores(desk, tmp_path):
    values, first = desk.values(), desk.guest.state()
    exported(tmp_path, "ansible")
    (apply,) = (tmp_path / "apply").iterdir()
    (revert,) = (tmp_path / "revert").iterdir()
    assert played(desk, apply) > 0
    assert desk.values() != values
    assert played(desk, apply) == 0, "the second run changes nothing"
    assert played(desk, revert) > 0
    assert played(desk, revert) == 0
    assert desk.values() == values
    left = {k for k in desk.guest.state().items() ^ first.items() if "mydyno" not in k[0]}
    assert {name for name, _ in left} <= {"etc/systemd/system/mariadb.service.d"}


def test_a_profile_of_tuned_is_verified_and_its_inverse_restores(desk, tmp_path):
    exported(tmp_path, "tuned", {"kernel.sysctl.net.core.somaxconn": "2048"})
    before = desk.guest.inside("cat", "/proc/sys/net/core/somaxconn")
    copied(desk.guest, tmp_path / "apply")
    copied(desk.guest, tmp_path / "revert")
    desk.guest.inside("tuned-adm", "profile", "mydyno")
    assert desk.guest.inside("cat", "/proc/sys/net/core/somaxconn").strip() == "2048"
    assert "succeeded" in desk.guest.inside("tuned-adm", "verify", check=False)
    desk.guest.inside("tuned-adm", "profile", "mydyno-before")
    assert desk.guest.inside("cat", "/proc/sys/net/core/somaxconn") == before


def test_user_data_of_cloud_init_has_the_files_and_commands_of_the_native_form(tmp_path):
    made = exported(tmp_path, "native")
    data = Path(bundle(TREATMENT, form_of("cloud-init")).write[0].path)
    assert data.name == "user-data.yml"
    text = bundle(TREATMENT, form_of("cloud-init")).write[0].text
    assert all(file.path in text for file in made.write)
