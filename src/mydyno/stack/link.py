"""The lab's link: its rate, both ways alike; a link of the host's own is never touched."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from mydyno.model import Action, Change, Probe, Settings, SpecError, unknown_value
from mydyno.stack.net import LAB
from mydyno.stack.protocol import StackSettings, full_key

UNLIMITED = "unlimited"
_BITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_RATE = re.compile(rf"(\d+(?:\.\d+)?)({'|'.join(_BITS)})")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_SLOWEST, _FASTEST = 10**5, 10**11  # bit/s
_BURST_S = 0.002  # a shaper that wakes so late loses nothing
_BURST = 4096  # bytes, more than one frame
_QUEUE = 1000 * 1514  # bytes: a network card's usual queue of a thousand frames


RATE = full_key("link", "rate")
_PASSING = (RATE, full_key("disk", ""), full_key("slow", ""))  # what traffic does not depend on


def uses_lab_link(settings: StackSettings) -> bool:
    """Return whether a treatment's load uses the lab link."""
    return settings.of("net").get("address") == LAB


def refuse_bad_rate(settings: StackSettings) -> None:
    """Raise `SpecError` for an invalid rate, or one of a treatment without the lab link."""
    rate = settings.of("link").get("rate")
    if rate is None:
        return
    if not uses_lab_link(settings):
        raise SpecError(f'link.rate applies to the lab link only; add "net.address" = "{LAB}"')
    if (of_traffic := share(rate)) is None:
        normal(rate)
    elif not of_traffic:
        raise SpecError(f"link.rate = {rate!r}: must be above 0")


def traffic_key(settings: Settings, workload: str) -> str:
    """Return the key of a load's traffic: it depends on all settings but the rate and doses."""
    rest = " ".join(f"{k}={v}" for k, v in sorted(_plain(settings).items()))
    return f"traffic of {workload} with {rest}"


def resolved(
    settings: StackSettings, workload: str, measured: Mapping[str, float]
) -> StackSettings:
    """Return the settings with a share of traffic as a rate; left out if not measured yet."""
    of_traffic = share(settings.of("link").get("rate", ""))
    if of_traffic is None:
        return settings
    bytes_per_s = measured.get(traffic_key(settings, workload))
    rate = {"rate": text(bytes_per_s * of_traffic * 8)} if bytes_per_s else {}
    return settings.with_layer("link", rate)


def unmeasured(
    treatments: Iterable[StackSettings], workloads: Iterable[str], measured: Mapping[str, float]
) -> dict[str, tuple[StackSettings, str]]:
    """Return the traffic that is not measured yet, by key: settings and workload."""
    return {
        key: (_plain(settings), workload)
        for settings in treatments
        if share(settings.of("link").get("rate", "")) is not None
        for workload in workloads
        if (key := traffic_key(settings, workload)) not in measured
    }


def _plain(settings: Settings) -> StackSettings:
    """Return the settings without the link's rate and without doses."""
    return StackSettings({k: v for k, v in settings.items() if not k.startswith(_PASSING)})


class _Options(msgspec.Struct, frozen=True):
    rate: int = 0  # bytes per second


class _Shaper(msgspec.Struct, frozen=True):
    kind: str
    options: _Options = _Options()


@dataclass(frozen=True, slots=True)
class Link:
    """Key `link.rate` of a pair of interfaces: `device` on the host, `peer` in `namespace`."""

    name: ClassVar[str] = "link"
    owned: ClassVar[bool] = True
    device: str
    namespace: str
    peer: str

    def observe(self) -> Probe[Settings]:
        """Return the probe for the shapers of both ends."""
        return Probe(self._tc("qdisc show"), parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the change; raise `SpecError` for a key or a rate that cannot be."""
        for key in want.keys() - {"rate"}:
            raise SpecError(unknown_value(key, ("rate",), "setting", prefix="link."))
        before = now["rate"]
        after = normal(want.get("rate", UNLIMITED))
        return [Change("rate", before, after, self._shaped(after))] if before != after else []

    def _shaped(self, rate: str) -> Action:
        """Return the command that puts a token bucket before both ends, or takes it away.

        A packet larger than the bucket is cut into frames by the kernel, so that a slow link's
        bucket can be as small as a frame.
        """
        if rate == UNLIMITED:
            return self._tc("qdisc replace", "root noqueue")
        burst = max(_BURST, round(bytes_per_s(rate) * _BURST_S))
        bucket = f"root tbf rate {rate} burst {burst} limit {_QUEUE + burst}"
        return self._tc("qdisc replace", bucket)

    def _tc(self, command: str, rest: str = "") -> Action:
        """Return one command that runs `tc` for both ends; it fails if either does."""
        ends = (("-j", self.device), (f"-j -n {self.namespace}", self.peer))
        lines = (f"{options} {command} dev {device} {rest}".rstrip() for options, device in ends)
        return Action(("xargs", "-L", "1", "tc"), "".join(f"{line}\n" for line in lines).encode())


def parse(raw: bytes) -> Settings:
    """Return the rate, ``uneven`` where the ends do not have the same."""
    lines = [line for line in raw.split(b"\n") if line.startswith(b"[")]
    rates = {_rate_of(msgspec.json.decode(line, type=list[_Shaper])) for line in lines}
    return {"rate": rates.pop() if len(rates) == 1 else "uneven"}


def normal(rate: str) -> str:
    """Return a rate as ``1gbit``, ``100mbit`` or ``12500kbit``; raise `SpecError` for another."""
    if rate == UNLIMITED:
        return rate
    found = _RATE.fullmatch(rate.lower())
    bits = round(float(found[1]) * _BITS[found[2]]) if found else 0
    if not _SLOWEST <= bits <= _FASTEST:
        raise SpecError(
            f"link.rate = {rate!r}: write 1gbit, 100mbit or 500kbit, from 100kbit to 100gbit, "
            "or 40% of the load's traffic"
        )
    return text(bits)


def text(bits: float) -> str:
    """Return bits per second, cut to full kilobits, in the largest unit that leaves an integer."""
    kilobits = max(1, int(bits) // 1000)
    units = ((10**6, "gbit"), (10**3, "mbit"), (1, "kbit"))
    size, unit = next((size, unit) for size, unit in units if kilobits % size == 0)
    return f"{kilobits // size}{unit}"


def share(rate: str) -> float | None:
    """Return the ratio that ``40%`` stands for, None for any other rate."""
    found = _SHARE.fullmatch(rate)
    return float(found[1]) / 100 if found else None


def bytes_per_s(rate: str) -> float:
    """Return a normal rate in bytes per second."""
    found = _RATE.fullmatch(rate)
    if found is None:
        raise ValueError(f"{rate!r} is no rate")
    return float(found[1]) * _BITS[found[2]] / 8


def _rate_of(shapers: Sequence[_Shaper]) -> str:
    rate = next((s.options.rate for s in shapers if s.kind == "tbf"), 0)
    return text(rate * 8) if rate else UNLIMITED
