"""The block layer: I/O scheduler and queue attributes of one disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mydyno.model import Action, Change, Probe, Settings, SpecError, unknown_value
from mydyno.model.text import chosen
from mydyno.stack.protocol import IDENTITY

ATTRIBUTES = (
    "nomerges",
    "nr_requests",
    "read_ahead_kb",
    "rq_affinity",
    "scheduler",
    "wbt_lat_usec",
)
_TUNABLE = "iosched."
_RENAMED = {"noop": "none", "deadline": "mq-deadline", "cfq": "bfq", "anticipatory": "mq-deadline"}


@dataclass(frozen=True, slots=True)
class Block:
    """The queue of one disk; `owned` when mydyno made the disk, so that it ends with us."""

    disk: str
    owned: bool
    name: ClassVar[str] = "block"

    @property
    def at(self) -> str:
        """Return the disk's name in /sys/block."""
        return self.disk

    def observe(self) -> Probe[Settings]:
        """Return the probe for every attribute of the queue that can be set, and which disk."""
        here = f"/sys/block/{self.disk}/"
        which = ("(", "-path", f"{here}dev", "-o", "-path", f"{here}diskseq")
        queue = ("-o", "-path", f"{here}queue/*", "-perm", "-u=rw", ")")
        print_ = ("-type", "f", "-exec", "grep", "-sH", ".", "{}", "+")
        find = (here, "-maxdepth", "3", *which, *queue, *print_)
        # a disk that has gone is an answer, and no error
        return Probe(Action(("sh", "-c", 'find "$@" 2>/dev/null; :', "find", *find)), self._parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes, the scheduler first: choosing it resets its queue and tunables.

        Tunables come and go with their scheduler: where that changes, they are planned once it
        is there, and their first values can be seen.
        """
        for key, value in want.items():
            self._check(key, value, now, want)
        is_there = want.get("scheduler", now.get("scheduler")) == now.get("scheduler")
        ordered = sorted(want.items(), key=lambda item: (item[0] != "scheduler", item[0]))
        return [
            Change(key, now.get(key, ""), value, self._write(key, value))
            for key, value in ordered
            if now.get(key) != value and (is_there or not key.startswith(_TUNABLE))
        ]

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        """Return the changes that restore first values: the scheduler, or else all others."""
        gone = [k for k, v in first.items() if k in now and now[k] != v and k != CHOICES]
        keys = ["scheduler"] if "scheduler" in gone else sorted(gone)
        return [Change(key, now[key], first[key], self._write(key, first[key])) for key in keys]

    @property
    def _queue(self) -> str:
        return f"/sys/block/{self.disk}/queue"

    def _write(self, key: str, value: str) -> Action:
        path = f"{self._queue}/{key.replace(_TUNABLE, 'iosched/')}"
        return Action(("tee", path), f"{value}\n".encode())

    def _parse(self, raw: bytes) -> Settings:
        found: dict[str, str] = {}
        which = []
        for line in raw.decode(errors="replace").splitlines():
            path, _, value = line.partition(":")
            if not path.startswith(self._queue):
                which.append(f"{path.rpartition('/')[2]} {value}")
                continue
            key = path.removeprefix(self._queue + "/").replace("iosched/", _TUNABLE)
            if key == "scheduler":
                found[CHOICES] = value.replace("[", "").replace("]", "")
                value = chosen(value) if "[" in value else "none"
            found[key] = value.strip()
        return {**found, IDENTITY: ", ".join(sorted(which))} if found else found

    def _check(self, key: str, value: str, now: Settings, want: Settings) -> None:
        """Raise `SpecError` for what this disk does not have, naming what it has instead."""
        place = f"block.{key} on {self.disk}"
        if key == "scheduler":
            choices = now.get(CHOICES, "").split()
            if value not in choices:
                new = _RENAMED.get(value)
                hint = f"; {value} is called {new} since Linux 5.0" if new else ""
                raise SpecError(f"{place}: {value!r} is not one of {', '.join(choices)}{hint}")
        elif key.startswith(_TUNABLE):
            if key not in now and want.get("scheduler", now.get("scheduler")) == now["scheduler"]:
                raise SpecError(
                    f"{place}: the scheduler {now.get('scheduler')} has no such tunable"
                )
        elif key not in ATTRIBUTES:
            raise SpecError(unknown_value(key, ATTRIBUTES, "setting", prefix="block."))
        elif key not in now:
            raise SpecError(f"{place}: this kernel does not show it, so it could not be restored")


CHOICES = "scheduler.choices"  # what the kernel offers, beside what is chosen
