"""One running lab disk: its block device, caps, snapshot, calibration and removal."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import msgspec

from mydyno.host import Host, Running, boot_of
from mydyno.lab.teardown import mounted_elsewhere, mounts_of, tear_down
from mydyno.lab.values import PAGE, LabSpec, LabState, Registry, Stripe, level_text
from mydyno.model import Action, Change, HostError, Probe, RefusedError, Settings
from mydyno.stack import converge_made


@dataclass(frozen=True, slots=True)
class CapRate:
    """I/Os per second that the caps allow; None is no limit.  `by` names that cap."""

    rate: float | None
    by: str


def cap_rate(state: Mapping[str, Any], block: int, ramp_s: float, seconds: float) -> CapRate:
    """Return what the caps in a daemon's `state` allow to I/Os of `block` bytes on all disks.

    It is the mean over `seconds` after a ramp of `ramp_s`, under full load from now on.
    """
    owners = ((state, "the disks", len(state["disks"])), (state["vm"], "the VM", 1))
    found: list[tuple[float, str]] = []
    for owner, name, times in owners:
        for kind, unit, size in (("iops", "IOPS", 1), ("bytes_per_s", "bytes", block)):
            if cap := owner and owner["caps"][kind]:
                extra = cap["burst"] - cap["base"]
                lasts_s = owner["credits"][kind] / extra if extra else 0.0
                share = min(max(lasts_s - ramp_s, 0.0) / seconds, 1.0)
                found.append((times * (cap["base"] + share * extra) / size, f"{name}, {unit}"))
    least = min(found, default=None)
    return CapRate(*least) if least else CapRate(None, "no cap")


RAMP_S = 1.0  # fio counts nothing before
_BEGIN_S = 0.8  # after which the credits are set, with fio at work
_TOLERANCE = 0.05  # beyond it the host is too slow for the class, or has other load
_LEAK = 0.25  # above the caps by more than this, they are not in force
Begin = Callable[[], Mapping[str, Any]]
_IN_FLIGHT = 128  # queue depth of a loop device
_RANDOM, _RANDOM_DEPTH = 16 << 10, 32
_SEQUENTIAL, _SEQUENTIAL_DEPTH = 256 << 10, 16


@dataclass(frozen=True, slots=True)
class IoPattern:
    """An I/O pattern: fio's rw, block size in bytes, queue depth on each disk."""

    rw: str
    block: int
    depth: int


@dataclass(frozen=True, slots=True)
class IoMeasurement:
    """A measured `rate` in I/Os of `block` bytes per second, and the rate expected by the caps."""

    rw: str
    block: int
    rate: float
    expected: CapRate

    @property
    def bytes_per_s(self) -> float:
        """Return the rate in bytes a second."""
        return self.rate * self.block

    @property
    def deviation(self) -> float:
        """Return the absolute difference from the expected rate, as a ratio of that."""
        return abs(self.rate / self.expected.rate - 1) if self.expected.rate else 0.0

    @property
    def within_tolerance(self) -> bool:
        """Return whether the rate is that of the caps, within 5 %."""
        return self.deviation <= _TOLERANCE

    @property
    def exceeds_caps(self) -> bool:
        """Return whether the rate is so far above the caps that they cannot be in force."""
        return self.deviation > _LEAK and self.rate > (self.expected.rate or 0.0)

    @property
    def description(self) -> str:
        """Return the measured and the expected rate as text."""
        measured = f"{self.rate:,.0f} {self.rw} of {self.block >> 10}K per second"
        return f"{measured}; expected {self.expected.rate or 0:,.0f} by {self.expected.by}"


@dataclass(frozen=True, slots=True)
class DiskCalibration:
    """Measured rates of a lab device: random reads, sequential reads, optional random writes."""

    reads: IoMeasurement
    sequential: IoMeasurement
    writes: IoMeasurement | None = None

    @property
    def all(self) -> Sequence[IoMeasurement]:
        """Return all measurements."""
        return (self.reads, self.sequential, *((self.writes,) if self.writes else ()))


def random(stripe: Stripe, rw: str) -> IoPattern:
    """Return random I/O of 16 KiB, or of the largest block that divides a chunk."""
    return IoPattern(rw, _fits(_RANDOM, stripe), _deep(_RANDOM_DEPTH, stripe))


def sequential(stripe: Stripe) -> IoPattern:
    """Return sequential reads of 256 KiB, one I/O of any cloud, or as large as a chunk allows."""
    return IoPattern("read", _fits(_SEQUENTIAL, stripe), _deep(_SEQUENTIAL_DEPTH, stripe))


def measure(
    host: Host, device: str, pattern: IoPattern, stripe: Stripe, seconds: int, begin: Begin
) -> IoMeasurement:
    """Return the rate of a device over `seconds`.

    `begin` sets the credits and returns the daemon's state.  It is called during fio's ramp, so
    that credits earned while fio starts do not count.
    """
    running = host.start(_job(device, pattern, stripe, seconds))
    try:
        time.sleep(_BEGIN_S)
        state = begin()
        raw = b"".join(running.lines())
    finally:
        running.stop()
    if b"{" not in raw:
        raise HostError(f"{device}: fio reported nothing: {raw.decode(errors='replace')[-200:]}")
    expected = cap_rate(state, pattern.block, RAMP_S - _BEGIN_S, seconds)
    return IoMeasurement(pattern.rw, pattern.block, parse(raw, pattern.rw), expected)


def parse(raw: bytes, rw: str) -> float:
    """Return I/Os per second of the first group in fio's JSON, after any notes.

    After a ramp fio counts what was issued in the window, over a runtime that goes on until the
    last of it is answered, one latency later: at depth 32 and 1100 IOPS that is 29 ms too long.
    """
    reply: dict[str, Any] = msgspec.json.decode(raw[raw.index(b"{") :], type=dict[str, Any])
    done = reply["jobs"][0]["write" if "write" in rw else "read"]
    window_s = done["runtime"] / 1e3 - done["lat_ns"]["mean"] / 1e9
    return float(done["total_ios"] / window_s) if done["total_ios"] else 0.0


def _fits(block: int, stripe: Stripe) -> int:
    """Return the largest block up to this one that divides a chunk."""
    if stripe.disks == 1:
        return block
    return next(n for n in range(block, 0, -PAGE) if stripe.chunk % n == 0)


def _deep(depth: int, stripe: Stripe) -> int:
    """Return the queue depth of each disk, within that of the loop device."""
    return max(1, min(depth, _IN_FLIGHT // stripe.disks))


def _job(device: str, pattern: IoPattern, stripe: Stripe, seconds: int) -> Action:
    """Return fio with a job for each disk, which stays on that disk's chunks.

    Requests at random places of a stripe queue up at one disk while another idles: at depth 32
    on eight disks a sixth of the rate is lost, and no cap has been tested.
    """
    fixed = (
        "fio",
        "--name=calibration",
        f"--filename={device}",
        f"--rw={pattern.rw}",
        "--direct=1",
    )
    timing = ("--time_based", f"--runtime={seconds}", f"--ramp_time={RAMP_S:g}")
    engine = ("--ioengine=libaio", "--zero_buffers", "--randrepeat=0", "--output-format=json")
    shape = (f"--bs={pattern.block}", f"--iodepth={pattern.depth}", "--thread", "--group_reporting")
    safety = () if "write" in pattern.rw else ("--readonly",)
    return Action((*fixed, *timing, *engine, *shape, *safety, *_zones(stripe, pattern)))


def _zones(stripe: Stripe, pattern: IoPattern) -> tuple[str, ...]:
    """Return fio's zones for one disk's chunks: a part of each is used, then the next one's."""
    if stripe.disks == 1:
        return ()
    size = pattern.block if pattern.rw.startswith("rand") else stripe.chunk
    return (
        f"--numjobs={stripe.disks}",
        f"--offset_increment={stripe.chunk}",
        "--zonemode=strided",
        f"--zonesize={size}",
        f"--zonerange={stripe.chunk}",
        f"--zoneskip={(stripe.disks - 1) * stripe.chunk}",
    )


def is_frozen(host: Host, marker: Path, spec: LabSpec) -> bool:
    """Return whether the bases were frozen at this size and stripe since the host was booted.

    The base is not synced to the host's disk, which would take as long as a trial; so it is not
    used after a reboot of the host.
    """
    done = host.run(Action(("cat", str(marker))))
    return done.returncode == 0 and done.stdout == _shape(host, spec)


def _shape(host: Host, spec: LabSpec) -> bytes:
    """Return the content of the marker of a frozen base: size, stripe and the host's boot."""
    stripe = {"disks": spec.stripe.disks, "chunk": spec.stripe.chunk}
    striped = stripe if spec.stripe.disks > 1 else {}
    return msgspec.json.encode({"size": spec.size, "boot": boot_of(host), **striped})


_PATIENCE_S = 60.0  # a reply takes a millisecond, but a host's disk can stall for seconds


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
        layer = DiskCaps(self.state.paths.control)
        converge_made(self.host, layer, {"caps": "on" if on else "off"}, timeout_s=_PATIENCE_S)

    def refill(self) -> None:
        """Set the burst credits to what they were set to last, by `credits` or a treatment.

        An idle disk earns credits, as in the cloud: call this when the load begins.
        """
        self._order("credits again")

    def credits(self, level: str | float | None = None) -> None:
        """Set the burst credits to `level`, or to the spec's own."""
        text = level_text(self.state.spec.credits if level is None else level)
        self._order(f"credits {text}")

    def freeze(self) -> None:
        """Freeze the contents as the base; raise `RefusedError` while it is mounted."""
        self._quiet("freeze")
        self._order("freeze")
        install = ("install", "-m", "600", "/dev/stdin", str(self.state.paths.snapshot_marker))
        self.host.run(Action(install, _shape(self.host, self.state.spec))).check()

    def drop(self) -> None:
        """Discard all writes since the freeze; raise `RefusedError` while mounted.

        The kernel's cache of the device is flushed before, so that no old data is written to the
        new overlay, and after, so that no data read in between stays cached.
        """
        self._quiet("drop")
        self._order("drop")
        self._flush()

    def fault(self, order: str) -> None:
        """Order a fault: ``cache on``, ``cut drawn 7`` and others of docs/guide/lab.md.

        Raise `HostError` with the daemon's message if it refuses.
        """
        self._order(order)

    def power_on(self) -> None:
        """Switch the power on after a cut; what the kernel still has of the device is discarded.

        Raise `RefusedError` while it is mounted, also in another mount namespace: the next mount
        would find there what the kernel has in memory, as if nothing were lost.
        """
        if targets := mounts_of(self.host, self.device):
            raise RefusedError(f"{self.device}: power on: unmount {', '.join(targets)} first")
        self._released("power on")
        self.host.run(Action(("blockdev", "--flushbufs", self.device)))  # fails, as it must
        self._order("power on")

    def stats(self) -> Mapping[str, Any]:
        """Return the disk's state: caps and credits, counters, `overlay_pages` of 4 KiB.

        Rates are per second, sizes in bytes.
        """
        action = Action(("cat", str(self.state.paths.control)))
        raw = self.host.run(action, timeout_s=_PATIENCE_S).check().stdout
        state: Mapping[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
        return state

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

    def _order(self, line: str) -> None:
        """Send one command; raise `HostError` with the daemon's message if it refuses."""
        path = self.state.paths.control
        done = self.host.run(
            Action(("tee", str(path)), f"{line}\n".encode()), timeout_s=_PATIENCE_S
        )
        if done.returncode:
            words = self.stats().get("last_error") or done.stderr.decode(errors="replace").strip()
            raise HostError(f"{path}: {line}: {words}")

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
