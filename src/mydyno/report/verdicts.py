"""Labels of the verdicts (word, symbol, meaning), and the order of treatments."""

from dataclasses import dataclass

from mydyno.analyse.direction import LOWER
from mydyno.analyse.result import Comparison, Row


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
    return [n for n in names if n == comparison.baseline] + [
        n for n in names if n != comparison.baseline
    ]


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
