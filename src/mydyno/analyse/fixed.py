"""Estimates for designs whose length and number of trials are fixed beforehand (ADR 0003)."""

from collections.abc import Mapping, Sequence

from mydyno.analyse.contrasts import Cell, contrasts
from mydyno.analyse.estimates import Estimates, log_of
from mydyno.analyse.rule import CONFIDENCE, Rule
from mydyno.model import Outcome


def measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Estimates:
    """Return effects within blocks, simultaneous over all treatments for the response."""
    mine = [o for o in outcomes if o.trial.workload == workload]
    logs = _logs(mine, rule.responses[workload])
    values: dict[str, list[float]] = {}
    for (name, _), value in logs.items():
        values.setdefault(name, []).append(value)
    return Estimates(
        effects=contrasts(logs, rule.baseline, confidence=CONFIDENCE, simultaneous=True),
        guards={
            name: contrasts(
                _logs(mine, name), rule.baseline, confidence=CONFIDENCE, simultaneous=False
            )
            for name in rule.guards_of(workload)
        },
        values=values,
        spreads=_ratios(logs, rule.baseline),
    )


def _logs(outcomes: Sequence[Outcome], metric: str) -> dict[Cell, float]:
    """Return the log of a metric by treatment and block; trials without it are left out."""
    found = {(o.trial.treatment, o.trial.block): log_of(o, metric) for o in outcomes}
    return {cell: value for cell, value in found.items() if value is not None}


def _ratios(logs: Mapping[Cell, float], baseline: str) -> dict[str, list[float]]:
    """Return each treatment's log ratios to the baseline of the same block."""
    found: dict[str, list[float]] = {}
    for (name, block), value in logs.items():
        if name != baseline and (baseline, block) in logs:
            found.setdefault(name, []).append(value - logs[(baseline, block)])
    return found
