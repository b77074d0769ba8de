"""A move's script, run with a systemctl that is a script, and what `move` and `rollback` refuse."""

import os
import shlex
import signal
import subprocess
import time
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from mydyno.audit.facts import ServerEvidence
from mydyno.cli import leases as leasing
from mydyno.cli import move as moving
from mydyno.cli import rollback as rolling
from mydyno.host import Completed, Local
from mydyno.keep.lease import Held, Lease
from mydyno.model import RefusedError, SpecError
from mydyno.server.existing import Existing

SCRIPT = files("mydyno.keep").joinpath("move.sh")
UNIT = "db.service"
# As of a script of SysV: systemd knows no main process, and does not wait for the server.
SYSTEMCTL = """#!/bin/sh
cd "$FOLDER"
echo "$1" >>calls
case $1 in
show) case $* in *ControlGroup*$UNIT) echo "/../../..$FOLDER/group" ;; *) echo 0 ;; esac ;;
is-active) [ -s group/cgroup.procs ] ;;
start)
    where=$(sed -n 's/^datadir = //p' etc/move.cnf 2>/dev/null)
    [ ! -e ignored ] || where=
    [ ! -s group/cgroup.procs ] || exit 0
    (sleep 0.1; cd "${where:-old}"; exec sleep 60) >/dev/null 2>&1 &
    echo $! >group/cgroup.procs ;;
stop) [ -e stays ] || { kill $(cat group/cgroup.procs); : >group/cgroup.procs; } ;;
esac
"""
# A filesystem without a free block: a new file stays empty.
FULL = """#!/bin/sh
for last; do :; done
case $last in *.mydyno-new) : >"$last"; exit 1 ;; esac
exec /usr/bin/${0##*/} "$@"
"""


class Desk:
    """A server's folders, and the script beside its `names`, as a move writes them."""

    def __init__(self, folder):
        self.folder, self.script = folder, folder / "run/move.sh"
        for name in ("bin", "etc", "group", "old/db", "run"):
            (folder / name).mkdir(parents=True)
        (folder / "old/db/t.ibd").write_text("rows")
        self.script.write_text(SCRIPT.read_text())
        self.tool("systemctl", SYSTEMCTL)
        for name in ("logger", "sync"):
            self.tool(name, "#!/bin/sh\n")
        self.option, self.dropin = folder / "etc/move.cnf", folder / "etc/d/move.conf"
        new = folder / "new"
        names = {"unit": UNIT, "old": folder / "old", "new": new, "part": f"{new}.mydyno-part"}
        names |= {"file": self.option, "text": f"[mysqld]\ndatadir = {new}\n"}
        names |= {"dropin": self.dropin, "dropin_text": "[Unit]\n"}
        lines = [f"{key}={shlex.quote(str(value))}\n" for key, value in names.items()]
        (folder / "run/names").write_text("".join(lines))

    def tool(self, name, text):
        (self.folder / "bin" / name).write_text(text)
        (self.folder / "bin" / name).chmod(0o755)

    def sh(self, *words):
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        own = {**os.environ, "PATH": path, "FOLDER": str(self.folder), "UNIT": UNIT}
        done = subprocess.run(["sh", *words], env=own, capture_output=True, check=False)
        return done.returncode, done.stderr.decode()

    def moved(self):
        """Run the script as its unit does; return how it ended, and what it printed."""
        _, printed = self.sh(self.script, "run")
        code, more = self.sh(self.script, "after")
        assert code == 0, more
        return (self.folder / "run/state").read_text().strip(), printed

    def calls(self):
        found = (self.folder / "calls").read_text().split()
        return [name for name in found if name in {"start", "stop"}]


def until(holds, patience_s=10.0):
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    (tmp_path / "group/cgroup.procs").touch()
    assert made.sh("-c", "systemctl start db.service") == (0, "")
    pid = (tmp_path / "group/cgroup.procs").read_text().strip()
    until(lambda: Path(f"/proc/{pid}/cwd").resolve() == tmp_path / "old")
    yield made
    for pid in (tmp_path / "group/cgroup.procs").read_text().split():
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def test_a_server_that_is_no_main_process_is_seen_on_the_copy(desk):
    """Unseen, it was stopped and taken back, and the commits of that time were lost."""
    assert desk.moved() == ("moved", "")
    assert desk.calls() == ["start", "stop", "start"]
    assert (desk.folder / "new/db/t.ibd").read_text() == "rows"


def test_a_server_that_does_not_come_to_the_copy_goes_on_where_it_was(desk):
    (desk.folder / "ignored").touch()
    desk.tool("sleep", '#!/bin/sh\n[ "$1" != 60 ] || exec /bin/sleep 60\n')
    assert desk.moved() == ("refused", "")
    assert not desk.option.exists()
    assert (desk.folder / "new/db/t.ibd").exists()


def test_a_server_that_its_script_did_not_stop_is_not_copied(desk):
    (desk.folder / "stays").touch()
    state, printed = desk.moved()
    assert (state, "db.service: is stopped, but a process of it" in printed) == ("restored", True)
    assert not (desk.folder / "new").exists()


def test_a_server_that_has_moved_since_it_was_looked_at_is_left_where_it_is(desk):
    """A second move copied the first one's old folder, and what was committed since was lost."""
    (desk.folder / "first").mkdir()
    desk.option.write_text(f"[mysqld]\ndatadir = {desk.folder}/first\n")
    for step in ("stop", "start"):
        assert desk.sh("-c", f"systemctl {step} db.service") == (0, "")
    pid = (desk.folder / "group/cgroup.procs").read_text().strip()
    until(lambda: Path(f"/proc/{pid}/cwd").resolve() == desk.folder / "first")
    state, printed = desk.moved()
    assert (state, "db.service: no process of it works in" in printed) == ("restored", True)
    assert "stop" not in desk.calls()[3:]
    assert (desk.folder / "group/cgroup.procs").read_text().strip() == pid
    assert "first" in desk.option.read_text()
    assert not (desk.folder / "new").exists()


def test_where_no_file_can_be_written_the_server_starts_on_what_is_as_it_was(desk):
    desk.dropin.parent.mkdir()
    before = {desk.option: "[mysqld]\n", desk.dropin: "[Unit]\n# of an earlier move\n"}
    for path, text in before.items():
        path.write_text(text)
    for name in ("cp", "install"):
        desk.tool(name, FULL)
    assert desk.moved()[0] == "restored"
    assert {path: path.read_text() for path in before} == before
    assert desk.calls() == ["start", "stop", "start"]


@pytest.mark.parametrize(("unit", "place", "code"), [
    (UNIT, "old", 0), (UNIT, "etc", 1), ("of-a-user.service", "old", 1),
])  # fmt: skip
def test_the_script_knows_a_server_by_its_unit_and_its_folder(desk, unit, place, code):
    words = ("known", unit, desk.folder / place)
    assert desk.sh("-c", SCRIPT.read_text(), "move.sh", *words)[0] == code


def server(monkeypatch, command, *, host=None, data="/none"):
    """Let a command find a server of this machine; no campaign has left anything there."""
    there = Existing(host or Local(), (), "mariadb", (10, 11, 6), "", "", str(data), None)
    seen = ServerEvidence(
        name="db1",
        flavour="mariadb",
        version=(10, 11, 6),
        text="",
        variables={},
        looks=({}, {}),
        files={"/etc/my.cnf": "!includedir /etc/my.cnf.d\n"},
        host={"unit": UNIT},
    )
    monkeypatch.setattr(command, "look_at", lambda *_: (there, seen))
    monkeypatch.setattr(command, "leases_of", lambda _: [kept()])
    monkeypatch.setattr(leasing, "open_campaigns", lambda *_: [])


def kept():
    lease = Lease("l-1", "db1", "ada@desk", "why", 60, "", [], restart=False, trial=[], stored=[])
    return Held(lease, "kept", 0, 60)


def test_a_server_that_would_not_be_recognised_is_refused_before_it_stops(monkeypatch, tmp_path):
    server(monkeypatch, moving, data=tmp_path)
    with pytest.raises(RefusedError, match=r"db.service: no process of it works in .*by hand"):
        moving.move("local", "/mydyno-new", dry_run=True)


@pytest.mark.parametrize("name", ["a b", "a#b", "a%b", 'a"b', "a\\b", "a'b", "a\nb", "a\n"])
@pytest.mark.parametrize("above", [False, True])
def test_a_path_that_means_more_in_an_option_file_or_a_unit_is_refused(
    monkeypatch, tmp_path, name, above
):
    server(monkeypatch, moving)
    (tmp_path / name).mkdir()
    folder = tmp_path / name / "new" if above else tmp_path / f"{name}x"
    with pytest.raises(SpecError, match="letters, digits"):
        moving.move("local", str(folder), dry_run=True)


# What a host answers, by words of a command; nothing to all others.
ANSWERS = {
    "realpath": b"/srv\n",
    "stat -c %u": b"0 755 /srv\n",
    "stat -f": b"1000000 4096\n",
    "findmnt": b"/ ext4\n",
    "du": b"1000 /data\n",
}


class Answering:
    """A host on which a move finds nothing to refuse; it keeps the commands that change it."""

    name = "localhost"

    def __init__(self):
        self.changed, self.moved = [], False

    def run(self, action, *, timeout_s=60.0):
        words = " ".join(action.argv)
        if words.startswith(("install", "systemctl start", "rm")):
            self.changed.append(words)
        answer = next((text for key, text in ANSWERS.items() if words.startswith(key)), b"")
        code = int(words.startswith(("test", "systemctl is-active")))
        code |= self.moved and "known" in action.argv
        return Completed(action, code, answer, b"")


@contextmanager
def locked(_):
    raise RefusedError("localhost: locked by a campaign")
    yield


@pytest.mark.parametrize("since", ["a lease", "a move"])
def test_what_has_begun_while_consent_was_asked_for_is_seen(monkeypatch, since):
    host = Answering()
    server(monkeypatch, moving, host=host)
    monkeypatch.setattr(moving, "beside_no_campaign", lambda _: nullcontext())

    def consent(*_):
        if since == "a lease":
            trial = msgspec.structs.replace(kept(), state="trial")
            monkeypatch.setattr(moving, "leases_of", lambda _: [trial])
        else:
            host.moved = True

    monkeypatch.setattr(moving, "consent", consent)
    message = "l-1 is on trial there" if since == "a lease" else "no process of it works in"
    with pytest.raises(RefusedError, match=message):
        moving.move("local", "/srv/new")
    assert host.changed == []


@pytest.mark.parametrize("command", [moving, rolling])
@pytest.mark.parametrize("left", [True, False])
def test_nothing_is_changed_for_good_beside_a_campaign(monkeypatch, command, left):
    """One that runs, or has left its values there, which would count as the host's own."""
    host = Answering()
    server(monkeypatch, command, host=host)
    monkeypatch.setattr(leasing, "open_campaigns", lambda *_: ["campaign x"] if left else [])
    monkeypatch.setattr(command, "beside_no_campaign", locked)
    for name in ("scene_of", "undone", "lease_of"):
        monkeypatch.setattr(rolling, name, lambda *_, **__: None)
    for name in ("begun", "call"):
        monkeypatch.setattr(rolling, name, lambda *_, **__: host.changed.append("a lease"))
    begin = {
        moving: partial(moving.move, "local", "/srv/new", yes_to=host.name),
        rolling: partial(rolling.rollback, "local", to=rolling.FIRST),
    }[command]
    message = "changed by a campaign: campaign x" if left else "locked by a campaign"
    with pytest.raises(RefusedError, match=message):
        begin()
    assert host.changed == []
