"""One lab disk that is up: its block device, its orders, its measure and its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from mydyno.host import Host, Running
from mydyno.lab import golden
from mydyno.lab.control import Control
from mydyno.lab.devices import mounts_of
from mydyno.lab.gauge import random_rate, sequential_rate
from mydyno.lab.paths import Paths
from mydyno.lab.registry import LabState, Registry
from mydyno.lab.teardown import take_apart
from mydyno.lab.values import Measured, level_text
from mydyno.model import Action, HostError, RefusedError


@dataclass(frozen=True, slots=True)
class LabDevice:
    """A real block device with the caps of a cloud disk, and a base it can go back to."""

    host: Host
    labs: Registry
    state: LabState
    running: Running | None = None

    @property
    def device(self) -> str:
        """Return the block device: ``/dev/loop3``."""
        return self.state.device

    @property
    def name(self) -> str:
        """Return its name in /sys/block: ``loop3``."""
        return PurePath(self.state.device).name

    @property
    def frozen(self) -> bool:
        """Return whether there is a base to go back to."""
        return bool(self.stats()["mode"] == "overlay")

    def cap(self, *, on: bool) -> None:
        """Switch the caps on or off."""
        self._control.order("cap on" if on else "cap off")

    def credits(self, level: str | float | None = None) -> None:
        """Set the burst credits to `level`, or to the spec's own.

        An idle disk earns credits, as the cloud's do: order this where the load begins.
        """
        text = level_text(self.state.spec.credits if level is None else level)
        self._control.order(f"credits {text}")

    def freeze(self) -> None:
        """Make what the disk holds its base; raise `RefusedError` while it is mounted."""
        self._quiet("freeze")
        self._control.order("freeze")
        golden.mark(self.host, self._paths.golden, self.state.spec.size)

    def drop(self) -> None:
        """Throw away all that was written since the freeze; raise `RefusedError` while mounted.

        The kernel's cache of the device is emptied before, lest it write old bytes into the new
        overlay, and after, lest it show bytes that something read in between.
        """
        self._quiet("drop")
        self._control.order("drop")
        self._flush()

    def stats(self) -> Mapping[str, Any]:
        """Return the disk's state: caps and credits, counters, `overlay_chunks` of 4 KiB."""
        return self._control.state()

    def measure(self, seconds: int = 5, *, write: bool = False) -> Measured:
        """Return what the disk gives from the spec's credit level, `seconds` for each number.

        Random writes (of zeros) are measured only if asked for, and refused with `RefusedError`
        once anything was written.  Takes a second more per number, to drain what idling earned.
        """
        stats = self.stats()
        if write and (stats["mode"] != "direct" or stats["counters"]["bytes_written"]):
            raise RefusedError(f"{self.device}: holds data; measure writes only on a fresh disk")
        rates = []
        for rw in ("randread", "randwrite") if write else ("randread",):
            self.credits()
            rates.append(random_rate(self.host, self.device, rw, seconds))
        self.credits()
        sequential = sequential_rate(self.host, self.device, seconds)
        self.credits()
        return Measured(rates[0], sequential, rates[1] if write else None)

    def remove(self, *, keep_base: bool = False) -> None:
        """Take the lab apart, its mounts included; its base stays for a resumed campaign if asked.

        Can be called again.  Raise `HostError` if something still uses the device.
        """
        try:
            take_apart(self.host, self.labs, self.state, base=not keep_base)
        finally:
            if self.running is not None:
                self.running.stop()

    @property
    def _paths(self) -> Paths:
        return Paths(Path(self.state.home))

    @property
    def _control(self) -> Control:
        return Control(self.host, self._paths.control)

    def _quiet(self, purpose: str) -> None:
        """See that nothing is mounted, and write what is still in the device's cache."""
        targets = mounts_of(self.host, self.device)
        if targets:
            raise RefusedError(
                f"{self.device}: {purpose}: mounted on {', '.join(targets)}; unmount it first"
            )
        self._flush()

    def _flush(self) -> None:
        done = self.host.run(Action(("blockdev", "--flushbufs", self.device)))
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip()
            raise HostError(f"{self.device}: cannot be flushed ({words}); is its daemon alive?")
