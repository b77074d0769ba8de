"""Findings: what the rules see in a server, stable from one audit to the next.

A rule that fired stays until its `until` holds, and a proposal moves only by more than a step.
What cannot be evaluated names the fact that it lacks.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec

from mydyno.audit.expression import LackingError, Values, parsed
from mydyno.audit.facts import ServerEvidence, ServerFacts
from mydyno.audit.option_files import number, written
from mydyno.audit.rules import Class, NamedRule, Phrase, Treatment

_SHAPE = 0.25  # share by which memory may differ for a tested finding to hold
WORTH = "adopt"  # the verdict of a proposal that is worth it
_DEADBAND = 2.0  # a proposal nearer to the last one than by this factor does not replace it


class MessagePart(msgspec.Struct, frozen=True):
    """A part of a message: words, or a value and how to write it."""

    text: str = ""
    value: float | str = ""
    form: str = ""


class Proposal(msgspec.Struct, frozen=True):
    """Settings that a campaign compares with those in force: keys of a spec to values."""

    name: str
    settings: dict[str, str]


class Tested(msgspec.Struct, frozen=True):
    """What a campaign found of a proposal, and the shape of the server: it holds for that only.

    `effect` is the ratio with its interval as text.
    """

    proposal: str
    verdict: str
    effect: str
    campaign: str
    flavour: str
    series: tuple[int, ...]
    memory_bytes: float

    def holds_for(self, seen: ServerEvidence, memory_bytes: float) -> bool:
        """Return whether the server is still of that shape: its series, and its memory."""
        same = (self.flavour, self.series) == (seen.flavour, seen.version[:2])
        return same and abs(memory_bytes - self.memory_bytes) <= _SHAPE * self.memory_bytes


class RuleFinding(msgspec.Struct, frozen=True):
    """What one rule sees; `figures` are the facts that it looked at, `where` the line that set it.

    `kind` is the rule's class, or ``tested`` where a campaign at this shape has found each of its
    proposals not to be worth it.  `since` is the day on which it was seen first.  An `expired` rule
    is only a note: somebody must look at it again.
    """

    rule: str
    kind: Class | Literal["tested"]
    message: tuple[MessagePart, ...]
    figures: dict[str, float | str]
    where: str
    cost: str
    durability: str
    fix: str
    source: tuple[str, ...]
    since: str
    proposals: tuple[Proposal, ...] = ()
    expired: bool = False
    tested: tuple[Tested, ...] = ()


class Unevaluated(msgspec.Struct, frozen=True):
    """A rule without an answer, and the facts or the time that it needs."""

    rule: str
    needs: str


class Remembered(msgspec.Struct, frozen=True):
    """What an earlier audit of this server found: since when, and what it proposed."""

    since: str
    proposed: list[dict[str, str]] = []
    tested: list[Tested] = []


class Audit(msgspec.Struct, frozen=True):
    """The findings in the order of their classes, and the rules that could not be evaluated."""

    findings: tuple[RuleFinding, ...]
    unevaluated: tuple[Unevaluated, ...]
    evaluated: int


_ORDER = ("fault", "promise", "test", "tested", "note")


def evaluate(
    seen: ServerEvidence,
    known: ServerFacts,
    rules: Mapping[str, NamedRule],
    today: date,
    before: Mapping[str, Remembered] | None = None,
) -> Audit:
    """Return what the rules find; `before` is what the last audit of this server found."""
    before = before or {}
    found: dict[str, RuleFinding] = {}
    lacking: list[Unevaluated] = []
    asked = [rule for rule in rules.values() if rule.holds_for(seen.flavour, seen.version)]
    for rule in asked:
        if needs := _too_short(rule, known.values):
            lacking.append(Unevaluated(rule.name, needs))
            continue
        try:
            if _fires(rule, known.values, fired=rule.name in before):
                found[rule.name] = _finding(rule, seen, known, today, before.get(rule.name))
        except LackingError as error:
            lacking.append(Unevaluated(rule.name, str(error)))
    hidden = {other for name in found for other in rules[name].rule.conflicts}
    shown = [one for name, one in found.items() if name not in hidden]
    ranked = sorted(shown, key=lambda one: (_ORDER.index(one.kind), one.rule))
    return Audit(tuple(ranked), tuple(lacking), len(asked) - len(lacking))


def remembered(found: Audit) -> dict[str, Remembered]:
    """Return what the next audit of this server must know of this one."""
    return {
        one.rule: Remembered(one.since, [p.settings for p in one.proposals], list(one.tested))
        for one in found.findings
    }


def _too_short(rule: NamedRule, values: Values) -> str:
    for name, least in (("fact.watched", rule.rule.watch_s), ("fact.uptime", rule.rule.uptime_s)):
        there = values.get(name, 0.0)
        if least and isinstance(there, float) and there < least:
            what = "watching" if name == "fact.watched" else "uptime"
            return f"{least:.0f} s of {what}"
    return ""


def _fires(rule: NamedRule, values: Values, *, fired: bool) -> bool:
    if rule.when.true(values):
        return True
    return fired and rule.until is not None and not rule.until.true(values)


def _finding(
    rule: NamedRule,
    seen: ServerEvidence,
    known: ServerFacts,
    today: date,
    before: Remembered | None,
) -> RuleFinding:
    data, expired = rule.rule, rule.expired(today)
    names = rule.when.names
    proposals = () if expired else _proposals(rule, seen, known.values, before)
    tested = _tested(before, proposals, seen, known)
    rejected = {one.proposal for one in tested if one.verdict != WORTH}
    settled = bool(proposals) and rejected >= {one.name for one in proposals}
    return RuleFinding(
        rule=rule.name,
        kind="note" if expired else "tested" if settled else data.kind,
        message=tuple(_part(phrase, known.values) for phrase in rule.phrases),
        figures={name: known.values[name] for name in sorted(names) if name in known.values},
        where=known.where.get(data.setting, ""),
        cost=data.cost,
        durability=data.durability,
        fix=data.fix,
        source=data.source,
        since=before.since if before else f"{today:%Y-%m-%d}",
        proposals=proposals,
        expired=expired,
        tested=tested,
    )


def _tested(
    before: Remembered | None,
    proposals: Sequence[Proposal],
    seen: ServerEvidence,
    known: ServerFacts,
) -> tuple[Tested, ...]:
    """Return what campaigns have found of these proposals for a server of this shape."""
    memory = known.memory.limit or 0.0
    names = {one.name for one in proposals}
    return tuple(
        one
        for one in (before.tested if before else ())
        if one.proposal in names and one.holds_for(seen, memory)
    )


def _part(phrase: Phrase, values: Values) -> MessagePart:
    if phrase.expression is None:
        return MessagePart(phrase.text)
    return MessagePart("", phrase.expression.value(values), phrase.form)


def _proposals(
    rule: NamedRule, seen: ServerEvidence, values: Values, before: Remembered | None
) -> tuple[Proposal, ...]:
    """Return the treatments of the first entry that fits the server, its neighbours after it."""
    fitting = (t for t in rule.rule.treatments if t.holds_for(seen.flavour, seen.version))
    chosen = next(fitting, None)
    if chosen is None:
        return ()
    made = [_settings(chosen, values, level) for level in (1.0, *chosen.levels)]
    if before and before.proposed and _near(before.proposed[0], made[0]):
        made = list(before.proposed)
    named = {proposal_name(settings): settings for settings in made}
    return tuple(Proposal(name, settings) for name, settings in named.items())


def proposal_name(settings: Mapping[str, str]) -> str:
    """Return what a treatment is called: ``innodb_log_file_size=512M``, its first setting."""
    key, value = next(iter(settings.items()))
    return f"{key.rpartition('.')[2]}={value}"


def _settings(chosen: Treatment, values: Values, level: float) -> dict[str, str]:
    found = {}
    for key, text in chosen.settings.items():
        value = parsed(text, key).value(values)
        found[key] = value if isinstance(value, str) else written(value * level)
    return found


def _near(before: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Return whether two proposals differ by less than the deadband in every number."""
    return before.keys() == now.keys() and all(_close(before[key], now[key]) for key in now)


def _close(before: str, now: str) -> bool:
    left, right = number(before), number(now)
    if left is None or right is None or min(left, right) <= 0:
        return before == now
    return max(left, right) / min(left, right) < _DEADBAND
