"""The rate that the caps of a lab device allow for an I/O pattern."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CapRate:
    """I/Os per second that the caps allow; None is no limit.  `by` says which cap that is."""

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
