"""One running lab disk: its block device, caps, snapshot, calibration and removal."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import msgspec

from mydyno.host import Host, Running, boot_of
from mydyno.lab.calibration import (
    DiskCalibration,
    IoMeasurement,
    IoPattern,
    measure,
    random,
    sequential,
)
from mydyno.lab.registry import LabState, Registry
from mydyno.lab.teardown import mounted_elsewhere, mounts_of, tear_down
from mydyno.lab.values import LabSpec, Paths, level_text
from mydyno.model import Action, Change, HostError, Probe, RefusedError, Settings
from mydyno.stack import converge_made


def mark_frozen(host: Host, marker: Path, spec: LabSpec) -> None:
    """Write the marker: the bases in its folder are frozen at a lab's size and stripe."""
    argv = ("install", "-m", "600", "/dev/stdin", str(marker))
    host.run(Action(argv, _words(host, spec))).check()


def is_frozen(host: Host, marker: Path, spec: LabSpec) -> bool:
    """Return whether the bases were frozen at this size and stripe since the host was booted.

    The base is not synced to the host's disk, which would take as long as a trial; so it is not
    used after a reboot of the host.
    """
    done = host.run(Action(("cat", str(marker))))
    return done.returncode == 0 and done.stdout == _words(host, spec)


def _words(host: Host, spec: LabSpec) -> bytes:
    boot = boot_of(host)
    stripe = {"disks": spec.stripe.disks, "chunk": spec.stripe.chunk}
    shape = stripe if spec.stripe.disks > 1 else {}
    return msgspec.json.encode({"size": spec.size, "boot": boot, **shape})


_PATIENCE_S = 5.0  # a reply takes a millisecond


@dataclass(frozen=True, slots=True)
class Control:
    """Commands to, and the state of, one lab disk."""

    host: Host
    path: Path

    def order(self, line: str) -> None:
        """Send one command; raise `HostError` with the daemon's message if it refuses."""
        action = Action(("tee", str(self.path)), f"{line}\n".encode())
        done = self.host.run(action, timeout_s=_PATIENCE_S)
        if done.returncode:
            words = self.state().get("last_error") or done.stderr.decode(errors="replace").strip()
            raise HostError(f"{self.path}: {line}: {words}")

    def state(self) -> Mapping[str, Any]:
        """Return the disk's state: rates per second, sizes in bytes, credits in units."""
        done = self.host.run(Action(("cat", str(self.path))), timeout_s=_PATIENCE_S).check()
        state: Mapping[str, Any] = msgspec.json.decode(done.stdout, type=dict[str, Any])
        return state


@dataclass(frozen=True, slots=True)
class DiskCaps:
    """Key `caps` of a lab disk: whether its caps are in force, ``on`` or ``off``."""

    control: Path
    name: str = "disk"
    owned: bool = True

    def observe(self) -> Probe[Settings]:
        """Return the probe for the daemon's state."""
        return Probe(Action(("cat", str(self.control))), parse_caps)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the order to the daemon where the caps are not as wanted."""
        return [
            Change(
                key,
                now[key],
                value,
                Action(("tee", str(self.control)), b"cap %b\n" % value.encode()),
            )
            for key, value in want.items()
            if now[key] != value
        ]


def parse_caps(raw: bytes) -> Settings:
    """Return whether the caps of a lab disk are in force."""
    return {"caps": "on" if msgspec.json.decode(raw, type=dict[str, Any])["capped"] else "off"}


_RELEASED_S, _POLL_S = 10.0, 0.2  # how long to wait for other mounts to end
_TRIES = 3


@dataclass(frozen=True, slots=True)
class LabDevice:
    """A block device with the caps of a cloud disk, and a base that it can be reset to."""

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
        """Return whether there is a frozen base."""
        return bool(self.stats()["mode"] == "overlay")

    def cap(self, *, on: bool) -> None:
        """Switch the caps on or off."""
        layer = DiskCaps(self._paths.control)
        converge_made(self.host, layer, {"caps": "on" if on else "off"}, timeout_s=_PATIENCE_S)

    def credits(self, level: str | float | None = None) -> None:
        """Set the burst credits to `level`, or to the spec's own.

        An idle disk earns credits, as in the cloud: call this when the load begins.
        """
        text = level_text(self.state.spec.credits if level is None else level)
        self._control.order(f"credits {text}")

    def freeze(self) -> None:
        """Freeze the contents as the base; raise `RefusedError` while it is mounted."""
        self._quiet("freeze")
        self._control.order("freeze")
        mark_frozen(self.host, self._paths.snapshot_marker, self.state.spec)

    def drop(self) -> None:
        """Discard all writes since the freeze; raise `RefusedError` while mounted.

        The kernel's cache of the device is flushed before, so that no old data is written to the
        new overlay, and after, so that no data read in between stays cached.
        """
        self._quiet("drop")
        self._control.order("drop")
        self._flush()

    def stats(self) -> Mapping[str, Any]:
        """Return the disk's state: caps and credits, counters, `overlay_pages` of 4 KiB."""
        return self._control.state()

    def measure(self, seconds: int = 5, *, write: bool = False) -> DiskCalibration:
        """Return the measured rates from the spec's credit level, `seconds` for each.

        Random writes (of zeros) are measured only with `write`, and refused with `RefusedError`
        once anything was written.  Each takes one more second, the ramp of fio.  A rate that
        differs from the caps is measured again, as other load may be the cause.  Raise `HostError`
        with the numbers where it is far above the caps each time: they are not in force.
        """
        stats = self.stats()
        if write and (stats["mode"] != "direct" or stats["counters"]["bytes_written"]):
            raise RefusedError(f"{self.device}: contains data; measure writes only on a new disk")
        stripe = self.state.spec.stripe
        reads = self._nearest(random(stripe, "randread"), seconds)
        writes = self._nearest(random(stripe, "randwrite"), seconds) if write else None
        found = DiskCalibration(reads, self._nearest(sequential(stripe), seconds), writes)
        self.credits()
        return found

    def _nearest(self, pattern: IoPattern, seconds: int) -> IoMeasurement:
        """Return the measurement, of up to three, that is nearest to the caps.

        A busy host lowers the rate; a delayed load finds more credits.
        """
        found: list[IoMeasurement] = []
        stripe = self.state.spec.stripe
        while len(found) < _TRIES and not (found and found[-1].within_tolerance):
            found.append(measure(self.host, self.device, pattern, stripe, seconds, self._begin))
        nearest = min(found, key=lambda reading: reading.deviation)
        if nearest.exceeds_caps:
            raise HostError(
                f"{self.device}: caps not in force: {nearest.description}; report this as a "
                "defect of mydyno"
            )
        return nearest

    def _begin(self) -> Mapping[str, Any]:
        """Set the spec's credits and return the state from which they count."""
        self.credits()
        return self.stats()

    def remove(self, *, keep_base: bool = False) -> None:
        """Remove the lab with its mounts; `keep_base` retains its base for a resumed campaign.

        Can be called again.  Raise `HostError` if something still uses the device.
        """
        state = self.labs.read(self.state.spec.lab) or self.state  # made again since, perhaps
        try:
            if state.home == self.state.home:
                tear_down(self.host, self.labs, state, base=not keep_base)
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
        """Check that nothing is mounted, and flush the device's cache."""
        targets = mounts_of(self.host, self.device)
        if targets:
            raise RefusedError(
                f"{self.device}: {purpose}: mounted on {', '.join(targets)}; unmount it first"
            )
        self._released(purpose)
        self._flush()

    def _released(self, purpose: str) -> None:
        """Check that the filesystem is not mounted in another mount namespace.

        The kernel would go on writing its old data to the device.
        """
        end_s = time.monotonic() + _RELEASED_S
        while holders := mounted_elsewhere(self.host, self.device):
            if time.monotonic() > end_s:
                raise RefusedError(
                    f"{self.device}: {purpose}: still mounted in the mount namespace of process "
                    f"{', '.join(map(str, holders))}, made while the lab was mounted; end it, "
                    "then run again"
                )
            time.sleep(_POLL_S)

    def _flush(self) -> None:
        done = self.host.run(Action(("blockdev", "--flushbufs", self.device)))
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip()
            raise HostError(
                f"{self.device}: cannot be flushed ({words}); check that its mydyno-disk is running"
            )
