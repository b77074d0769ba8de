"""Processes of `mydyno-disk` that obey the file `order` of a folder; they end with this one."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from mydyno.host import Host, Running, halt
from mydyno.lab.loop_lab import binary
from mydyno.model import Action, HostError

_READY_S, _STEP_S = 60.0, 0.05


@dataclass(slots=True)
class Helper(ABC):
    """One real-time process of this host; it does nothing until something is ordered.

    `key` is what it is for, `role` its name in samples, `cannot` the sentence where it does not
    start; `priority` is above that of what it must not wait for.
    """

    key: ClassVar[str]
    role: ClassVar[str]
    cannot: ClassVar[str]
    priority: ClassVar[int] = 1
    host: Host
    folder: Path
    running: Running | None = None

    @abstractmethod
    def task(self) -> tuple[str, ...]:
        """Return the task of `mydyno-disk` with its options."""

    @property
    def pid(self) -> int:
        """Return its process id, 0 where it does not run."""
        return self.running.pid if self.running and self.running.returncode() is None else 0

    def start(self) -> None:
        """Start it; raise `HostError` where this process may not use real-time priority."""
        if self.pid:
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for name in ("order", "state"):
            (self.folder / name).unlink(missing_ok=True)
        argv = ("chrt", "--fifo", str(self.priority), binary(), *self.task())
        errors = self.folder / "errors"
        owned = ("--dir", str(self.folder), "--owner-pid", str(os.getpid()))
        self.running = self.host.start(Action((*argv, *owned)), stderr=errors)
        end_s = time.monotonic() + _READY_S
        while not (self.folder / "state").exists():
            if not self.pid or time.monotonic() > end_s:
                printed = errors.read_text(errors="replace").strip() if errors.exists() else ""
                self.stop()
                raise HostError(f"{self.key}: {self.cannot.format(printed or 'no answer')}")
            time.sleep(_STEP_S)

    def check(self) -> None:
        """Raise `HostError` where it has ended: what was ordered would not be in force."""
        if not self.pid:
            raise HostError(f"{self.key}: its process of mydyno-disk has ended; run again")

    def stop(self) -> None:
        """End it, and with it all that was ordered."""
        if self.running is not None:
            halt(self.running, grace_s=0.0)
            self.running = None


@dataclass(slots=True)
class Spinner(Helper):
    """One real-time thread for each CPU of this host; idle until a dose is ordered.

    `roles` are the CPUs of server and load where they are apart.
    """

    roles: Mapping[str, Collection[int]] = field(default_factory=dict)

    key: ClassVar[str] = "slow.host"
    role: ClassVar[str] = "slow"
    cannot: ClassVar[str] = (
        "CPUs cannot be slowed here: {}; run as root with CAP_SYS_NICE, or leave it out with --only"
    )

    @property
    def cpus(self) -> Mapping[str, list[int]]:
        """Return the CPUs of which slices are taken, by whom they are taken from."""
        return {role: sorted(own) for role, own in self.roles.items()} or {
            "host": sorted(os.sched_getaffinity(0))
        }

    def task(self) -> tuple[str, ...]:
        """Return what takes slices of each CPU."""
        each = (f"{role}={','.join(map(str, own))}" for role, own in self.cpus.items())
        return ("spin", *(word for one in each for word in ("--cpus", one)))
