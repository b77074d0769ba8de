"""The lab's link: its rate and delay, both ways alike; the host's own links are never touched."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from mydyno.model import Action, Change, Probe, Settings, SpecError
from mydyno.stack.net import LAB
from mydyno.stack.protocol import StackSettings, full_key, refuse_unknown

UNLIMITED = "unlimited"
_BITS = {"kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_RATE = re.compile(rf"(\d+(?:\.\d+)?)({'|'.join(_BITS)})")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")
_DELAY = re.compile(r"(\d+(?:\.\d+)?)(us|ms)")
_LONGEST_US = 10**6
NO_DELAY = "0us"
_SLOWEST, _FASTEST = 10**5, 10**11  # bit/s
_BURST_S = 0.002  # a shaper that wakes so late loses nothing
_BURST = 4096  # bytes, more than one frame
_QUEUE = 1000 * 1514  # bytes: a network card's usual queue of a thousand frames


RATE, DELAY = full_key("link", "rate"), full_key("link", "delay")
KEYS = ("rate", "delay")
_PASSING = (RATE, full_key("disk", ""), full_key("slow", ""))  # what traffic does not depend on


def uses_lab_link(settings: StackSettings) -> bool:
    """Return whether a treatment's load uses the lab link."""
    return settings.of("net").get("address") == LAB


def refuse_bad_link(settings: StackSettings) -> None:
    """Raise `SpecError` for an invalid rate or delay, or a treatment without the lab link."""
    wanted = settings.of("link")
    for key in wanted:
        if not uses_lab_link(settings):
            raise SpecError(f'link.{key} applies to the lab link only; add "net.address" = "{LAB}"')
    if "delay" in wanted:
        delay_us(wanted["delay"])
    rate = wanted.get("rate")
    if rate is None:
        return
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
    wanted = {key: value for key, value in settings.of("link").items() if key != "rate"}
    if bytes_per_s:
        wanted["rate"] = text(bytes_per_s * of_traffic * 8)
    return settings.with_layer("link", wanted)


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
    """Keys `rate` and `delay` of two interfaces: `device` on the host, `peer` in `namespace`.

    A delay is what a round trip takes longer (``500us``, ``2ms``), half of it in each direction;
    `wire` is the folder of the orders to the process that carries the frames, None where the link
    has none.
    """

    name: ClassVar[str] = "link"
    owned: ClassVar[bool] = True
    device: str
    namespace: str
    peer: str
    wire: Path | None = None

    def observe(self) -> Probe[Settings]:
        """Return the probe for the shapers of both ends, and for the wire's state."""
        shapers = self._tc("qdisc show")
        if self.wire is None:
            return Probe(shapers, parse)
        both = ("sh", "-c", 'cat -- "$1" && shift && exec "$@"', "state", str(self.wire / "state"))
        return Probe(Action((*both, *shapers.argv), shapers.stdin), parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for a key or a value that cannot be."""
        refuse_unknown(want, KEYS, "link")
        rate = normal(want.get("rate", UNLIMITED))
        delay = f"{delay_us(want.get('delay', NO_DELAY)):g}us"
        if self.wire is None and delay != NO_DELAY:
            raise SpecError(f"link.delay = {delay!r}: this link was made without a wire")
        after = {"rate": (rate, self._shaped(rate))}
        if self.wire is not None:
            after["delay"] = (delay, ordered(self.wire, f"delay {delay.removesuffix('us')}\n"))
        wanted = [(key, *new) for key, new in after.items() if now[key] != new[0]]
        return [Change(key, now[key], value, action) for key, value, action in wanted]

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


def ordered(folder: Path, order: str) -> Action:
    """Return the command that orders something from a process of the lab, and waits for it.

    The process looks each 50 ms.
    """
    argv = ("sh", "-c", 'cat >"$1" && sleep 0.15', "order", str(folder / "order"))
    return Action(argv, order.encode())


def parse(raw: bytes) -> Settings:
    """Return the rate, ``uneven`` where the ends do not have the same, and the delay if any."""
    lines = raw.split(b"\n")
    shapers = [line for line in lines if line.startswith(b"[")]
    rates = {_rate_of(msgspec.json.decode(line, type=list[_Shaper])) for line in shapers}
    found = {"rate": rates.pop() if len(rates) == 1 else "uneven"}
    if lines[0].startswith(b"delay "):
        found["delay"] = f"{float(lines[0].split()[1]):g}us"
    return found


def delay_us(delay: str) -> float:
    """Return a delay in microseconds; raise `SpecError` for another text or one beyond 1 s."""
    found = _DELAY.fullmatch(delay)
    us = float(found[1]) * (1000 if found[2] == "ms" else 1) if found else -1.0
    if not 0 <= us <= _LONGEST_US:
        raise SpecError(
            f"link.delay = {delay!r}: write what a round trip takes longer, such as 500us or 2ms, "
            "up to 1000ms"
        )
    return us


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
