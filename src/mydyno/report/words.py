"""The words for findings: each code has one message; nothing else words a warning or a verdict."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import structs

from mydyno.model import Finding
from mydyno.report.units import counted, quantity
from mydyno.report.units import name as words_of
from mydyno.stats.decide import unevaluated
from mydyno.stats.result import Comparison, Ends, Row

_NAMED = 5  # settings of a screening in the sentence
_RATES = {"tps": "throughput", "iops": "I/O rate", "qps": "query rate"}
_CAUSES = "burst credits or other load are possible causes"
_SCREENING = "A screening ranks settings and proves nothing; compare the best of them in a race."
_LATER = (
    'may not last; run longer trials, or add design.soak = "1h", which runs the winner for so long'
)
_FADES = (
    "Possible causes are slower than a trial: purge, flushing, fragmentation, heat or burst credits"
)

_Figures = Mapping[str, Any]

# One message for each code; `_figures` has the names in it.
_MESSAGES: Mapping[str, str] = {
    "all-lost": "Keep the baseline:",
    "all-unstable": "Keep the baseline: the trials of each treatment disagree by too much.",
    "baseline-lost-trials": "the baseline {lost}: verdicts use the other trials",
    "carry-over": (
        "the previous treatment carries over into the measured segments, so there is no verdict; "
        'compare with restarts: design.kind = "race"'
    ),
    "cpu-other": (
        "other programs used {value:.1f} cores; usual here: other programs used {usual:.1f} cores"
    ),
    "cpu-steal": "CPU steal was {value:.0%}; usual here: CPU steal was {usual:.0%}",
    "fails-more": (
        "{verdict}: it {lost}, the baseline in {baseline_lost} of {baseline_trials}; a treatment "
        "that fails more often is never adopted"
    ),
    "fails-no-more": (
        "it {lost}, the baseline in {baseline_lost} of {baseline_trials}: not more often than the "
        "baseline; the verdict uses the other trials"
    ),
    "few-blocks": (
        "fewer than 2 blocks have it and the baseline, so there is no verdict; run more blocks"
    ),
    "no-interval": (
        "no verdict: {own} valid trials of it and {baseline} of the baseline are too few for an "
        "interval; give a larger budget, or more blocks"
    ),
    "given-up": (
        "stopped early: more trials had a chance of {chance:.0%} to show a gain; to measure it "
        "to the end, compare it alone"
    ),
    "guard-broken": (
        "rejected for its {quantity} ({guard}): {ratio:.2f} times the baseline's "
        "[{low:.2f}..{high:.2f}], limit {limit:.2f}"
    ),
    "guard-unevaluated": (
        "not adopted: the guard {guard} cannot be evaluated ({reason}); have the load report "
        "{guard} in each trial, or take the guard out of decide.guards"
    ),
    "guard-unproven": (
        "{guard}: {ratio:.2f} times the baseline's, but {high:.2f} is not ruled out "
        "(margin {limit:.2f}); run more blocks to decide"
    ),
    "guard-waived": (
        "{guard}: {ratio:.2f} times the baseline's [{low:.2f}..{high:.2f}]; reported only, not "
        "used in the verdict: its slow seconds are faster than the baseline's fast ones"
    ),
    "guards-block": (
        "Keep the baseline: {names} did better, but these guards cannot be evaluated: {guards}."
    ),
    "interim": (
        "the campaign is not finished, and these intervals are interim: they hold at its planned "
        "looks, and a verdict is final at its end; `mydyno status` shows what is left"
    ),
    "load-limit": (
        "{workload}: the load program used {share:.0%} of its processors, so it may be the limit "
        "instead of the server; give it more threads or a host of its own"
    ),
    "lost-baseline": "No verdict: {treatment}, the baseline, {lost}.",
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
    "only-weaker": (
        "Keep the baseline: only {names} would win, with weaker durability; to allow that, set "
        'decide.durability = "weaker" in the spec.'
    ),
    "ran-once": "No verdict: no treatment ran twice; at least two runs of each are needed.",
    "recorded": "{text}",
    "screened-none": "None of {settings} settings has a significant effect.",
    "screening-lost-trials": (
        "the screening {lost}: the ranking uses the other trials only and does not show levels "
        "that make trials fail; look at the settings of the lost trials"
    ),
    "soak-failed": "The soak of {treatment} failed: {reason}.",
    "soak-short": (
        "The soak of {treatment} was too short to show whether it holds its throughput."
    ),
    "state-change": "the state of the host changed during this trial or next to it",
    "too-few-trials": "No verdict: too few trials are valid; run more blocks.",
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
        return make(_figures(finding))
    if finding.code in _MESSAGES:
        of = _figures(finding)
        lists = {name: ", ".join(v) for name, v in of.items() if isinstance(v, list | tuple)}
        return _MESSAGES[finding.code].format(**{**of, **lists})
    figures = ", ".join(f"{name} {_plain(value)}" for name, value in finding.figures.items())
    return f"{finding.code}: {figures}" if figures else finding.code


def alike(finding: Finding) -> str:
    """Return what two findings share that are one warning: their message, or its kind."""
    several = finding.code in _SEVERAL
    return f"{finding.code} {finding.figures.get('guard')}" if several else words(finding)


def of_several(findings: Sequence[Finding]) -> str:
    """Return the message of findings that are alike, of one or more treatments."""
    make = _SEVERAL.get(findings[0].code) if len(findings) > 1 else None
    return make([_figures(f) for f in findings]) if make else words(findings[0])


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
    reasons = {str(f.figures["guard"]): str(_figures(f)["reason"]) for f in unevaluated(row)}
    warnings = [
        words(f) if f.place.trial is None else f"trial {f.place.trial + 1} {trial_end(f)}"
        for f in warned(row)
    ]
    return structs.replace(row, warnings=warnings, unevaluated=reasons)


def warned(row: Row) -> list[Finding]:
    """Return the findings of a row that are warnings: a guard counts if it alone blocks."""
    return [f for f in row.findings if f.figures.get("blocks") != 0]


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
    """Return what a message names: the figures, the place, and words that are made of them."""
    place = finding.place
    of: dict[str, Any] = {**finding.figures}
    of |= {"treatment": place.treatment, "workload": place.workload}
    if "stalled" in of:
        ends = Ends(of["trials"], of["failed"], of["stalled"], of["unknown"])
        of["lost"] = describe_lost(ends)
    if "guard" in of:
        of["quantity"] = _quantity(of["guard"])
    if "why" in of:
        of["reason"] = _MESSAGES[of["why"]].format(**of)
    return of


def _most_lost(of: _Figures) -> str:
    more = f"; {of['others']} more failed or stalled" if of["others"] else ""
    return (
        f"{of['treatment']} {of['lost']}, the baseline in {of['baseline_lost']} of "
        f"{of['baseline_trials']}{more}."
    )


def _other_state(of: _Figures) -> str:
    share = float(of["change"]) * 100
    side = "higher" if share > 0 else "lower"
    return f"performance of all treatments was {abs(share):.0f} % {side} than otherwise; {_CAUSES}"


def _lasting_fall(of: _Figures) -> str:
    return (
        f"performance fell by {of['fall'] * 100:.0f} % at {of['at_s']:.0f} s and did not recover; "
        f"{_CAUSES}"
    )


def _early_window(of: _Figures) -> str:
    """Return why windows may not last, with the figures, and how to see whether they do."""
    return f"its measured window is early ({_signs(of)}), so its figures {_LATER}"


def _early_windows(several: Sequence[_Figures]) -> str:
    return (
        f"their measured windows are early (the first of them: {_signs(several[0])}), so their "
        f"figures {_LATER}"
    )


def _waived(several: Sequence[_Figures]) -> str:
    ratios = [of["ratio"] for of in several]
    return (
        f"{several[0]['guard']}: {min(ratios):.2f} to {max(ratios):.2f} times the baseline's; "
        "reported only, not used in the verdict: their slow seconds are faster than the baseline's "
        "fast ones"
    )


def _signs(of: _Figures) -> str:
    """Return the signs of an early window, with their figures."""
    parts = []
    if "written" in of:
        parts.append(
            f"InnoDB wrote {quantity(of['redo'], 'B/s')} of redo and "
            f"{quantity(of['written'], '/s')} of its pages: flushing had not begun"
        )
    if "before" in of:
        ages = (quantity(of[name], "B") for name in ("before", "after"))
        parts.append(
            f"the checkpoint age rose from {' to '.join(ages)} in the window's second half, with "
            f"{quantity(of['redo'], 'B/s')} of redo: flushing does not keep up yet"
        )
    if "filled" in of:
        share = quantity(of["filled"], "share")
        parts.append(f"the buffer pool was filling: {share} of its pages came within the window")
    return "; ".join(parts)


def _winner(of: _Figures) -> str:
    under = f" under {of['workload']}" if of["workloads"] > 1 else ""
    latency = (
        f", at {of['latency_ratio']:.2g} times its p99 latency" if "latency_ratio" in of else ""
    )
    return (
        f"{of['treatment']} gives {of['ratio']:.2f} times the {_what(of['responses'])} of "
        f"{of['baseline']}{under} (95 % interval {of['low']:.2f} to {of['high']:.2f}, "
        f"{_valid_trials(of)}){latency}."
    )


def _valid_trials(of: _Figures) -> str:
    """Return how many valid trials the winner and the baseline have."""
    own, other = of["trials"], of.get("baseline_trials", of["trials"])
    if own == other:
        return f"{counted(own, 'valid trial')} each"
    return f"{counted(own, 'valid trial')}, {other} of {of['baseline']}"


def _what(responses: Sequence[str]) -> str:
    """Return the name of the response; loads may have one each."""
    known = [_RATES.get(part) or words_of(part) for part in responses]
    same = all(part in _RATES.values() for part in known)
    return known[0] if len(known) == 1 else "throughput" if same else " or ".join(known)


def _screened(of: _Figures) -> str:
    named = [f"{n} ({r}x)" for n, r in zip(of["names"], of["ratios"], strict=True)]
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    return (
        f"Of {of['settings']} settings these have the largest effects: "
        f"{', '.join(named[:_NAMED])}{more}. {_SCREENING}"
    )


def _few_changes(of: _Figures) -> str:
    return (
        f"{len(of['names'])} of {of['changes']} changes give {of['share']:.0%} of "
        f"{of['treatment']}'s gain: {', '.join(of['names'])}."
    )


def _broke_guards(of: _Figures) -> str:
    return (
        f"Keep the baseline: {of['better']} of {of['treatments']} treatments did better, but broke "
        f"a guard ({', '.join(dict.fromkeys(map(_quantity, of['guards'])))})."
    )


def _none_better(of: _Figures) -> str:
    none = f"Keep the baseline: no treatment is significantly better than {of['baseline']}."
    if "most" not in of:
        return none
    if of["most"] > 10:  # noqa: PLR2004 - a per cent of that is no help
        return f"{none} Its trials are too few to rule out a tenfold gain; run more blocks."
    most = max(0.1, (of["most"] - 1) * 100)  # what is printed: none is "0.0 %"
    return f"{none} A gain of {most:.1f} % or more is ruled out."


def _soak_held(of: _Figures) -> str:
    return (
        f"{of['treatment']} held over a soak of {of['length_s'] / 60:.0f} minutes: its last "
        f"quarter is {_change(of)} from its second."
    )


def _soak_worse(of: _Figures) -> str:
    return (
        f"Over a soak of {of['length_s'] / 60:.0f} minutes {of['treatment']} got worse: its last "
        f"quarter is {_change(of)} from its second. {_FADES}."
    )


def _soak_unclear(of: _Figures) -> str:
    return (
        f"A soak of {of['length_s'] / 60:.0f} minutes does not show whether {of['treatment']} "
        f"holds its throughput: its last quarter is {_change(of)} from its second."
    )


def _change(of: _Figures) -> str:
    change, low, high = (of[name] * 100 for name in ("change", "low", "high"))
    return f"{change:+.1f} % ({low:+.1f} to {high:+.1f})"


def _quantity(guard: str) -> str:
    """Return the quantity of a guard: ``p99 latency``, ``spread of throughput``."""
    response = guard.removesuffix("_logsd")
    if response != guard:
        return f"spread of {_RATES.get(response) or words_of(response)}"
    if guard.startswith("latency_") and guard.endswith("_s"):
        return words_of(guard)
    return guard


_MADE: Mapping[str, Callable[[_Figures], str]] = {
    "broke-guards": _broke_guards,
    "early-window": _early_window,
    "few-changes": _few_changes,
    "lasting-fall": _lasting_fall,
    "most-lost": _most_lost,
    "none-better": _none_better,
    "other-state": _other_state,
    "screened": _screened,
    "soak-held": _soak_held,
    "soak-unclear": _soak_unclear,
    "soak-worse": _soak_worse,
    "winner": _winner,
}
# Warnings of several treatments that are one, though their figures differ.
_SEVERAL: Mapping[str, Callable[[Sequence[_Figures]], str]] = {
    "early-window": _early_windows,
    "guard-waived": _waived,
}
