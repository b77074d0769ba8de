"""Checks: what trials, treatments and the campaign show besides a verdict, each as a `Finding`.

`CHECKS` is the registry; packages outside add to it through the entry-point group `mydyno.checks`,
whose entries are `Check` values.  The words for findings are in `mydyno.report.words`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from statistics import median
from typing import Any, Generic, TypeVar

from mydyno.model import Figure, Finding, FindingPlace, Outcome, TrialStatus
from mydyno.model.plugins import with_plugins
from mydyno.stats.decide import Evidence, by_effect, given_up
from mydyno.stats.effects import by_key
from mydyno.stats.estimates import ended, ends_of, good_values, metric_of
from mydyno.stats.result import Ends, Ratio
from mydyno.stats.rule import (
    HIGHER,
    Estimator,
    Goal,
    Rule,
    broken_guards,
    known,
    unproven_guards,
)

GROUP = "mydyno.checks"
_FEWEST = 3  # trials for a usual value
_LEAST_S = 10.0  # of a window: in a shorter one, a starting program looks like load
_LEAST_REDO = 16384.0  # bytes a second: below a page, the server itself may be all that writes
_FEWEST_PAGES = 1.0  # written in a second: below it, flushing has not begun
_RISING = 0.25  # of the redo by which the checkpoint age grows: flushing does not keep up
_FILLING = 0.05  # of the pages in the buffer pool, in one window
_LIMIT = 0.9  # of its processors, from which on the load program may be the limit

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Check(Generic[E]):
    """One check: `check` returns what it finds in one piece of evidence of the kind `of`, or None.

    A finding about a `TrialEvidence` makes the trial invalid; any other is a warning.
    """

    name: str
    of: type[E]
    check: Callable[[E], Finding | None]


@dataclass(frozen=True, slots=True)
class TrialEvidence:
    """A trial that was measured, and all trials of the same workload, itself too.

    `usual_of` maps each treatment to what a metric is without a disturbance (`usual`).
    """

    outcome: Outcome
    alike: Sequence[Outcome]
    usual_of: Callable[[str], Mapping[str, float]] = field(repr=False)

    def usual(self, metric: str) -> float | None:
        """Return what a metric is without a disturbance, None if fewer than 3 trials have it."""
        return self.usual_of(metric).get(self.outcome.trial.treatment)


@dataclass(frozen=True, slots=True)
class TreatmentEvidence:
    """The evidence on a treatment under a workload, and its verdict.

    `proving` is whether it has trials that count as evidence, in more than one block of the
    campaign; `carries` whether the previous treatment carries over into the measured segments;
    `to_the_end` whether it was in the campaign's last block.
    """

    evidence: Evidence
    verdict: str
    rule: Rule
    proving: bool = True
    carries: bool = False
    to_the_end: bool = False

    @property
    def place(self) -> FindingPlace:
        """Return the place of findings about this treatment."""
        return FindingPlace(self.evidence.treatment, self.evidence.workload)

    @property
    def judged(self) -> bool:
        """Return whether it is neither the baseline nor a treatment whose trials were lost."""
        return self.verdict not in {"baseline", "failed"}


@dataclass(frozen=True, slots=True)
class WindowsEvidence:
    """The measured windows of one treatment under one workload."""

    place: FindingPlace
    outcomes: Sequence[Outcome]

    def usual(self, metric: str) -> float:
        """Return the median of a metric over the windows that have it, 0 if none has."""
        values = good_values(self.outcomes, metric)
        return median(values) if values else 0.0

    def has(self, metric: str) -> bool:
        """Return whether any window has a metric."""
        return bool(good_values(self.outcomes, metric))


@dataclass(frozen=True, slots=True)
class GuardEvidence:
    """One guard of a treatment that has an effect and was judged."""

    guard: str
    treatment: TreatmentEvidence


@dataclass(frozen=True, slots=True)
class WorkloadEvidence:
    """The trials of one workload, of all treatments."""

    workload: str
    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class CampaignEvidence:
    """All trials of a campaign but its soak; the invalid ones have status VOID."""

    outcomes: Sequence[Outcome]
    rule: Rule


def findings(evidence: Sequence[object]) -> list[Finding]:
    """Return what the checks find in the evidence, in the order of the registry."""
    found = (
        check.check(one) for check in registry() for one in evidence if isinstance(one, check.of)
    )
    return [finding for finding in found if finding]


@cache
def registry() -> Sequence[Check[Any]]:
    """Return the checks of this package, and those of installed distributions after them."""
    return tuple(with_plugins(GROUP, Check, {check.name: check for check in CHECKS}).values())


def _unusual(trial: TrialEvidence, *, metric: str, excess: float, code: str) -> Finding | None:
    """Return a finding if a gauge exceeds the usual value by more than `excess`."""
    value = metric_of(trial.outcome, metric)
    usual = None if value is None else trial.usual(metric)
    if value is not None and usual is not None and value > usual + excess:  # never so for nan
        return Finding(code, {"value": value, "usual": usual}, _place_of(trial.outcome))
    return None


_STEAL = partial(_unusual, metric="cpu_steal_ratio", excess=0.05, code="cpu-steal")
_OTHER_LOAD = partial(_unusual, metric="cpu_other_cores", excess=0.25, code="cpu-other")


def _lost(treatment: TreatmentEvidence) -> Finding | None:
    evidence = treatment.evidence
    if not evidence.own.lost:
        return None
    if treatment.verdict == "baseline":
        return Finding("baseline-lost-trials", counts(evidence.own), treatment.place)
    verdict: dict[str, Figure] = {"verdict": treatment.verdict}
    figures = verdict | counts(evidence.own) | versus(evidence.baseline)
    worse = treatment.verdict in {"failed", "unstable"}
    return Finding("fails-more" if worse else "fails-no-more", figures, treatment.place)


def _waived(guard: GuardEvidence) -> Finding | None:
    waived = guard.treatment.evidence.guards.waived.get(guard.guard)
    return _of_guard("guard-waived", guard, waived[0]) if waived else None


def _no_ratio(treatment: TreatmentEvidence) -> Finding | None:
    evidence = treatment.evidence
    if not evidence.zeros or not treatment.judged:
        return None
    response = treatment.rule.responses[evidence.workload]
    return Finding("no-ratio", {"response": response, "zeros": evidence.zeros}, treatment.place)


def _given_up(treatment: TreatmentEvidence) -> Finding | None:
    effect, workload = treatment.evidence.effect, treatment.evidence.workload
    if treatment.verdict != "inconclusive" or not given_up(effect, treatment.rule, workload):
        return None
    if treatment.to_the_end:
        return None  # nothing left it out: the campaign's blocks or its budget ended
    chance = effect.promise if effect else 0.0
    return Finding("given-up", {"chance": chance}, treatment.place)


def _few_blocks(treatment: TreatmentEvidence) -> Finding | None:
    if treatment.evidence.effect is not None or treatment.verdict != "inconclusive":
        return None
    if not treatment.proving or treatment.evidence.zeros:
        return None
    if treatment.rule.method.estimator is Estimator.BLOCKS:
        return Finding("few-blocks", place=treatment.place)
    own, baseline = (
        e.trials - e.lost for e in (treatment.evidence.own, treatment.evidence.baseline)
    )
    return Finding("no-interval", {"own": own, "baseline": baseline}, treatment.place)


def _carries(treatment: TreatmentEvidence) -> Finding | None:
    carries = treatment.carries and treatment.judged
    return Finding("carry-over", place=treatment.place) if carries else None


def _unproven(guard: GuardEvidence) -> Finding | None:
    found = unproven_guards(guard.treatment.evidence.guards.held).get(guard.guard)
    if found is None or guard.treatment.verdict != "adopt":
        return None
    return _of_guard("guard-unproven", guard, found[0], 1 + found[1])


def _rejecting(guard: GuardEvidence) -> Finding | None:
    """Return a finding for a guard that rejects; the ratio is that measured, not the oriented."""
    found = broken_guards(guard.treatment.evidence.guards.held).get(guard.guard)
    rejected = guard.treatment.verdict == "reject"
    if found is None or not rejected or _by_itself(guard, guarded=False) == "reject":
        return None
    ratio, limit = found[0], 1 + found[1]
    if known(guard.guard) == HIGHER:
        ratio, limit = Ratio(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low), 1 / limit
    return _of_guard("guard-broken", guard, ratio, limit)


def _unevaluated(guard: GuardEvidence) -> Finding | None:
    """Return why a guard cannot be evaluated; `blocks` is 1 if that alone prevents an adoption."""
    found = guard.treatment.evidence.guards.unevaluated.get(guard.guard)
    if found is None:
        return None
    blocks = int(_by_itself(guard, guarded=True) == "adopt")
    return replace(found, figures={**found.figures, "blocks": blocks}, place=guard.treatment.place)


def _by_itself(guard: GuardEvidence, *, guarded: bool) -> str:
    """Return the verdict on the effect alone, or with the guards that can be evaluated."""
    treatment, evidence = guard.treatment, guard.treatment.evidence
    if evidence.effect is None:
        return ""
    held = evidence.guards.held if guarded else {}
    return by_effect(evidence.effect, treatment.rule, evidence.workload, held)


def _of_guard(code: str, guard: GuardEvidence, ratio: Ratio, limit: float = 0.0) -> Finding:
    figures: dict[str, Figure] = {"guard": guard.guard, "ratio": ratio.ratio}
    figures |= {"low": ratio.low, "high": ratio.high}
    limits = {"limit": limit} if limit else {}
    return Finding(code, {**figures, **limits}, guard.treatment.place)


def _early(windows: WindowsEvidence) -> Finding | None:
    """Return a finding if windows end before flushing keeps up, or before the pool is filled.

    Nothing is flushed late where next to nothing is written, as by a load that only reads.
    """
    redo, rise = windows.usual("innodb_redo_bytes"), windows.usual("checkpoint_age_rise_ratio")
    written, filled = windows.usual("innodb_pages_written"), windows.usual("pool_filled_ratio")
    unflushed = windows.has("innodb_pages_written") and written < _FEWEST_PAGES
    figures: dict[str, Figure] = {}
    if redo >= _LEAST_REDO and (unflushed or rise >= _RISING):
        figures |= {"redo": redo}
        figures |= {"written": written} if unflushed else {}
        names = ("before", "after") if rise >= _RISING else ()
        figures |= {name: windows.usual(f"checkpoint_age_{name}") for name in names}
    if filled >= _FILLING:
        figures |= {"filled": filled}
    return Finding("early-window", figures, windows.place) if figures else None


def _screening_lost(campaign: CampaignEvidence) -> Finding | None:
    ends = ends_of(campaign.outcomes)
    lost = campaign.rule.method.goal is Goal.FACTORS and ends.lost
    return Finding("screening-lost-trials", counts(ends)) if lost else None


def _no_baseline(campaign: CampaignEvidence) -> Finding | None:
    baseline = campaign.rule.baseline
    there = any(o.trial.treatment == baseline for o in campaign.outcomes)
    missing = not there and campaign.rule.method.goal is not Goal.FACTORS
    return Finding("no-baseline", place=FindingPlace(baseline)) if missing else None


def _load_limit(load: WorkloadEvidence) -> Finding | None:
    """Return a finding if the load program may have been the limit instead of the server."""
    found = (metric_of(o, "load_cpu_ratio") for o in load.outcomes)
    shares = [share for share in found if share is not None]
    if not shares or median(shares) < _LIMIT:
        return None
    return Finding("load-limit", {"share": median(shares)}, FindingPlace(workload=load.workload))


def _one_block(campaign: CampaignEvidence) -> Finding | None:
    blocks = {o.trial.block for o in campaign.outcomes}
    one = len(blocks) == 1 and campaign.rule.method.goal is not Goal.FACTORS
    return Finding("one-block") if one else None


CHECKS: tuple[Check[Any], ...] = (
    Check("cpu-steal", TrialEvidence, _STEAL),
    Check("cpu-other", TrialEvidence, _OTHER_LOAD),
    Check("lost-trials", TreatmentEvidence, _lost),
    Check("guard-waived", GuardEvidence, _waived),
    Check("no-ratio", TreatmentEvidence, _no_ratio),
    Check("few-blocks", TreatmentEvidence, _few_blocks),
    Check("given-up", TreatmentEvidence, _given_up),
    Check("carry-over", TreatmentEvidence, _carries),
    Check("guard-unproven", GuardEvidence, _unproven),
    Check("guard-broken", GuardEvidence, _rejecting),
    Check("guard-unevaluated", GuardEvidence, _unevaluated),
    Check("early-window", WindowsEvidence, _early),
    Check("screening-lost-trials", CampaignEvidence, _screening_lost),
    Check("no-baseline", CampaignEvidence, _no_baseline),
    Check("load-limit", WorkloadEvidence, _load_limit),
    Check("one-block", CampaignEvidence, _one_block),
)


def of_treatment(treatment: TreatmentEvidence, trials: Sequence[Outcome]) -> list[Finding]:
    """Return the findings about a treatment: how its trials ended, and what the checks find."""
    bad = [o for o in trials if o.status is not TrialStatus.OK]
    has_effect = treatment.judged and treatment.evidence.effect is not None
    names = treatment.rule.guards_of(treatment.evidence.workload) if has_effect else ()
    guards = [GuardEvidence(name, treatment) for name in names]
    windows = WindowsEvidence(treatment.place, trials)
    return [*(ending(o) for o in bad), *findings([treatment, *guards, windows])]


def of_campaign(outcomes: Sequence[Outcome], rule: Rule) -> list[Finding]:
    """Return the findings about the campaign and its workloads."""
    workloads = () if rule.method.goal is Goal.FACTORS else rule.responses
    loads = [
        WorkloadEvidence(workload, [o for o in outcomes if o.trial.workload == workload])
        for workload in workloads
    ]
    return findings([CampaignEvidence(outcomes, rule), *loads])


def ending(outcome: Outcome) -> Finding:
    """Return why a trial is not valid: the analysis' reason, or the message of what failed."""
    found = outcome.finding or Finding("trial-failed", {"error": outcome.error})
    status = {"status": outcome.status.value}
    return replace(found, figures={**found.figures, **status}, place=_place_of(outcome))


def counts(ends: Ends) -> dict[str, Figure]:
    """Return how trials ended, as figures."""
    return {
        "trials": ends.trials,
        "failed": ends.failed,
        "stalled": ends.stalled,
        "unknown": ends.unknown,
    }


def versus(baseline: Ends) -> dict[str, Figure]:
    """Return how many trials the baseline has lost, as figures."""
    return {"baseline_lost": baseline.lost, "baseline_trials": baseline.trials}


def mark_invalid(outcomes: Sequence[Outcome], rule: Rule) -> list[Outcome]:
    """Return the outcomes, with status VOID for those that something else disturbed.

    Other load, neighbours or a state of the disk that are always there make no trial invalid: they
    belong to the host.  A trial without work is an outcome of its treatment
    (`mydyno.stats.estimates`), never void.
    """
    outcomes = ended(outcomes, rule.responses, rule.lower)
    disturbed = {
        f.place.trial: f for f in findings(_measured(outcomes)) if f.place.trial is not None
    }
    left = [_void(o, disturbed) for o in outcomes]
    states = _states(left, rule)
    return [_void(o, states) for o in left]


def _measured(outcomes: Sequence[Outcome]) -> list[TrialEvidence]:
    alike = by_key(
        (o.trial.workload, o)
        for o in outcomes
        if o.status is TrialStatus.OK and o.window.end_s - o.window.start_s >= _LEAST_S
    )
    once = [(some, cache(partial(_usual, some))) for some in alike.values()]
    return [TrialEvidence(o, some, usual_of) for some, usual_of in once for o in some]


def _usual(alike: Sequence[Outcome], metric: str) -> Mapping[str, float]:
    """Return what a metric is without a disturbance, by treatment; {} if fewer than 3 have it.

    It is the median of the treatment's trials, since the work of the kernel and of a lab disk
    depends on it.  Where that is above the median of all, as half of a treatment's few trials may
    be disturbed, it is what all its trials have, or all treatments.
    """
    pairs = [(o.trial.treatment, v) for o in alike if (v := metric_of(o, metric)) is not None]
    if len(pairs) < _FEWEST:
        return {}
    middle = median(value for _, value in pairs)
    return {n: max(min(own), min(median(own), middle)) for n, own in by_key(pairs).items()}


def _void(outcome: Outcome, why: Mapping[int, Finding]) -> Outcome:
    if outcome.trial.id not in why or outcome.status is not TrialStatus.OK:
        return outcome
    return replace(outcome, status=TrialStatus.VOID, finding=why[outcome.trial.id])


def _states(outcomes: Sequence[Outcome], rule: Rule) -> dict[int, Finding]:
    from mydyno.stats.drift import of_another_state  # noqa: PLC0415
    from mydyno.stats.sequential import load_series  # noqa: PLC0415 - numpy and scipy

    found: dict[int, Finding] = {}
    for workload, response in rule.responses.items():
        found |= of_another_state(
            load_series(outcomes, workload, response, rule.lower), rule.bursts
        )
    return found


def _place_of(outcome: Outcome) -> FindingPlace:
    return FindingPlace(outcome.trial.treatment, outcome.trial.workload, outcome.trial.id)
