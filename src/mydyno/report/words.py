"""The words for findings: each code has one message; nothing else words a warning or a verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from mydyno.model import Finding
from mydyno.stats.decide import unevaluated
from mydyno.stats.result import Comparison, Ends, Row

_NAMED = 5  # settings of a screening in the sentence
_RATES = {"tps": "throughput", "iops": "I/O rate", "qps": "query rate"}
_CAUSES = "burst credits or other load are possible causes"
_SCREENING = "A screening ranks settings and proves nothing; compare the best of them in a race."
_FADES = (
    "Possible causes are slower than a trial: purge, flushing, fragmentation, heat or burst credits"
)

# One message for each code; figures by name, and the finding's treatment and workload.
_MESSAGES: Mapping[str, str] = {
    "all-lost": "Keep the baseline:",
    "carry-over": (
        "the previous treatment carries over into the measured segments, so there is no verdict; "
        'compare with restarts: design.kind = "race"'
    ),
    "cpu-other": (
        "other programs used {value:.1f} cores; usual here: other programs used {usual:.1f} cores"
    ),
    "cpu-steal": "CPU steal was {value:.0%}; usual here: CPU steal was {usual:.0%}",
    "few-blocks": (
        "fewer than 2 blocks have it and the baseline, so there is no verdict; run more blocks"
    ),
    "guard-unproven": (
        "{guard}: {ratio:.2f} times the baseline's, but {high:.2f} is not ruled out "
        "(margin {limit:.2f}); run more blocks to decide"
    ),
    "guard-waived": (
        "{guard}: {ratio:.2f} times the baseline's [{low:.2f}..{high:.2f}]; reported only, not "
        "used in the verdict: its slow seconds are faster than the baseline's fast ones"
    ),
    "load-limit": (
        "{workload}: the load program used {share:.0%} of its processors, so it may be the limit "
        "instead of the server; give it more threads or a host of its own"
    ),
    "no-baseline": ("{treatment}, the baseline, has no finished trial yet, so there are no ratios"),
    "no-ratio": (
        "{response} is 0 in {zeros} of its and the baseline's trials, so there is no ratio; "
        "decide on another response"
    ),
    "no-treatment": "No verdict: there is no treatment to compare {baseline} with.",
    "no-value": "{metric}: no value in the measured window",
    "no-work": "{metric}: {value:g} in the measured window",
    "not-finite": "{metric}: {value}, not a finite number in the measured window",
    "one-block": "1 block shows no spread between blocks, so there is no verdict; run more blocks",
    "ran-once": "No verdict: each treatment ran once; at least two runs of each are needed.",
    "recorded": "{text}",
    "screened-none": "None of {settings} settings has a significant effect.",
    "soak-short": (
        "The soak of {treatment} was too short to show whether it holds its throughput."
    ),
    "state-change": "the state of the host changed during this trial or next to it",
    "too-few-trials": "No verdict: too few trials have finished.",
    "trial-failed": "{error}",
    # why a guard cannot be evaluated
    "few-values": "measured in {own} of its trials and {baseline} of the baseline's",
    "not-measured": "not measured",
    "partly-measured": "measured in {measured} of {trials} trials only",
    "zeros": "0 in {zeros} of its {trials} trials, so there is no ratio",
    "zeros-of-baseline": "0 in {zeros} of the baseline's {trials} trials, so there is no ratio",
}


def words(finding: Finding) -> str:
    """Return the message of a finding; one of an unknown code is listed with its figures."""
    if make := _MADE.get(finding.code):
        return make(finding)
    if finding.code in _MESSAGES:
        return _message(finding.code, finding)
    figures = ", ".join(f"{name} {_plain(value)}" for name, value in finding.figures.items())
    return f"{finding.code}: {figures}" if figures else finding.code


def in_words(comparison: Comparison) -> Comparison:
    """Return the comparison with the messages of its findings."""
    conclusion = comparison.conclusion
    soak = [words(f) for f in conclusion if f.code.startswith("soak-")]
    share = [words(f) for f in conclusion if f.code == "few-changes"]
    main = [f for f in conclusion if f.code != "few-changes" and not f.code.startswith("soak-")]
    won = any(f.code == "winner" for f in main)
    return structs.replace(
        comparison,
        sentence=" ".join([*map(words, main), *(share + soak if won else ())]),
        warnings=[words(f) for f in comparison.findings],
        share=" ".join(share),
        soak=" ".join(soak),
        treatments=[_row(row) for row in comparison.treatments],
    )


def _row(row: Row) -> Row:
    reasons = {str(f.figures["guard"]): _why(f) for f in unevaluated(row)}
    warnings = [one_trial(f) or words(f) for f in warned(row)]
    return structs.replace(row, warnings=warnings, unevaluated=reasons)


def warned(row: Row) -> list[Finding]:
    """Return the findings of a row that are warnings: a guard counts if it alone blocks."""
    return [f for f in row.findings if f.figures.get("blocks") != 0]


def one_trial(finding: Finding) -> str:
    """Return the message of how one trial ended, ``""`` for any other finding."""
    trial = finding.place.trial
    return "" if trial is None else f"trial {trial} {trial_end(finding)}"


def trial_end(finding: Finding) -> str:
    """Return how a trial ended and why, without its number."""
    return f"{finding.figures.get('status', 'invalid')}: {words(finding)}"


def describe_lost(ends: Ends) -> str:
    """Return the counts in words: ``failed in 4 and stalled in 2 of 8 trials``."""
    parts = {
        "failed in": ends.failed,
        "stalled in": ends.stalled,
        "gave no result in": ends.unknown,
    }
    counts = " and ".join(f"{word} {n}" for word, n in parts.items() if n)
    return f"{counts} of {'1 trial' if ends.trials == 1 else f'{ends.trials} trials'}"


def _plain(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _figures(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {**finding.figures, "treatment": place.treatment, "workload": place.workload}


def _message(code: str, finding: Finding) -> str:
    return _MESSAGES[code].format(**_figures(finding))


def _why(finding: Finding) -> str:
    """Return the reason that a finding names by the code `why`."""
    return _message(str(finding.figures["why"]), finding)


def _lost(finding: Finding) -> str:
    of = finding.figures
    names = ("trials", "failed", "stalled", "unknown")
    return describe_lost(Ends(**{name: of[name] for name in names}))  # type: ignore[arg-type]


def _lost_vs_baseline(finding: Finding) -> str:
    of = finding.figures
    return f"{_lost(finding)}, the baseline in {of['baseline_lost']} of {of['baseline_trials']}"


def _most_lost(finding: Finding) -> str:
    others = finding.figures["others"]
    more = f"; {others} more failed or stalled" if others else ""
    return f"{finding.place.treatment} {_lost_vs_baseline(finding)}{more}."


def _fails_more(finding: Finding) -> str:
    return (
        f"{finding.figures['verdict']}: it {_lost_vs_baseline(finding)}; a treatment that fails "
        "more often is never adopted"
    )


def _fails_no_more(finding: Finding) -> str:
    return (
        f"it {_lost_vs_baseline(finding)}: not more often than the baseline; the verdict uses the "
        "other trials"
    )


def _screening_lost(finding: Finding) -> str:
    return (
        f"the screening {_lost(finding)}: the ranking uses the other trials only and does not "
        "show levels that make trials fail; look at the settings of the lost trials"
    )


def _other_state(finding: Finding) -> str:
    share = float(_figures(finding)["change"]) * 100
    side = "higher" if share > 0 else "lower"
    return f"performance of all treatments was {abs(share):.0f} % {side} than otherwise; {_CAUSES}"


def _lasting_fall(finding: Finding) -> str:
    of = _figures(finding)
    return (
        f"performance fell by {of['fall'] * 100:.0f} % at {of['at_s']:.0f} s and did not recover; "
        f"{_CAUSES}"
    )


def _winner(finding: Finding) -> str:
    of = _figures(finding)
    under = f" under {of['workload']}" if of["workloads"] > 1 else ""
    latency = (
        f", at {of['latency_ratio']:.2g} times its p99 latency" if "latency_ratio" in of else ""
    )
    return (
        f"{of['treatment']} gives {of['ratio']:.2f} times the {_what(of['responses'])} of "
        f"{of['baseline']}{under} (95 % interval {of['low']:.2f} to {of['high']:.2f}, "
        f"{of['trials']} trials each){latency}."
    )


def _what(responses: Sequence[str]) -> str:
    """Return the name of the response; loads may have one each."""
    known = [_RATES.get(part, part) for part in responses]
    same = all(part in _RATES.values() for part in known)
    return known[0] if len(known) == 1 else "throughput" if same else " or ".join(known)


def _screened(finding: Finding) -> str:
    of = _figures(finding)
    named = [f"{n} ({r}x)" for n, r in zip(of["names"], of["ratios"], strict=True)]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (
        f"Of {of['settings']} settings these have the largest effects: "
        f"{', '.join(named[:_NAMED])}{more}. {_SCREENING}"
    )


def _few_changes(finding: Finding) -> str:
    of = _figures(finding)
    return (
        f"{len(of['names'])} of {of['changes']} changes give {of['share']:.0%} of "
        f"{of['treatment']}'s gain: {_listed(of['names'])}."
    )


def _broke_guards(finding: Finding) -> str:
    of = _figures(finding)
    return (
        f"Keep the baseline: {of['better']} of {of['treatments']} treatments did better, but broke "
        f"a guard ({_listed(dict.fromkeys(map(_quantity, of['guards'])))})."
    )


def _guards_block(finding: Finding) -> str:
    of = _figures(finding)
    return (
        f"Keep the baseline: {_listed(of['names'])} did better, but these guards cannot be "
        f"evaluated: {_listed(of['guards'])}."
    )


def _only_weaker(finding: Finding) -> str:
    return (
        f"Keep the baseline: only {_listed(_figures(finding)['names'])} would win, with weaker "
        'durability; to allow that, set decide.durability = "weaker" in the spec.'
    )


def _none_better(finding: Finding) -> str:
    of = _figures(finding)
    none = f"Keep the baseline: no treatment is significantly better than {of['baseline']}."
    if "detectable" not in of:
        return none
    smallest = (of["detectable"] - 1) * 100
    return f"{none} A difference of {smallest:.1f} % or more would have been detected."


def _guard_broken(finding: Finding) -> str:
    of = _figures(finding)
    return (
        f"rejected for its {_quantity(of['guard'])} ({of['guard']}): {of['ratio']:.2f} times the "
        f"baseline's [{of['low']:.2f}..{of['high']:.2f}], limit {of['limit']:.2f}"
    )


def _guard_unevaluated(finding: Finding) -> str:
    guard = finding.figures["guard"]
    return (
        f"not adopted: the guard {guard} cannot be evaluated ({_why(finding)}); have the load "
        f"report {guard} in each trial, or take the guard out of decide.guards"
    )


def _soak(finding: Finding) -> str:
    of = _figures(finding)
    minutes = f"{of['length_s'] / 60:.0f} minutes"
    span = f"{of['change'] * 100:+.1f} % ({of['low'] * 100:+.1f} to {of['high'] * 100:+.1f})"
    if finding.code == "soak-held":
        return (
            f"{of['treatment']} held over a soak of {minutes}: its last quarter is {span} from "
            "its second."
        )
    return (
        f"Over a soak of {minutes} {of['treatment']} got worse: its last quarter is {span} from "
        f"its second. {_FADES}."
    )


def _quantity(guard: str) -> str:
    """Return the quantity of a guard: ``p99 latency``, ``spread of throughput``."""
    response = guard.removesuffix("_logsd")
    if response != guard:
        return f"spread of {_RATES.get(response, response)}"
    if guard.startswith("latency_") and guard.endswith("_s"):
        return f"{guard.removeprefix('latency_').removesuffix('_s')} latency"
    return guard


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


_MADE: Mapping[str, Callable[[Finding], str]] = {
    "baseline-lost-trials": lambda f: f"the baseline {_lost(f)}: verdicts use the other trials",
    "broke-guards": _broke_guards,
    "fails-more": _fails_more,
    "fails-no-more": _fails_no_more,
    "few-changes": _few_changes,
    "guard-broken": _guard_broken,
    "guard-unevaluated": _guard_unevaluated,
    "guards-block": _guards_block,
    "lasting-fall": _lasting_fall,
    "lost-baseline": lambda f: f"No verdict: {f.place.treatment}, the baseline, {_lost(f)}.",
    "most-lost": _most_lost,
    "none-better": _none_better,
    "only-weaker": _only_weaker,
    "other-state": _other_state,
    "screened": _screened,
    "screening-lost-trials": _screening_lost,
    "soak-failed": lambda f: f"The soak of {f.place.treatment} failed: {_why(f)}.",
    "soak-held": _soak,
    "soak-worse": _soak,
    "winner": _winner,
}
