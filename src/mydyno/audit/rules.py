"""The rules of an audit: data, one TOML file each, read strictly.

A rule names the flavours and versions it holds for, the facts that it needs, its source, and the
date after which somebody must look at it again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

import msgspec

from mydyno.audit.expression import Expression, parsed
from mydyno.model import SpecError, unknown_value
from mydyno.stack.flavours import matches

Class = Literal["fault", "promise", "test", "note"]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Version = tuple[int, ...]

_RATE = re.compile(r"\brate\.([a-z_]+)")
_PART = re.compile(r"\{([^{}|]+)(?:\|(\w+))?\}")
FORMATS = ("size", "span", "share", "rate", "number", "text")


class Treatment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings that may be better where a rule fires: keys of a spec, to expressions.

    `levels` are factors by which a second and a third treatment differ in each number, so that the
    advice is compared with its neighbours.
    """

    settings: Annotated[dict[str, Text], msgspec.Meta(min_length=1)]
    ranges: tuple[Text, ...] = ()
    levels: tuple[float, ...] = ()

    def holds_for(self, flavour: str, version: Version) -> bool:
        """Return whether it can be set on a server of this flavour and version."""
        return not self.ranges or any(matches(text, flavour, version) for text in self.ranges)


class AuditRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one file holds; expressions are checked when it is read.

    `when` is where it fires, `until` where one that has fired stops (by default where `when` does
    not hold).  `watch_s` is how long the server must have been watched, `uptime_s` how long it must
    have run.  `class`: a *fault* shows at a crash or a restart, a *promise* cannot be fulfilled by
    the memory there is, a *test* is worth a campaign, a *note* is worth knowing.
    """

    message: Text
    kind: Class = msgspec.field(name="class")
    ranges: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    when: Text
    source: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    seen: Text
    expires: Text
    until: str = ""
    watch_s: float = 0.0
    uptime_s: float = 0.0
    setting: str = ""  # the variable whose place in an option file is shown
    cost: Literal["", "online", "restart", "remount", "reboot"] = ""
    durability: Literal["same", "stronger", "weaker"] = "same"
    fix: str = ""  # what to do about a fault: a sentence
    conflicts: tuple[str, ...] = ()
    treatments: tuple[Treatment, ...] = ()


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a message: words, or an expression and how its value is written."""

    text: str = ""
    expression: Expression | None = None
    form: str = "text"


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule, the name of its file, and its expressions."""

    name: str
    rule: AuditRule
    when: Expression
    until: Expression | None
    phrases: tuple[Phrase, ...]

    def holds_for(self, flavour: str, version: Version) -> bool:
        """Return whether it is about a server of this flavour and version."""
        return any(matches(text, flavour, version) for text in self.rule.ranges)

    def expired(self, today: date) -> bool:
        """Return whether somebody must look at it again first."""
        return f"{today:%Y-%m}" >= self.rule.expires


def read_rule(name: str, raw: bytes) -> NamedRule:
    """Return a rule; raise `SpecError` naming its file and what is wrong in it."""
    place = f"{name}.toml"
    try:
        rule = msgspec.toml.decode(raw, type=AuditRule)
    except msgspec.DecodeError as error:
        raise SpecError(f"{place}: {error}") from error
    for text in (*rule.ranges, *(text for t in rule.treatments for text in t.ranges)):
        matches(text, "none", ())
    for when in (rule.seen, rule.expires):
        if not re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", when):
            raise SpecError(f"{place}: {when!r} is not a month; write 2026-11")
    for treatment in rule.treatments:
        for key, text in treatment.settings.items():
            parsed(text, f"{place}: {key}")
    if rule.kind == "test" and not rule.treatments:
        raise SpecError(f"{place}: a rule of class test needs [[treatments]]")
    until = parsed(rule.until, f"{place}: until") if rule.until else None
    return NamedRule(
        name, rule, parsed(rule.when, f"{place}: when"), until, _phrases(rule.message, place)
    )


def _phrases(message: str, place: str) -> tuple[Phrase, ...]:
    found: list[Phrase] = []
    at = 0
    for part in _PART.finditer(message):
        if part[2] not in {None, *FORMATS}:
            raise SpecError(f"{place}: message: {unknown_value(part[2], FORMATS, 'format')}")
        found.append(Phrase(message[at : part.start()]))
        found.append(Phrase("", parsed(part[1], f"{place}: message"), part[2] or "text"))
        at = part.end()
    return (*found, Phrase(message[at:]))


def counters() -> list[str]:
    """Return the counters whose rates the rules use."""
    texts = (t for rule in rules().values() for t in (rule.rule.when, rule.rule.until))
    return sorted({name for text in texts for name in _RATE.findall(text)})


@cache
def rules() -> Mapping[str, NamedRule]:
    """Return the rules that ship with mydyno, by name."""
    there = files("mydyno.audit").joinpath("rules")
    named = sorted((path for path in there.iterdir()), key=lambda path: path.name)
    return {
        path.name.removesuffix(".toml"): read_rule(
            path.name.removesuffix(".toml"), path.read_bytes()
        )
        for path in named
        if path.name.endswith(".toml")
    }
