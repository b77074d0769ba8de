"""The tables of the bench on real servers."""

from collections.abc import Sequence
from statistics import median

from decisions_table import columns, share
from mydyno.stats.result import Row
from real_live import RIGHT, TRUTH, Live
from real_replay import RULE, Replayed
from real_traces import Traces

_WORDS = ("adopt", "reject", "equivalent", "unstable", "inconclusive")
_HEAD = [
    "dose",
    "n",
    *(f"{word}, %" for word in _WORDS),
    "right, %",
    "wrong direction, %",
    "covered, %",
    "half width, %",
    "trials",
    "hours",
]


def replayed(traces: Sequence[Traces], found: Sequence[Replayed]) -> str:
    """Return the table of the replays, with what they replay."""
    doses = dict.fromkeys(r.dose for r in found)
    lines = [_HEAD, *(_line(dose, [r for r in found if r.dose == dose]) for dose in doses)]
    about = "\n".join(
        f"{t.server}; {t.machine}; {len(t.starts)} starts, {t.hours:.1f} h, {t.recorded}"
        for t in traces
    )
    return f"{about}\n\n{columns(lines)}\n\n"


def _line(dose: float, rows: Sequence[Replayed]) -> list[str]:
    words = [r.row.verdict for r in rows]
    effects = [r.row.effect for r in rows if r.row.effect]
    return [
        f"{dose * 100:+.0f} %",
        str(len(rows)),
        *(f"{words.count(w) / len(rows) * 100:.1f}" for w in _WORDS),
        share(sum(_right(dose, word) for word in words), len(rows)),
        share(sum(_reversed(dose, r.row) for r in rows), len(rows)),
        share(sum(e.low <= 1 + dose <= e.high for e in effects), len(effects)),
        f"{median((e.high - e.low) / 2 for e in effects) * 100:.1f}" if effects else "-",
        f"{median(r.trials for r in rows):.0f}",
        f"{median(r.hours for r in rows):.2f}",
    ]


def _right(dose: float, word: str) -> bool:
    """Return whether a verdict is right; within the margin, whatever does not go the wrong way."""
    if abs(dose) < RULE.margin:
        return word != ("reject" if dose > 0 else "adopt")
    return word == ("adopt" if dose > 0 else "reject")


def _reversed(dose: float, row: Row) -> bool:
    """Return whether the interval lies on the opposite side of the dose."""
    if not row.effect or dose == 0:
        return False
    return row.effect.high < 1 if dose > 0 else row.effect.low > 1


def live(found: Sequence[Live]) -> str:
    """Return the table of the live campaigns, a line for each dose of each."""
    lines = [["campaign", "dose", "verdict", "ratio", "low", "high", "hours"]]
    for one in found:
        interval = [f"{v:.3f}" for v in one.interval] if one.interval else ["-"] * 3
        lines.append(
            [str(one.campaign), one.dose, one.verdict, *interval, f"{one.hours:.2f}"]
        )  # fmt: skip
    right = sum(one.verdict == RIGHT[one.dose] for one in found)
    inside = [one for one in found if one.interval]
    covered = sum(o.interval[1] <= TRUTH[o.dose] <= o.interval[2] for o in inside if o.interval)
    return (
        f"{columns(lines)}\n\nright: {share(right, len(found))} %; "
        f"the interval holds the dose: {share(covered, len(inside))} %\n"
    )
