"""Doses: settings that slow one resource by a known factor while a load runs; all are ours.

`disk.*` are orders to the daemon of a lab disk, `slow.*` slices of CPUs that a process of ours
takes.  Both end with what they are given to: a disk that is removed, a process that ends with
mydyno.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from mydyno.model import Action, Change, Probe, Settings, SpecError
from mydyno.stack.link import ordered, share
from mydyno.stack.protocol import IDENTITY, StackSettings, refuse_unknown

NONE = "100%"
_MICROS = re.compile(r"(\d+(?:\.\d+)?)us")
_MOST_US = 1e6
_SLOWEST, _FASTEST = 0.7, 1.5  # of a treatment's own
_LEAST, _LARGEST = 0.1, 10.0  # that the daemon takes: a dose of such a treatment is beyond these
LATENCIES = ("read_latency", "write_latency", "flush_latency")
CREDITS, CLASS = "credits", "class"
DISK_KEYS = ("rate", *LATENCIES, CREDITS)
CPU_KEYS = ("host", "server", "load")


@dataclass(frozen=True, slots=True)
class LabDisk:
    """Keys `rate`, `read_latency`, `write_latency`, `flush_latency` and `credits` of a lab disk.

    A rate is a share of its caps (``80%``); a latency is what is added to each request
    (``250us``); `credits` are those that each load begins with, as a share of a full bucket, by
    default the `level` of the lab.  A disk is made with its `class`; `control` is its daemon's
    file.
    """

    name: ClassVar[str] = "disk"
    owned: ClassVar[bool] = True
    control: Path
    level: str = "0%"

    def observe(self) -> Probe[Settings]:
        """Return the probe for the daemon's state; a disk that never bursts has no credits."""
        return Probe(Action(("cat", str(self.control))), parse_disk)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the orders; raise `SpecError` for a key or a value that cannot be."""
        refuse_unknown(want, (*DISK_KEYS, CLASS), "disk")
        rate = share_text(want.get("rate", NONE), "disk.rate", _LEAST, _LARGEST)
        added = {key: _micros(want.get(key, "0us"), key) for key in LATENCIES}
        latency = " ".join(f"{us:g}" for us in added.values())
        lines = f"scale {ratio(rate)}\nlatency {latency}\n"
        order = Action(("tee", str(self.control)), lines.encode())
        after = {"rate": rate, **{key: f"{us:g}us" for key, us in added.items()}}
        changes = [
            Change(key, now.get(key, ""), value, order)
            for key, value in after.items()
            if now.get(key) != value
        ]
        return [*changes, *credits_change(now, want, self.level, self._begin_with)]

    def _begin_with(self, level: str) -> Action:
        return Action(("tee", str(self.control)), f"credits {ratio(level)}\n".encode())


@dataclass(frozen=True, slots=True)
class Slow:
    """Keys `host`, `server`, `load`: the share of the time of their CPUs that is left (``80%``).

    Server and load have CPUs of their own where they are pinned apart.  `folder` holds the order to
    the process that takes the rest, and its state.
    """

    name: ClassVar[str] = "slow"
    owned: ClassVar[bool] = True
    folder: Path

    def observe(self) -> Probe[Settings]:
        """Return the probe for what is in force."""
        return Probe(Action(("cat", str(self.folder / "state"))), parse_slow)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the order; raise `SpecError` for a key or a share that cannot be."""
        refuse_unknown(want, CPU_KEYS, "slow")
        after = {
            role: share_text(want.get(role, NONE), f"slow.{role}", _SLOWEST, 1.0)
            for role in CPU_KEYS
            if role in now or role in want
        }
        lines = "".join(f"{role} {ratio(value)}\n" for role, value in after.items())
        order = ordered(self.folder, lines)
        return [
            Change(role, now.get(role, ""), value, order)
            for role, value in after.items()
            if now.get(role) != value
        ]


def parse_disk(raw: bytes) -> Settings:
    """Return what is in force on a lab disk; `credits` are those that a load begins with.

    Each disk has a daemon of its own: what one was given is not what another has.
    """
    state = msgspec.json.decode(raw, type=dict[str, Any])
    added = dict(zip(LATENCIES, state.get("dose_us", (0, 0, 0)), strict=True))
    level = float(state.get("credits_level", 0.0))
    return {
        "rate": _percent(float(state.get("scale", 1.0))),
        **{key: f"{us:g}us" for key, us in added.items()},
        **({CREDITS: _percent(level)} if _bursts(state) else {}),
        **({IDENTITY: str(state["pid"])} if "pid" in state else {}),
    }


def _bursts(state: Mapping[str, Any]) -> bool:
    """Return whether any cap of the disks or of their VM has a burst above its base."""
    caps = [state.get("caps") or {}, (state.get("vm") or {}).get("caps") or {}]
    each = [cap for some in caps for cap in some.values() if cap]
    return any(cap.get("burst", 0) > cap.get("base", 0) for cap in each)


def credits_change(
    now: Settings, want: Settings, own: str, order: Callable[[str], Action]
) -> Sequence[Change]:
    """Return the order for the credits that a treatment wants, else the lab's `own`.

    It is one of its own: credits that are set again would not be spent.  Raise `SpecError` where
    the disk never bursts.
    """
    if now and CREDITS not in now:
        if CREDITS in want:
            raise SpecError(
                "disk.credits: this disk never bursts; choose a class that does, such as "
                "azure-p15 or aws-gp2-100: `mydyno lab classes`"
            )
        return []
    level = credit_level(want.get(CREDITS, own))
    was = now.get(CREDITS, "")
    return [Change(CREDITS, was, level, order(level))] if level != was else []


def credit_level(text: str) -> str:
    """Return a level of credits in its one form (``25%``); raise `SpecError` for another text."""
    named = {"empty": "0%", "full": "100%"}.get(text, text)
    try:
        found = share(named) if named.endswith("%") else float(named)
    except ValueError:
        found = None
    if found is None or not 0.0 <= found <= 1.0:
        raise SpecError(f"disk.credits = {text!r}: write empty, full, or a share such as 25%")
    return _percent(found)


def parse_caps(raw: bytes) -> Mapping[str, float]:
    """Return the caps of a lab disk and its VM by the names of `Figures`; what has none is absent.

    Those of a stripe are the sum over its disks, at most the VM's, times the rate that a treatment
    or a dose sets; ``disk.uncapped`` is that there are none at all.
    """
    state = msgspec.json.decode(raw, type=dict[str, Any])
    disks, scale = max(1, len(state.get("disks") or ())), float(state.get("scale", 1.0))
    vm = (state.get("vm") or {}).get("caps") or {}
    found: dict[str, float] = {}
    for name, of in (("ios", "iops"), ("bytes", "bytes_per_s")):
        for word, part in (("cap", "base"), ("burst", "burst")):
            own = (state["caps"].get(of) or {}).get(part) if state.get("capped") else None
            total = (vm.get(of) or {}).get(part)
            least = [v for v in (own * disks if own else None, total) if v]
            if least:
                found[f"disk.{word}_{name}"] = scale * min(least)
    return found or {"disk.uncapped": 1.0}


def parse_slow(raw: bytes) -> Settings:
    """Return the shares in force, by role."""
    pairs = (line.split() for line in raw.decode(errors="replace").splitlines())
    return {pair[0]: _percent(float(pair[1])) for pair in pairs if len(pair) == 2}  # noqa: PLR2004


def ratio(text: str) -> float:
    """Return the ratio that ``80%`` stands for; raise `SpecError` for another text."""
    found = share(text)
    if found is None:
        raise SpecError(f"{text!r}: write a share such as 80%")
    return found


def share_text(text: str, name: str, least: float, most: float) -> str:
    """Return a share in its one form; raise `SpecError` for another value or one out of range."""
    found = share(text)
    if found is None or not least <= found <= most:
        raise SpecError(f"{name} = {text!r}: write a share from {least:.0%} to {most:.0%}")
    return _percent(found)


def validate(settings: StackSettings) -> None:
    """Raise `SpecError` for doses of a spec's treatment that cannot be, on any host.

    A latency is given in microseconds: only a diagnosis has measured what a share would be of.
    """
    own = settings.of("disk")
    share_text(own.get("rate", NONE), "disk.rate", _SLOWEST, _FASTEST)
    LabDisk(Path()).plan({}, own)


def refuse_slow(settings: StackSettings) -> None:
    """Raise `SpecError` for a treatment that slows CPUs: all that runs on the host is slower."""
    for key in settings.of("slow"):
        raise SpecError(f"slow.{key}: is a dose of `mydyno diagnose` only; remove it")


def resolved(settings: StackSettings, measured: Mapping[str, float]) -> StackSettings:
    """Return the settings with latencies given as a share (``125%``) as what must be added.

    A treatment that adds something itself adds it under a dose, too (``2000us+125%``).  `measured`
    are the seconds that a request takes without a dose, by bare key; a dose on a latency that was
    not measured is left out.
    """
    wanted = dict(settings.of("disk"))
    for key in LATENCIES:
        before, _, dose = wanted.get(key, "").rpartition("+")
        of_own = share(dose)
        if of_own is not None:
            del wanted[key]
            more_us = measured.get(key, 0.0) * (of_own - 1.0) * 1e6
            if us := _micros(before or "0us", key) + more_us:
                wanted[key] = f"{round(min(us, _MOST_US), 1):g}us"
    return settings if wanted == settings.of("disk") else settings.with_layer("disk", wanted)


def _micros(text: str, key: str) -> float:
    found = _MICROS.fullmatch(text)
    if found is None or float(found[1]) > _MOST_US:
        raise SpecError(f"disk.{key} = {text!r}: write what is added, such as 250us, up to 1s")
    return float(found[1])


def _percent(value: float) -> str:
    return f"{round(value * 100, 3):g}%"
