"""What another user of the host prepares never reaches what belongs to somebody else.

Each attack prepares something as an unprivileged user (or as root by that user's advice), and then
root uses mydyno as ever.  mydyno refuses or works; a foreign process, mount, device and files stay
as they were.  All of it with the kernel's protection of links on and off.
"""

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from harm.campaigns import ENDLESS, ENVIRONMENT, TEMPORARY, CampaignDisk, campaign_disk
from harm.users import (
    ATTACKER,
    Others,
    as_user,
    attacking,
    links_protected,
    others,
    shared_folder,
)

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
SWAPPINESS = Path("/proc/sys/vm/swappiness")
NOTES = Path("/run/mydyno-open")
SETTINGS = {"kernel.sysctl.vm.swappiness": 43, "block.read_ahead_kb": 64}
FINE = {0, 1, 2, 3, 4}


@dataclass
class Scene:
    """An attack's place: a shared folder, a run directory in it, and what is somebody else's."""

    there: CampaignDisk
    shared: Path
    victim: Others

    @property
    def out(self) -> Path:
        return self.shared / "run"

    def attacker(self, script: str, *arguments: object) -> None:
        """Run a script as the attacker; what the kernel refuses it is refused."""
        argv = as_user(ATTACKER, script, *arguments)
        subprocess.run(argv, check=False, capture_output=True, timeout=60)

    def mydyno(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """Run mydyno as root; it ends, with an exit code of its own and no traceback."""
        done = self.there.mydyno(*arguments, timeout_s=90)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in FINE, done.stderr
        return done

    def run(self, out: Path | None = None) -> "subprocess.CompletedProcess[str]":
        self.there.spec(SETTINGS)
        spec = self.there.folder / "spec.toml"
        return self.mydyno("run", spec, "-o", out or self.out, "--allow", "host")

    def finished(self) -> None:
        """Have a campaign done in the run directory, which root owns."""
        assert self.run().returncode in {0, 1}

    def given(self) -> None:
        """Give the run directory to the attacker, as a shared folder of results may be."""
        for path in (self.out, *self.out.rglob("*")):
            os.chown(path, ATTACKER, ATTACKER, follow_symlinks=False)

    @contextmanager
    def killed(self) -> Iterator[None]:
        """Have a campaign killed while its treatment is in force; it is rolled back at the end."""
        spec = self.there.spec(SETTINGS, load=ENDLESS)
        argv = self.there.command("run", spec, "-o", self.out, "--allow", "host")
        with subprocess.Popen(argv, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
            end = time.monotonic() + 60
            while not (self.there.begun.exists() and SWAPPINESS.read_text() == "43\n"):
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.02)
            process.kill()
        yield


Attack = Callable[[Scene], None]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Note a function as one of the attacks."""
    ATTACKS[function.__name__] = function
    return function


@attack
def the_run_directory_is_a_link_to_a_home(scene: Scene) -> None:
    scene.attacker('ln -s "$1" "$2"', scene.victim.folder / "home", scene.out)
    scene.run()


@attack
def the_run_directory_is_a_link_to_etc(scene: Scene) -> None:
    scene.attacker('ln -s /etc "$1"', scene.out)
    scene.run()
    scene.mydyno("rollback", scene.out)


@attack
def the_run_directory_belongs_to_somebody_else(scene: Scene) -> None:
    scene.attacker('mkdir -m 777 "$1"', scene.out)
    scene.run()


@attack
def the_folder_above_belongs_to_somebody_else(scene: Scene) -> None:
    scene.attacker('mkdir -m 755 "$1"', scene.shared / "above")
    scene.run(scene.shared / "above" / "run")


def _linked(name: str, target: str) -> Attack:
    def prepared(scene: Scene) -> None:
        """A link in a run directory of the attacker's, where mydyno writes."""
        to = scene.victim.folder / target
        script = 'mkdir -m 777 "$1"; ln -s "$2" "$1/$3"'
        scene.attacker(script, scene.out, to, name)
        scene.run()
        scene.mydyno("rollback", scene.out)

    return prepared


def _hard_linked(name: str) -> Attack:
    def prepared(scene: Scene) -> None:
        """A hard link in a run directory of the attacker's, where mydyno writes."""
        file = scene.there.mount / "letter"
        file.write_text("a letter of root's\n")
        file.chmod(0o600)
        scene.attacker('mkdir -m 777 "$1"; ln "$2" "$1/$3"', scene.out, file, name)
        scene.run()
        scene.mydyno("rollback", scene.out)
        assert file.read_text() == "a letter of root's\n"
        assert file.stat().st_mode & 0o777 == 0o600

    return prepared


for _name, _target in {
    "work": "home",
    "journal.jsonl": "shadow",
    "spec.toml": "shadow",
    "facts": "home",
    "trials": "home",
    "campaign-id": "shadow",
    "report.html": "shadow",
}.items():
    ATTACKS[f"link_at_{_name}"] = _linked(_name, _target)
for _name in ("journal.jsonl", "spec.toml", "campaign-id", "report.html"):
    ATTACKS[f"hard_link_at_{_name}"] = _hard_linked(_name)


@attack
def fifos_hold_nobody_up(scene: Scene) -> None:
    scene.attacker(
        'mkdir -m 777 "$1"; cd "$1" && mkfifo journal.jsonl campaign-id spec.toml report.html',
        scene.out,
    )
    scene.run()
    for command in ("rollback", "status", "compare", "report"):
        scene.mydyno(command, scene.out)


@attack
def results_given_away_get_links(scene: Scene) -> None:
    scene.finished()
    scene.given()
    script = 'cd "$1" && rm -rf report.html trials && ln -s "$2" report.html && ln -s "$3" trials'
    scene.attacker(script, scene.out, scene.victim.shadow, scene.victim.folder / "home")
    for command in ("status", "compare", "report", "rollback"):
        scene.mydyno(command, scene.out)


@attack
def results_given_away_name_a_work_folder(scene: Scene) -> None:
    """Records below the run directory name a process, a device and a mount of somebody else."""
    scene.finished()
    scene.given()
    _records(scene, scene.out / "work")
    scene.mydyno("rollback", scene.out)
    scene.run()


@attack
def the_old_second_work_folder_is_taken(scene: Scene) -> None:
    """It was /var/tmp/mydyno-HASH, believed whoever owned it."""
    scene.finished()
    digest = hashlib.sha256(str(scene.out / "work").encode()).hexdigest()[:12]
    work = TEMPORARY / f"mydyno-{digest}"
    try:
        _records(scene, work)
        scene.mydyno("rollback", scene.out)
        scene.run()
        assert (work / "server.json").exists()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _records(scene: Scene, work: Path) -> None:
    """Write, as the attacker, what an older mydyno believed of a work folder."""
    started = Path(f"/proc/{scene.victim.process.pid}/stat").read_text().rpartition(")")[2].split()
    server = {"pid": scene.victim.process.pid, "start": int(started[19]), "home": "/etc"}
    device = {"device": scene.victim.device, "wiped": False, "mount": str(scene.victim.mount)}
    script = (
        'mkdir -p "$1" && chmod 777 "$1" && cd "$1" && printf %s "$2" >server.json && '
        'printf %s "$3" >device.json && ln -s "$4" mnt && ln -s /etc server && ln -s "$5" data'
    )
    home = scene.victim.folder / "home"
    facts = (json.dumps(server), json.dumps(device))
    scene.attacker(script, work, *facts, scene.victim.mount, home)


@attack
def a_journal_of_an_older_format_names_settings(scene: Scene) -> None:
    """It must not be acted on."""
    scene.finished()
    scene.given()
    found = SWAPPINESS.read_text()
    line = {"type": "changing", "layer": "kernel", "key": "sysctl.vm.swappiness", "old": "7"}
    scene.attacker(
        'cd "$1" && rm -f campaign-id; echo "$2" >>journal.jsonl', scene.out, json.dumps(line)
    )
    scene.mydyno("rollback", scene.out)
    assert SWAPPINESS.read_text() == found


@attack
def the_id_of_an_open_campaign_is_borrowed(scene: Scene) -> None:
    with scene.killed():
        fake = scene.shared / "fake"
        id_ = (scene.out / "campaign-id").read_text()
        scene.attacker('mkdir "$1" && printf %s "$2" >"$1/campaign-id"', fake, id_)
        scene.mydyno("rollback", fake)
        assert SWAPPINESS.read_text() == "43\n"
        scene.mydyno("rollback", scene.out)


@attack
def an_id_leads_out_of_the_records(scene: Scene) -> None:
    script = 'mkdir -m 777 "$1" && printf %s "$2" >"$1/campaign-id" && touch "$1/journal.jsonl"'
    scene.attacker(script, scene.out, "../../../../../tmp")
    scene.mydyno("rollback", scene.out)
    scene.run()


@attack
def the_work_folder_of_a_killed_campaign_becomes_a_link(scene: Scene) -> None:
    """The run directory lies in the attacker's own folder only by root's mistake: it is moved."""
    with scene.killed():
        work = scene.out / "work"
        moved = scene.out / "aside"
        work.rename(moved)
        work.symlink_to(scene.victim.folder / "home")
        scene.mydyno("rollback", scene.out)
        assert SWAPPINESS.read_text() != "43\n"


@attack
def a_race_for_the_run_directory(scene: Scene) -> None:
    script = 'ln -s "$1" "$2"; rm -f "$2"; mkdir "$2"; ln -s "$1" "$2/work"; rm -rf "$2"'
    with attacking(script, scene.victim.folder / "home", scene.out):
        for _ in range(3):
            scene.run()
    scene.mydyno("rollback", scene.out)


@attack
def a_race_for_the_work_folder(scene: Scene) -> None:
    scene.attacker('mkdir -m 777 "$1"', scene.out)
    script = 'mv "$2/work" "$2/w$$"; ln -s "$1" "$2/work"; rm -f "$2/work"; mkdir "$2/work"'
    with attacking(script, scene.victim.folder / "home", scene.out):
        for _ in range(3):
            scene.run()
    scene.mydyno("rollback", scene.out)


@attack
def the_home_of_a_lab_holds_links(scene: Scene) -> None:
    home = scene.shared / "labs"
    script = 'mkdir -m 777 "$1"; ln -s "$2" "$1/one"; mkdir "$1/two"; ln -s "$3" "$1/two/base.img"'
    scene.attacker(script, home, scene.victim.folder / "home", scene.victim.image)
    for name in ("one", "two"):
        scene.mydyno("lab", "up", name, "--home", home, "--size", "64M")
        scene.mydyno("lab", "down", name)


@attack
def a_lab_called_as_a_path(scene: Scene) -> None:
    for name in ("../home", "/etc", "a/b", "..", "-rf"):
        done = scene.mydyno("lab", "up", name, "--home", scene.victim.folder, "--size", "64M")
        assert done.returncode in {2, 4}, done.stderr


@attack
def a_campaign_called_as_a_path(scene: Scene) -> None:
    for name in ("/etc/mydyno", "../../x", "..", "a/b"):
        spec = scene.there.spec({})
        spec.write_text(spec.read_text().replace('name = "harm"', f"name = {json.dumps(name)}"))
        done = scene.mydyno("run", spec)
        assert done.returncode == 2, done.stderr


@attack
def the_folder_for_temporary_files_holds_links(scene: Scene) -> None:
    scene.attacker('mkdir -m 777 "$1"; ln -s "$2" "$1/mydyno-0"', scene.shared / "tmp", "/etc")
    argv = scene.there.command("lab", "list")
    more: Mapping[str, str] = {
        "TMPDIR": str(scene.shared / "tmp"),
        "XDG_RUNTIME_DIR": str(scene.shared / "tmp"),
    }
    done = subprocess.run(
        argv, env={**ENVIRONMENT, **more}, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr


@attack
def a_users_own_files_at_our_names(scene: Scene) -> None:
    """A `work` or `trials` that is not ours is never removed."""
    scene.out.mkdir()
    for name in ("work", "trials", "facts"):
        (scene.out / name).mkdir()
        (scene.out / name / "mine").write_text("mine")
    scene.run()
    scene.mydyno("rollback", scene.out)
    for name in ("work", "trials", "facts"):
        assert (scene.out / name / "mine").read_text() == "mine"


SAMPLE = (
    *("the_run_directory_is_a_link_to_etc", "link_at_work", "hard_link_at_journal.jsonl"),
    *("results_given_away_get_links", "the_old_second_work_folder_is_taken"),
)
CASES = [
    pytest.param(name, on, marks=[] if on and name in SAMPLE else pytest.mark.slow)
    for name in ATTACKS
    for on in (1, 0)
]


@pytest.mark.parametrize(("name", "protected"), CASES)
def test_what_is_somebody_elses_stays_as_it_is(name: str, protected: int) -> None:
    swappiness, left = SWAPPINESS.read_text(), traces()
    with (
        campaign_disk() as there,
        others(there.folder / "others") as victim,
        links_protected(protected),
    ):
        scene = Scene(there, shared_folder(there), victim)
        before = victim.picture()
        try:
            ATTACKS[name](scene)
            assert victim.picture() == before
        finally:
            there.mydyno("rollback", scene.out)
            stale = traces() - left
            for path in stale:
                (NOTES / path).unlink(missing_ok=True)  # the next test has a host of its own
        assert SWAPPINESS.read_text() == swappiness
        assert not stale


def traces() -> set[str]:
    """Return the notes that a campaign has changed this host."""
    return {path.name for path in NOTES.glob("*")}


def test_there_are_twenty_attacks() -> None:
    assert len(ATTACKS) >= 20
