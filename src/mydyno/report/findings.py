"""Findings of an audit as text: faults, promises, what is worth a test, notes."""

from collections.abc import Callable, Mapping, Sequence

from mydyno.audit.facts import ServerEvidence, ServerFacts
from mydyno.audit.findings import Audit, MessagePart, RuleFinding
from mydyno.report import units
from mydyno.report.units import wrapped

TITLES = {
    "fault": "faults (a crash or a restart shows them)",
    "promise": "promises that may not be kept",
    "test": "worth testing here (a campaign at this shape decides)",
    "tested": "tested here, and not worth it",
    "note": "notes",
}
_NAME = 26  # columns of a rule's name
_DAY_S, _DAYS_FROM = 86400.0, 4  # an uptime is written in days from here on

_FORMS: Mapping[str, Callable[[float], str]] = {
    "size": lambda value: units.quantity(value, "B"),
    "span": units.duration,
    "share": units.share,
    "rate": lambda value: units.quantity(value, "/s"),
    "number": units.number,
}


def heading(seen: ServerEvidence, known: ServerFacts) -> str:
    """Return what server it is, on what host, what it does, and its memory; a line each."""
    values = known.values
    words = [f"{seen.name}: {seen.text}", str(values.get("host.unit", ""))]
    uptime, asked = values.get("fact.uptime"), values.get("rate.questions")
    words += [f"{_length(uptime)} up"] if isinstance(uptime, float) else []
    lines = [", ".join(filter(None, words)), _host(values)]
    if isinstance(asked, float):
        watched = units.duration(seen.seconds)
        lines.append(f"watched {watched} at {units.number(asked)} statements/s")
    memory = known.memory
    numbers = {"in use": memory.now, "at most so far": memory.peak, "promised": memory.promised}
    shown = [f"{name} {units.quantity(size, 'B')}" for name, size in numbers.items() if size]
    limit = f" of {units.quantity(memory.limit, 'B')}" if memory.limit else ""
    return "\n".join([*lines, f"memory{limit}: {', '.join(shown)}"])


def _host(values: Mapping[str, float | str]) -> str:
    size, cores = values.get("host.memory"), values.get("host.cores")
    if not isinstance(size, float) or not isinstance(cores, float):
        return "of its host nothing is known: it is another machine, or its files are closed"
    text = f"{units.counted(int(cores), 'CPU')}, {units.quantity(size, 'B')}"
    disk = f"; {values['disk.name']}, {values.get('mount.type')}" if "disk.name" in values else ""
    return text + disk


def _length(seconds: float) -> str:
    days = seconds / _DAY_S
    return f"{days:.0f} days" if days >= _DAYS_FROM else units.duration(seconds)


def message(found: Sequence[MessagePart]) -> str:
    """Return a finding's message."""
    return "".join(_part(part) for part in found)


def _part(part: MessagePart) -> str:
    if part.text:
        return part.text
    if isinstance(part.value, str):
        return part.value
    return _FORMS.get(part.form, units.number)(part.value)


def render_audit(heading: str, found: Audit, width: int, *, unevaluated: bool) -> str:
    """Return an audit as text of at most `width` columns, ending in a newline."""
    lines = [heading]
    for kind, title in TITLES.items():
        chosen = [one for one in found.findings if one.kind == kind]
        lines += [title] if chosen else []
        for one in chosen:
            lines += _finding(one, width)
    if not found.findings:
        lines.append("no findings")
    lines.append(_counts(found))
    if unevaluated:
        lines += [f"  {one.rule}: needs {one.needs}" for one in found.unevaluated]
    return "\n".join(lines) + "\n"


def render_inventory(
    host: Mapping[str, str], settings: Sequence[tuple[str, str, str]], width: int
) -> str:
    """Return what the host is, and each setting with the line that set it, ending in a newline."""
    lines = ["host"] if host else []
    lines += [f"  {name:<{_NAME}} {value}" for name, value in host.items()]
    lines += ["settings that are not defaults"] if settings else []
    for name, value, where in settings:
        lines += _wrapped(f"  {name:<{_NAME}}", f"{value} [{where}]", width)
    return "\n".join([*lines, ""]) if lines else ""


def _finding(one: RuleFinding, width: int) -> list[str]:
    place = f" [{one.where}]" if one.where else ""
    expired = " (the rule has expired: check it again)" if one.expired else ""
    words = f"{message(one.message)}{place}{expired}"
    lines = _wrapped(f"  {one.rule:<{_NAME}}", words, width)
    for tested in one.tested:
        found = f"{tested.proposal}: {tested.verdict}, {tested.effect}, by {tested.campaign}"
        lines += _wrapped(" " * (_NAME + 2), found, width)
    if one.kind == "tested":
        return lines
    for proposal in one.proposals[:1]:
        settings = ", ".join(f"{key} = {value}" for key, value in proposal.settings.items())
        more = f" and {len(one.proposals) - 1} more" if len(one.proposals) > 1 else ""
        cost = f"; {one.cost}" if one.cost else ""
        lines += _wrapped(" " * (_NAME + 2), f"treatment: {settings}{more}{cost}", width)
    if one.fix:
        lines += _wrapped(" " * (_NAME + 2), f"next: {one.fix}", width)
    return lines


def _wrapped(head: str, words: str, width: int) -> list[str]:
    first = head if head.endswith(" ") else f"{head} "
    return wrapped(words, max(width, 60), " " * (_NAME + 4), first)


def _counts(found: Audit) -> str:
    numbers = {kind: sum(one.kind == kind for one in found.findings) for kind in TITLES}
    words = [
        units.counted(numbers["fault"], "fault"),
        units.counted(numbers["promise"], "promise"),
        f"{numbers['test']} worth testing",
        units.counted(numbers["note"], "note"),
    ]
    skipped = f"; {len(found.unevaluated)} rules not evaluated" if found.unevaluated else ""
    return f"{', '.join(words)}; {found.evaluated} rules evaluated{skipped}"
