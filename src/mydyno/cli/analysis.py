"""From a run directory to its verdicts and its report; no host is needed."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mydyno.campaign.plan import Campaign
from mydyno.campaign.run_loop import reread
from mydyno.cli.specs import RunFacts, recorded, reopen
from mydyno.cli.terminal import print_message
from mydyno.journal import outcomes
from mydyno.journal.rundir import RunDir
from mydyno.loads import MayWait, ReportsSession
from mydyno.model import Finding, HostError, Interval, JournalError, Outcome, Series, TrialStatus
from mydyno.report.words import in_words, words
from mydyno.sample import complaint
from mydyno.sample.derive import sampled_series, used
from mydyno.stats import Rule, compare
from mydyno.stats.checks import mark_invalid
from mydyno.stats.estimates import cumulative, ended, merged, unit_of, within
from mydyno.stats.result import ChangeView, Comparison, Curve, Distribution, Result, TrialView

_SHOWN = ("latency_p99_s",)

Read = tuple[Outcome, Sequence[Interval]]
T = TypeVar("T")


def rule_of(campaign: Campaign, changes: dict[str, list[ChangeView]]) -> Rule:
    """Return the decision rule of a campaign, with the durability class of each treatment."""
    if campaign.rule.imported:
        return campaign.rule
    weaker = {n: "weaker" for n, c in changes.items() if any(x.durability == "weaker" for x in c)}
    return replace(campaign.rule, durability=weaker)


def verdicts(path: Path) -> Comparison:
    """Return the comparison of a run directory, read again from its raw output."""
    return result(path, sampled=False).comparison


def result(path: Path, *, sampled: bool = True) -> Result:
    """Return the content of the report of a run directory; `sampled` False leaves samples out."""
    campaign, run_facts = reopen(path)
    files = RunDir(path)
    contents, warnings = recorded(path, campaign)
    trials = reread(files, outcomes(contents.events), campaign.workloads)
    changes = _changes(files, campaign, trials)
    rule = rule_of(campaign, changes)
    ends = ended([o for o, _ in trials], rule.responses, rule.lower)
    trials = [(end, intervals) for end, (_, intervals) in zip(ends, trials, strict=True)]
    comparison = compare([o for o, _ in trials], rule, [*campaign.treatments], campaign.cells)
    short = [o for o, _ in trials if not o.trial.soak]
    judged = {o.trial.id: o for o in mark_invalid(short, rule)}
    lines = [*warnings, *_fact(files, "warnings").splitlines(), *_complaints(files, trials)]
    comparison = msgspec.structs.replace(
        comparison,
        findings=[*(Finding("recorded", {"text": line}) for line in lines), *comparison.findings],
    )
    if campaign.rule.imported:
        comparison = _that_ran(comparison)
    return Result(
        comparison=in_words(comparison),
        question=campaign.spec.campaign.question,
        command=run_facts.command,
        started=contents.began,
        design=campaign.why,
        protocol=campaign.stops.label,
        lab=_fact(files, "lab"),
        trials=[
            _view(judged.get(o.trial.id, o), i, campaign, _gauges(files, o) if sampled else ())
            for o, i in trials
        ],
        changes=changes,
        distributions=_distributions(trials),
        facts=_facts(files, run_facts) | _sessions(files, campaign, trials),
        blocks=len({o.trial.block for o in short}),
        margin=campaign.spec.decide.margin,
        imported=campaign.rule.imported,
        closed_loops=[
            n for n, w in campaign.workloads.items() if isinstance(w, MayWait) and w.closed_loop
        ],
    )


def _that_ran(comparison: Comparison) -> Comparison:
    """Return it without the pairs of treatment and workload that were not run."""
    rows = [row for row in comparison.treatments if row.trials or row.findings]
    return msgspec.structs.replace(comparison, treatments=rows)


def _complaints(files: RunDir, trials: Sequence[Read]) -> list[str]:
    """Return the sampler's warnings, each once."""
    complaints = (complaint(files.trial(outcome.trial.id)) for outcome, _ in trials)
    return [f"sampling: {line}" for line in dict.fromkeys(complaints) if line]


def _gauges(files: RunDir, outcome: Outcome) -> Sequence[Series]:
    """Return the sampled series of a trial; none if its file cannot be read."""
    try:
        return sampled_series(files.trial(outcome.trial.id))
    except HostError as error:
        print_message(f"warning: {error}; the report leaves it out")
        return ()


def _view(
    outcome: Outcome, intervals: Sequence[Interval], campaign: Campaign, gauges: Sequence[Series]
) -> TrialView:
    response = campaign.workloads[outcome.trial.workload].response
    trial = outcome.trial
    return TrialView(
        id=trial.id,
        treatment=trial.treatment,
        workload=trial.workload,
        block=trial.block,
        status=outcome.status.value,
        error=words(outcome.finding) if outcome.finding else outcome.error,
        window=(outcome.window.start_s, outcome.window.end_s),
        metrics={m.name: m.value for m in (*outcome.metrics, *used(gauges, outcome.window))},
        curves=[c for name in (response, *_SHOWN) if (c := _curve(name, intervals))],
        gauges=[Curve(g.name, g.unit, list(g.t_s), list(g.values)) for g in gauges],
        soak=trial.soak,
    )


def _curve(name: str, intervals: Sequence[Interval]) -> Curve | None:
    shown = [i for i in intervals if name in i.values]
    if not shown:
        return None
    return Curve(name, unit_of(name), [i.t_s for i in shown], [i.values[name] for i in shown])


def _distributions(trials: Sequence[Read]) -> list[Distribution]:
    """Return the latencies of each treatment and workload, its trials' windows merged.

    If the load reports kinds of transactions, those of each kind follow.
    """
    histograms: dict[tuple[str, str, str], list[str]] = {}
    for outcome, intervals in trials:
        if outcome.status is TrialStatus.OK:
            cell = (outcome.trial.treatment, outcome.trial.workload)
            for interval in within(intervals, outcome.window):
                for kind, encoded in {"": interval.latency, **interval.kinds}.items():
                    histograms.setdefault((*cell, kind), []).append(encoded)
    found = []
    for (treatment, workload, kind), several in histograms.items():
        if present := [encoded for encoded in several if encoded]:
            total = merged(present)
            count = int(total.get_total_count())
            found.append(Distribution(treatment, workload, count, cumulative(total), kind))
    return found


def _changes(
    files: RunDir, campaign: Campaign, trials: Sequence[Read]
) -> dict[str, list[ChangeView]]:
    """Return the changes of each treatment, from the first of its trials that changed anything.

    The environment of a load, and changes before the first trial, are not recorded; these are the
    requested values.
    """
    found: dict[str, list[ChangeView]] = {}
    for outcome, _ in trials:
        path = files.trial(outcome.trial.id) / "changes.json"
        if not found.get(outcome.trial.treatment) and path.exists():
            found[outcome.trial.treatment] = _stored(path, list[ChangeView])
    for name, settings in campaign.treatments.items():
        asked = {k: v for k, v in settings.items() if name not in found or k.startswith("load/")}
        if not found.get(name):
            found[name] = [ChangeView(k, "", v, "online", "same") for k, v in asked.items()]
    return {name: found[name] for name in campaign.treatments}


def _stored(path: Path, kind: type[T]) -> T:
    """Return the value of a JSON file of the run directory; raise `JournalError` naming it."""
    try:
        return _decoded(path.read_bytes(), path, kind)
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}; make it readable, or remove it") from error


def _decoded(text: bytes | str, path: Path, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(
            f"{path}: unreadable: {error}; restore it from a copy, or remove it"
        ) from error


def _fact(files: RunDir, name: str) -> str:
    path = files.facts / f"{name}.txt"
    return path.read_text().strip() if path.exists() else ""


def _sessions(
    files: RunDir, campaign: Campaign, trials: Sequence[Read]
) -> dict[str, dict[str, str]]:
    """Return the load's own session facts, from the first trial that reports them."""
    for outcome, _ in trials:
        workload = campaign.workloads[outcome.trial.workload]
        raw = files.trial(outcome.trial.id) / "load.out"
        if (
            isinstance(workload, ReportsSession)
            and raw.exists()
            and outcome.status is TrialStatus.OK
        ):
            with raw.open("rb") as lines:
                found = {n: value or "none" for n, value in workload.session(lines).items()}
            return {"load session": found}
    return {}


def _facts(files: RunDir, run_facts: RunFacts) -> dict[str, dict[str, str]]:
    """Return the facts that were recorded before the first change."""
    sections: dict[str, dict[str, str]] = {}
    for path in sorted(files.facts.glob("*.json")):
        if path.name != "campaign.json":
            sections[path.stem] = {k: str(v) for k, v in _stored(path, dict[str, Any]).items()}
    if run_facts.build:
        sections.setdefault("server", {})["build"] = run_facts.build
    return sections
