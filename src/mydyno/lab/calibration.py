"""Calibration of a lab device with fio: measured rates against the rates of its caps."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mydyno.host import Host
from mydyno.lab.values import PAGE, Stripe
from mydyno.model import Action, HostError


@dataclass(frozen=True, slots=True)
class CapRate:
    """I/Os per second that the caps allow; None is no limit.  `by` names that cap."""

    rate: float | None
    by: str


def cap_rate(state: Mapping[str, Any], block: int, ramp_s: float, seconds: float) -> CapRate:
    """Return what the caps in a daemon's `state` allow to I/Os of `block` bytes on all disks.

    It is the mean over `seconds` after a ramp of `ramp_s`, under full load from now on.
    """
    kinds = (("iops", 1.0), ("bytes_per_s", float(block)))
    count = len(state["disks"])
    found: list[tuple[float, str]] = []
    for owner, times in ((state, count), (state["vm"], 1)):
        for kind, cost in kinds:
            cap = owner and owner["caps"][kind]
            if cap:
                rate = _mean(cap, owner["credits"][kind], times, (ramp_s, seconds)) / cost
                found.append((rate, _cap_name(owner is state, kind)))
    least = min(found, default=None)
    return CapRate(*least) if least else CapRate(None, "no cap")


def _mean(
    cap: Mapping[str, float], credits_left: float, times: int, when: tuple[float, float]
) -> float:
    """Return the mean rate of `times` equal buckets over a window behind a ramp."""
    extra = cap["burst"] - cap["base"]
    ramp_s, seconds = when
    lasts_s = credits_left / extra if extra else 0.0
    share = min(max(lasts_s - ramp_s, 0.0) / seconds, 1.0)
    return times * (cap["base"] + share * extra)


def _cap_name(disks: bool, kind: str) -> str:  # noqa: FBT001 - of two
    return f"{'the disks' if disks else 'the VM'}, {'IOPS' if kind == 'iops' else 'bytes'}"


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
    def read_iops(self) -> float:
        """Return random reads per second, of 16 KiB unless chunks are smaller."""
        return self.reads.rate

    @property
    def read_bytes_per_s(self) -> float:
        """Return bytes per second of sequential reads."""
        return self.sequential.bytes_per_s

    @property
    def write_iops(self) -> float | None:
        """Return random writes per second; None if they were not measured."""
        return None if self.writes is None else self.writes.rate

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
