"""The record of a running private instance, and the end of one whose owner is dead."""

import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mydyno.host import Host
from mydyno.model import Action, HostError

NAME = "server.json"
_STEP_S = 0.02
_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class Record:
    """Which process serves a home: `pid` 0 until it is known; `start` in clock ticks since boot.

    `run` is a folder outside the home that holds only the socket, or empty.
    """

    options: str
    run: str = ""
    pid: int = 0
    start: int = 0


def write(host: Host, home: Path, record: Record) -> None:
    """Write the record, whole or not at all."""
    part = home / f"{NAME}.part"
    text = msgspec.json.encode(record)
    host.run(Action(("install", "-m", "600", "/dev/stdin", str(part)), text)).check()
    host.run(Action(("mv", "-f", str(part), str(home / NAME)))).check()


def read(host: Host, home: Path) -> Record | None:
    """Return the home's record; None when there is none that can be read."""
    done = host.run(Action(("cat", str(home / NAME))))
    try:
        return msgspec.json.decode(done.stdout, type=Record) if done.returncode == 0 else None
    except msgspec.DecodeError:
        return None


def started(host: Host, pid: int) -> int:
    """Return when a process began, in clock ticks since boot; 0 if it is gone or a zombie."""
    stat = host.run(Action(("cat", f"/proc/{pid}/stat"))).stdout.decode(errors="replace")
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]) if len(fields) > 19 and fields[0] != "Z" else 0  # noqa: PLR2004 - proc(5)


def sweep(host: Host, home: Path, *, grace_s: float = _GRACE_S) -> int:
    """End the server that a dead owner left in `home`; return its pid, or 0 if there was none.

    Only a process whose pid, start time and ``--defaults-file`` are those of the record is
    ended.  Its socket's folder is removed if it lay outside the home.
    """
    record = read(host, home)
    if record is None:
        return 0
    pid = record.pid if record.pid and _ours(host, record) else 0
    if pid:
        _end(host, record, grace_s)
    for name in ("mysqld.pid", "mysqld.sock", "mysqld.sock.lock"):
        host.run(Action(("rm", "-f", "--", str(Path(record.run or home) / name))))
    host.run(Action(("rm", "-f", "--", str(home / "mysqld.pid"))))
    if record.run:
        host.run(Action(("rmdir", "--", record.run)))
    host.run(Action(("rm", "-f", "--", str(home / NAME))))
    return pid


def _ours(host: Host, record: Record) -> bool:
    raw = host.run(Action(("cat", f"/proc/{record.pid}/cmdline"))).stdout
    wanted = f"--defaults-file={record.options}".encode()
    return wanted in raw.split(b"\0") and started(host, record.pid) == record.start


def _end(host: Host, record: Record, grace_s: float) -> None:
    for signal, patience_s in (("-TERM", grace_s), ("-KILL", grace_s)):
        host.run(Action(("kill", signal, str(record.pid))))
        if _gone(host, record, patience_s):
            return
    raise HostError(f"process {record.pid} ({record.options}) on {host.name} cannot be ended")


def _gone(host: Host, record: Record, patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if started(host, record.pid) != record.start:
            return True
        time.sleep(_STEP_S)
    return False
