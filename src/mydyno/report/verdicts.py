"""Labels of the verdicts (word, symbol, meaning), and the order of treatments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from mydyno.model import Finding
from mydyno.report import units, words
from mydyno.report.charts import Forest, Whisker, forest
from mydyno.stats.effects import by_key
from mydyno.stats.estimates import RESPONSES
from mydyno.stats.result import Ceiling, Comparison, Part, Plateaus, Ratio, Row, Together
from mydyno.stats.rule import LOWER

_NAMED = 4  # treatments named in one sentence


def warned(compared: Comparison) -> Sequence[tuple[str, str]]:
    """Return pairs of subject and message; the subject of the campaign's own warnings is ``""``.

    Messages of several treatments that are alike are merged, and so are equal ends of trials.
    """
    subjects: dict[str, dict[str, Finding]] = {}
    ends: dict[str, dict[str, list[str]]] = {}
    for row in compared.treatments:
        who = f"{row.name}, {row.workload}"
        for finding in words.warned(row):
            if (trial := finding.place.trial) is not None:
                end = words.trial_end(finding)
                ends.setdefault(end, {}).setdefault(who, []).append(str(trial + 1))
            else:
                subjects.setdefault(words.alike(finding), {})[who] = finding
    merged = [("", words.words(finding)) for finding in compared.findings]
    merged += [(_listed([*of]), words.of_several([*of.values()])) for of in subjects.values()]
    return merged + [_trials_of(end, trials) for end, trials in ends.items()]


def _trials_of(end: str, trials: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    if len(trials) == 1:
        ((who, numbers),) = trials.items()
        return who, f"{_trials(numbers)} {end}"
    return "; ".join(f"{who}: {_trials(n)}" for who, n in trials.items()), end


def _listed(whose: Sequence[str]) -> str:
    named, more = whose[:_NAMED], len(whose) - _NAMED
    return "; ".join(named) + (f" and {more} more" if more > 0 else "")


def _trials(numbers: Sequence[str]) -> str:
    *most, last = numbers
    return f"trials {', '.join(most)} and {last}" if most else f"trial {last}"


@dataclass(frozen=True, slots=True)
class VerdictLabel:
    """How one verdict is shown: never by colour alone; `tone` is good, bad, weak or plain."""

    word: str
    symbol: str
    tone: str
    meaning: str


_KNOWN = (
    VerdictLabel("baseline", "○", "plain", "what the others are compared with"),
    VerdictLabel(
        "adopt", "✓", "good", "significantly better (95 %, simultaneous), and no guard broken"
    ),
    VerdictLabel("reject", "✗", "bad", "any gain is below the margin, or a guard is broken"),
    VerdictLabel("equivalent", "≈", "plain", "the same, within the margin"),
    VerdictLabel("inconclusive", "?", "weak", "too few trials for a verdict; keep the baseline"),
    VerdictLabel(
        "unstable",
        "~",
        "bad",
        "some of its trials failed or stalled where the baseline's did not, or its trials differ "
        "too much: never adopted",
    ),
    VerdictLabel(
        "no-steady-state", "…", "weak", "the load reached no steady state, so nothing was compared"
    ),
    VerdictLabel("failed", "!", "bad", "most of its trials failed or stalled: never adopted"),
)
VERDICTS = {v.word: v for v in _KNOWN}
UNFIT = frozenset({"failed", "unstable", "no-steady-state"})


def shown(word: str) -> VerdictLabel:
    """Return how a verdict is shown; an unknown verdict keeps its word without a meaning."""
    return VERDICTS.get(word, VerdictLabel(word, "·", "plain", ""))


def workloads(comparison: Comparison) -> list[str]:
    """Return the workloads in the order in which they first appear."""
    return list(dict.fromkeys(row.workload for row in comparison.treatments))


def treatments(comparison: Comparison) -> list[str]:
    """Return the treatments, the baseline first, the others as they first appear."""
    names = dict.fromkeys(row.name for row in comparison.treatments)
    return sorted(names, key=lambda name: name != comparison.baseline)


def rows(comparison: Comparison, workload: str) -> list[Row]:
    """Return a workload's rows, the baseline first."""
    order = treatments(comparison)
    found = [row for row in comparison.treatments if row.workload == workload]
    return sorted(found, key=lambda row: order.index(row.name))


def best(comparison: Comparison, workload: str) -> str | None:
    """Return the workload's winner, or else the treatment with the largest gain, or None.

    Failed and unstable treatments are excluded, whatever their effects.
    """
    winner = comparison.winners.get(workload)
    if winner:
        return winner
    ranked = [(gain(comparison, row), row.name) for row in leading(comparison, workload)]
    return max(ranked)[1] if ranked else None


def leading(comparison: Comparison, workload: str) -> list[Row]:
    """Return the rows of treatments that have an effect and are fit to be adopted."""
    return [
        row
        for row in rows(comparison, workload)
        if row.effect and row.name != comparison.baseline and row.verdict not in UNFIT
    ]


def gain(comparison: Comparison, row: Row) -> float:
    """Return a row's ratio so that more is better, whichever way its response is."""
    if row.effect is None:
        return 0.0
    lower = comparison.directions.get(row.workload) == LOWER
    return 1 / row.effect.ratio if lower and row.effect.ratio else row.effect.ratio


def storage_sentence(compared: Comparison, workload: str) -> str:
    """Return the treatments' sizes on disk, and what was compressed; ``""`` if none is known.

    Treatments with the same size are listed together.
    """
    same = _alike(compared, workload, "storage_bytes", _size)
    if len(same) == 1:
        return f"On disk after a trial: {next(iter(same))}."
    return f"On disk after a trial: {_each(same)}." if same else ""


def _alike(
    compared: Comparison, workload: str, metric: str, shown: Callable[[Row], str]
) -> dict[str, list[str]]:
    """Return the treatments that have a metric by what is shown of it."""
    found = [row for row in rows(compared, workload) if metric in row.plain]
    return by_key((shown(row), row.name) for row in found)


def _each(same: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{units.listed(_few(names))} {text}" for text, names in same.items())


def _few(names: Sequence[str]) -> list[str]:
    """Return treatments, of many the first and the number, or the levels that all of them have."""
    if len(names) <= _NAMED:
        return [*names]
    shared = [part for part in names[0].split(",") if all(part in n.split(",") for n in names)]
    if shared:
        return [f"{len(names)} treatments with {', '.join(shared)}"]
    return [*names[:_NAMED], f"{len(names) - _NAMED} more"]


def responses(compared: Comparison, workload: str) -> list[str]:
    """Return what the loads of a workload report, whatever is judged."""
    found = rows(compared, workload)
    return [name for name in RESPONSES if any(name in row.plain for row in found)]


def response(row: Row, name: str) -> str:
    """Return a treatment's mean of what its load reports, as text."""
    one = row.plain.get(name)
    return units.measurement(one.estimate, one.unit) if one else units.NOTHING


def replica_sentence(compared: Comparison, workload: str) -> str:
    """Return each treatment's replica: how much of the work it took in, and its lag; or ``""``."""
    same = _alike(compared, workload, "replica_speed_ratio", _follows)
    about = "The replica's share of the server's work, and its mean lag"
    return f"{about}: {_each(same)}." if same else ""


def _follows(row: Row) -> str:
    speed, lag = (row.plain[f"replica_{name}"] for name in ("speed_ratio", "lag_s"))
    return f"{speed.estimate:.1%} and {units.quantity(lag.estimate, 's')}".replace("%", " %")


def preparation_sentence(compared: Comparison, workload: str) -> str:
    """Return how long each data set took to fill; ``""`` where all treatments share one."""
    same = _alike(
        compared, workload, "prepare_s", lambda row: units.span(row.plain["prepare_s"].estimate)
    )
    return f"Data filled, once each, in: {_each(same)}." if len(same) > 1 else ""


_SEEN = 0.005
_SOURCES = {
    "starts": "differences between server starts",
    "seconds": "noise within trials",
    "drift": "drift of the host",
}


def error_sentence(compared: Comparison, workload: str) -> str:
    """Return what the width of the intervals is due to, the largest part first; ``""`` if unknown.

    Parts below half a per cent are left out.
    """
    shares = compared.errors.get(workload, {})
    parts = [
        f"{share:.0%} {_SOURCES[name]}".replace("%", " %")
        for name, share in sorted(shares.items(), key=lambda item: -item[1])
        if share >= _SEEN
    ]
    return f"The variance of the ratios is {units.listed(parts)}." if parts else ""


def ceiling_sentences(compared: Comparison) -> list[str]:
    """Return a sentence for each treatment under a load whose rate was stepped."""
    return [_ceiling(one) for one in compared.ceilings]


def _ceiling(one: Ceiling) -> str:
    figures = [f"p99 {units.quantity(one.latency_p99_s, 's')}"] if one.latency_p99_s else []
    if one.disk_writes is not None:
        figures.append(f"{units.measurement(one.disk_writes, '/s')} writes on the disk")
    tail = f" ({', '.join(figures)})" if figures else ""
    kept = f"keeps up with {one.kept} /s{tail}" if one.kept else "keeps up with no rate"
    if one.missed is None:
        return f"{one.treatment}, {one.load}: {kept}, the highest rate that was tried."
    if one.did is None:
        return f"{one.treatment}, {one.load}: {kept}; its trials at {one.missed} /s failed."
    did = units.measurement(one.did, "/s")
    follows = (
        "" if one.speed is None else f", and its replica {units.share(round(one.speed, 3))} of it"
    )
    return f"{one.treatment}, {one.load}: {kept}; of {one.missed} /s it did {did}{follows}."


def plateau_sentences(compared: Comparison, workload: str) -> list[str]:
    """Return a sentence for each treatment whose trials fall by themselves: both levels, when."""
    return [_plateau(one) for one in compared.plateaus if one.workload == workload]


def _plateau(one: Plateaus) -> str:
    before, after = (units.measurement(value, one.unit) for value in (one.before, one.after))
    share = units.quantity(one.after / one.before, "share")
    found = f"{one.treatment}: {before} until {units.duration(one.at_s)}, then {after} ({share})"
    if one.work is not None:
        found += f"; {units.quantity(one.work, '')} in {units.duration(one.seconds)}"
    some = "" if one.fell == one.trials else f", in {one.fell} of {one.trials} trials"
    return f"{found}{some}."


def _size(row: Row) -> str:
    size = units.quantity(row.plain["storage_bytes"].estimate, "B")
    ratio = row.plain.get("compression_ratio")
    saved = f", compressed {units.times(ratio.estimate)}" if ratio else ""
    return f"{size}{saved}"


_PAIR = " with "


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One line: what was changed, its ratio as text and as a mark."""

    changed: str
    against: str
    effect: tuple[str, str, str]
    whisker: Whisker


@dataclass(frozen=True, slots=True)
class EffectsView:
    """Main effects and interactions under one workload, the strongest first."""

    workload: str
    forest: Forest
    rows: tuple[EffectRow, ...]
    pairs: tuple[EffectRow, ...]


def parts(compared: Comparison, margin: float) -> tuple[EffectsView, ...]:
    """Return one view for each workload that has main effects."""
    works = dict.fromkeys(part.workload for part in compared.parts)
    return tuple(_view(compared, work, margin) for work in works)


def ordered(found: Sequence[Part]) -> list[Part]:
    """Return main effects with the strongest first."""
    return sorted(found, key=lambda part: -abs(log(part.effect.ratio)))


def together(pair: Together) -> str:
    """Return a pair of levels as text."""
    return _PAIR.join(f"{factor} = {level}" for factor, level in pair.levels.items())


def _view(compared: Comparison, work: str, margin: float) -> EffectsView:
    mains = ordered([part for part in compared.parts if part.workload == work])
    pairs = [pair for pair in compared.together if pair.workload == work]
    axis = forest([*(p.effect for p in mains), *(p.effect for p in pairs)], margin)
    return EffectsView(
        work,
        axis,
        tuple(_row(axis, f"{p.factor} = {p.level}", p.against, p.effect) for p in mains),
        tuple(_row(axis, together(p), "", p.effect) for p in pairs),
    )


def _row(axis: Forest, changed: str, against: str, effect: Ratio) -> EffectRow:
    return EffectRow(changed, against, units.interval(effect), axis.whisker(effect))
