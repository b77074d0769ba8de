"""`mydyno move`: a server's data directory to another folder of its host, with its rights.

The host does it by itself, as a unit of systemd: it needs neither the session nor mydyno.
"""

import re
import shlex
import sys
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec
import typer

from mydyno.audit.facts import ServerEvidence
from mydyno.cli.apply import DryRun, YesTo, consent, include_of, name_of
from mydyno.cli.audit import Options
from mydyno.cli.leases import (
    LeaseHost,
    Why,
    leases_of,
    look_at,
    refuse_beside,
    refuse_open,
    refuse_shared,
    replicating,
    replication,
    unit_of,
    who,
)
from mydyno.cli.terminal import Json, print_json, print_message
from mydyno.host import Host, ask, reach
from mydyno.host.files import distrust, resolved
from mydyno.keep.refusals import managers
from mydyno.model import Action, HostError, RefusedError, SpecError
from mydyno.report import units
from mydyno.server.existing import Existing
from mydyno.snapshot import store
from mydyno.testbed.lock import beside_no_campaign

RUN = "/run/mydyno-move"
UNIT = "mydyno-move.service"
FILE = "zz-mydyno-move.cnf"
_UNIT_TEXT = f"""[Unit]
Description=mydyno move
StartLimitIntervalSec=0
[Service]
TimeoutSec=infinity
Restart=on-failure
RestartSec=100ms
ExecStart=/bin/sh {RUN}/move.sh run
ExecStopPost=/bin/sh {RUN}/move.sh after
"""
_DROP_IN = "/etc/systemd/system/{}.d/zz-mydyno-move.conf"
_SPARE = 1.05  # of the data's size must be free
_LONG_S = 7 * 86400.0
_POLL_S = 0.5
_SILENT = 20  # looks without an answer before the host counts as lost
_PASSING = ("tmpfs", "ramfs", "devtmpfs")
_WRITABLE = 0o022
_PLAIN = re.compile(r"[\w./+@:-]+")  # means itself in an option file and in a unit
_HOMES, _SYSTEM = ("/home", "/root", "/run/user"), ("/usr", "/boot", "/efi", "/etc")

To = Annotated[str, typer.Argument(metavar="FOLDER", help="The new folder; it must not exist yet.")]


class DataMove(msgspec.Struct, frozen=True):
    """What `move --json` prints: the folders, bytes, and seconds without SQL (0 with --dry-run)."""

    host: str
    old: str
    new: str
    bytes: float
    down_s: float


def move(  # noqa: PLR0913 - one parameter an option
    host: LeaseHost,
    folder: To,
    *,
    server: Options = "",
    yes_to: YesTo = "",
    why: Why = "",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Move a server's data directory to another folder: stopped, copied, compared."""
    existing, seen = look_at(host, server)
    old, new = existing.data.rstrip("/"), _new(existing.host, folder)
    name, unit = name_of(seen, existing.host), unit_of(seen)
    refuse_open(leases_of(existing.host))
    refuse_beside(existing.host, host)
    size = _refuse(existing, seen, old, new)
    shown = DataMove(name, old, new, size, 0.0)
    if not (dry_run and json):
        (sys.stdout if dry_run else sys.stderr).write(_described(shown, unit))
    if not dry_run:
        consent(name, yes_to, "", "")
        reason = why or f"mydyno move {host} {folder}"
        began = time.monotonic()
        with beside_no_campaign(existing.host):
            _begin(existing, seen, old, new, f"{who()}: {reason}")
            _followed(host, existing.host)
        down_s = time.monotonic() - began
        now, _, stopped = replicating(host, server, replication(seen))
        if now.data.rstrip("/") != new:
            raise HostError(f"{name}: the server answers, but its data are in {now.data}")
        if stopped:
            print_message(f"warning: {name}: {'; '.join(stopped)}")
        shown = msgspec.structs.replace(shown, down_s=down_s)
    if json:
        print_json(shown)
    elif not dry_run:
        sys.stdout.write(
            f"{name}: the data are in {new}; {units.duration(shown.down_s)} without SQL\n"
            f"{old} is as it was before; remove it once you need it no more\n"
        )


def _described(shown: DataMove, unit: str) -> str:
    size = units.quantity(shown.bytes, "B")
    return (
        f"{shown.host}: {shown.old} -> {shown.new} ({size})\n"
        f"  1 restart of {unit}; no SQL while {size} are copied once and read twice\n"
        f"  names, modes, owners and contents are compared; if they differ, or if the server does\n"
        f"  not start there, it goes on where it was\n"
        f"  {shown.old} stays; what is committed after the move is only in {shown.new}\n"
    )


def _new(host: Host, folder: str) -> str:
    """Return the new folder with its parent's links followed; raise `SpecError` for a bad one."""
    path = PurePosixPath(folder)
    if not path.is_absolute() or ".." in path.parts or not path.name:
        raise SpecError(f"{folder}: name the new folder by its full path")
    done = host.run(Action(("realpath", "-e", "--", str(path.parent))))
    if done.returncode:
        raise SpecError(f"{path.parent}: not a folder on {host.name}; make it first")
    new = str(PurePosixPath(done.stdout.decode().removesuffix("\n")) / path.name)
    if not _PLAIN.fullmatch(new):
        raise SpecError(
            f"{new!r}: option files and units take some of its characters for something else; "
            "name a folder of letters, digits and . _ / + @ : - only"
        )
    for made in ("-e", "-L"):
        if host.run(Action(("test", made, new))).returncode == 0:
            raise SpecError(f"{new}: exists on {host.name}; name a folder that does not")
    return new


def _refuse(existing: Existing, seen: ServerEvidence, old: str, new: str) -> float:
    """Return the bytes of the data; raise an error for a move that would not hold."""
    host = existing.host
    if PurePosixPath(new).is_relative_to(old) or PurePosixPath(old).is_relative_to(new):
        raise SpecError(f"{new}: one of the folders would be inside the other, {old}")
    if found := managers(seen):
        raise RefusedError(
            f"{seen.name}: {found[0]} manages the server, and this needs a restart; move it there"
        )
    refuse_shared(existing)
    _refuse_unseen(host, unit_of(seen), old)
    _refuse_paths(existing, seen, old)
    _option_folder(existing, seen)
    _refuse_links(host, old)
    _refuse_parents(host, old, new)
    _refuse_mount(host, new)
    _refuse_confined(existing, seen, new)
    return _refuse_too_large(host, old, new)


def _refuse_unseen(host: Host, unit: str, old: str) -> None:
    """Raise an error for a server that the move would not recognise once it has started it.

    It would take the server back to the old folder, and commits to the new one would be lost.
    """
    if host.run(Action(("sh", "-c", _script(), "move.sh", "known", unit, old))).returncode:
        raise RefusedError(
            f"{unit}: no process of it works in {old}, so the move could not recognise the server; "
            "run it by a unit of the system, or move the data by hand"
        )


def _script() -> str:
    return files("mydyno.keep").joinpath("move.sh").read_text()


def _refuse_paths(existing: Existing, seen: ServerEvidence, old: str) -> None:
    """Raise an error for options that name the old folder by its path."""
    if existing.process and existing.process.option("datadir"):
        raise RefusedError(
            f"{unit_of(seen)}: gives --datadir in its command; move it to an option file first"
        )
    named = [(o.where, o.name, o.value) for o in seen.options() if o.name != "datadir"]
    words = existing.process.words if existing.process else ()
    named += [(unit_of(seen), *word.partition("=")[::2]) for word in words if word[:2] == "--"]
    for where, name, value in named:
        if PurePosixPath(value).is_relative_to(old):
            raise RefusedError(
                f"{where}: {name} = {value} stays in the old folder; write it relative to datadir "
                "first"
            )


def _option_folder(existing: Existing, seen: ServerEvidence) -> Path:
    """Return the folder that the new option file is written to; raise where others can change it.

    Which one it is, the server's process names, which may be subverted.
    """
    include = include_of(existing, seen)
    folder = resolved(existing.host, Path(include))
    if problem := distrust(existing.host, folder):
        raise RefusedError(
            f"{include}: root would write there, and {problem}; give it to root with mode 0755"
        )
    return folder


def _refuse_links(host: Host, old: str) -> None:
    argv = ("find", old, "-xdev", "(", "-type", "l", "-o", "-name", "*.isl", ")", "-print", "-quit")
    if found := host.run(Action(argv), timeout_s=_LONG_S).stdout.decode(errors="replace").strip():
        raise RefusedError(f"{found}: a link; put its target into {old} in its place first")
    below = host.run(Action(("findmnt", "--noheadings", "--list", "--output", "TARGET")))
    mounts = below.stdout.decode(errors="replace").splitlines()
    if inside := [one for one in mounts if one.startswith(f"{old}/")]:
        raise RefusedError(f"{inside[0]}: is a mount inside {old}; move it by hand")


def _refuse_parents(host: Host, old: str, new: str) -> None:
    """Raise an error for a folder that others can replace, or that the server cannot reach."""
    parents = [str(one) for one in PurePosixPath(new).parents]
    stat = host.run(Action(("stat", "-c", "%u %a %n", "--", *parents))).check().stdout.decode()
    for line in stat.splitlines():
        owner, mode, name = line.split(" ", 2)
        if owner != "0" or int(mode, 8) & _WRITABLE:  # a sticky one, too: /tmp is emptied at boot
            raise RefusedError(
                f"{name}: others than root can change it (owner {owner}, mode {mode}), and so "
                "replace the data; name a folder whose parents are root's"
            )
    user = host.run(Action(("stat", "-c", "%U", "--", old))).check().stdout.decode().strip()
    if host.run(Action(("runuser", "-u", user, "--", "test", "-x", parents[0]))).returncode:
        raise RefusedError(f"{parents[0]}: {user} cannot enter it; allow that first (chmod o+x)")


def _refuse_mount(host: Host, new: str) -> None:
    """Raise an error for a filesystem that is not there after a reboot."""
    parent = str(PurePosixPath(new).parent)
    argv = ("findmnt", "--noheadings", "--output", "TARGET,FSTYPE", "--target", parent)
    target, kind = host.run(Action(argv)).check().stdout.decode().rsplit(None, 1)
    target = target.strip()
    if kind in _PASSING:
        raise RefusedError(f"{target}: {kind} is empty after a reboot; name a folder on a disk")
    if target == "/":
        return
    stored = host.run(Action(("findmnt", "--fstab", "--mountpoint", target))).returncode == 0
    escape = host.run(Action(("systemd-escape", "--path", "--suffix=mount", target))).stdout
    shown = ("systemctl", "show", "-p", "FragmentPath", "--value", escape.decode().strip())
    unit = host.run(Action(shown)).stdout.decode().strip()
    if not stored and not unit:
        raise RefusedError(
            f"{target}: neither fstab nor a unit mounts it, so after a reboot the server would "
            "find no data; add it to /etc/fstab first"
        )


def _refuse_confined(existing: Existing, seen: ServerEvidence, new: str) -> None:
    """Raise an error for a folder that the unit or AppArmor keeps from the server."""
    host, unit = existing.host, unit_of(seen)
    keys = ("ProtectHome", "ProtectSystem", "PrivateTmp", "ReadWritePaths")
    shown = host.run(Action(("systemctl", "show", unit, "-p", ",".join(keys)))).check()
    found = dict(line.partition("=")[::2] for line in shown.stdout.decode().splitlines())

    def below(*places: str) -> bool:
        return any(PurePosixPath(new).is_relative_to(place) for place in places)

    strict = found.get("ProtectSystem") == "strict"
    hidden = {
        "ProtectHome": found.get("ProtectHome", "no") != "no" and below(*_HOMES),
        "ProtectSystem": found.get("ProtectSystem", "no") != "no" and below(*_SYSTEM),
        "PrivateTmp": found.get("PrivateTmp") == "yes" and below("/tmp", "/var/tmp"),  # noqa: S108 - a place that is refused
        "ReadWritePaths": strict and not below(*found.get("ReadWritePaths", "").split()),
    }
    for key, is_hidden in hidden.items():
        if is_hidden:
            raise RefusedError(
                f"{new}: {key} of {unit} keeps the server out; change the unit first"
            )
    pid = existing.process.pid if existing.process else 0
    label = host.run(Action(("cat", f"/proc/{pid}/attr/current"))).stdout
    profile, _, mode = label.decode(errors="replace").strip("\0\n ").rpartition(" ")
    known = Action(("grep", "-rqF", new, "/etc/apparmor.d"))
    if mode == "(enforce)" and host.run(known).returncode:
        raise RefusedError(
            f"{new}: AppArmor keeps {profile} out; allow `{new}/** rwk,` in "
            "/etc/apparmor.d/local first"
        )


def _refuse_too_large(host: Host, old: str, new: str) -> float:
    parent = Path(new).parent
    size = host.run(Action(("du", "-s", "-B1", "--", old)), timeout_s=_LONG_S).check()
    free, needed = ask(host, store.free(parent)), float(size.stdout.split()[0])
    if needed * _SPARE > free:
        raise RefusedError(
            f"{parent}: {units.quantity(free, 'B')} free, and the data take "
            f"{units.quantity(needed, 'B')}; make room first"
        )
    return needed


def _begin(existing: Existing, seen: ServerEvidence, old: str, new: str, reason: str) -> None:
    """Write the unit below /run, so that a reboot forgets it, and start it.

    Raise an error where the server has moved, or a lease has begun, since consent was asked for.
    """
    host, unit = existing.host, unit_of(seen)
    if host.run(Action(("systemctl", "is-active", "--quiet", UNIT))).returncode == 0:
        raise RefusedError(f"{host.name}: another move is at work; see journalctl -u {UNIT}")
    refuse_open(leases_of(host))
    _refuse_unseen(host, unit, old)
    names = {
        "unit": unit,
        "old": old,
        "new": new,
        "part": f"{new}.mydyno-part",
        "file": f"{_option_folder(existing, seen)}/{FILE}",
        "text": f"[mysqld]\ndatadir = {new}\n",
        "dropin": _DROP_IN.format(unit),
        "dropin_text": f'[Unit]\nRequiresMountsFor="{new}"\n',
    }
    lines = "".join(f"{key}={shlex.quote(value)}\n" for key, value in names.items())
    host.run(Action(("rm", "-rf", RUN))).check()
    host.run(Action(("install", "-d", "-m", "700", RUN))).check()
    for place, raw in (
        (f"{RUN}/names", lines.encode()),
        (f"{RUN}/move.sh", _script().encode()),
        (f"/run/systemd/system/{UNIT}", _UNIT_TEXT.encode()),
    ):
        host.run(Action(("install", "-D", "-m", "600", "/dev/stdin", place), raw)).check()
    host.run(Action(("logger", "-t", "mydyno-move", "--", f"begun by {reason}")))
    host.run(Action(("systemctl", "daemon-reload"))).check()
    host.run(Action(("systemctl", "start", "--no-block", UNIT))).check()


def _followed(named: str, host: Host) -> None:
    """Wait for the end and say each step; raise `HostError` where the data did not move."""
    shown, silent = "", 0
    while silent <= _SILENT:
        time.sleep(_POLL_S)
        state = ""
        try:
            state = host.run(Action(("cat", f"{RUN}/state"))).stdout.decode().strip()
        except HostError:
            with suppress(HostError):
                host = reach(named)
        silent = 0 if state else silent + 1
        if state and state != shown:
            print_message(f"{host.name}: {state}")
            shown = state
        if state == "moved":
            _clear(host)
            return
        if state in _ENDS:
            log = host.run(Action(("journalctl", "-q", "-n", "3", "-o", "cat", "-u", UNIT)))
            words = log.stdout.decode(errors="replace").strip().replace("\n", "; ")
            _clear(host)
            raise HostError(f"{host.name}: {_ENDS[state]} ({words})")
    raise HostError(
        f"{host.name}: lost; what was begun goes on there, and a reboot forgets it: see "
        "journalctl -t mydyno-move, then run the same command again"
    )


_ENDS = {
    "restored": "the data did not move; the server runs where it was",
    "refused": "the server did not start on the copy; it runs where it was, and the copy is left",
    "down": "the server does not start where it was; see journalctl",
}


def _clear(host: Host) -> None:
    """Remove what is below /run."""
    host.run(Action(("sh", "-c", f"while systemctl is-active -q {UNIT}; do sleep 0.1; done")))
    host.run(Action(("rm", "-rf", RUN, f"/run/systemd/system/{UNIT}"))).check()
    host.run(Action(("systemctl", "daemon-reload"))).check()
