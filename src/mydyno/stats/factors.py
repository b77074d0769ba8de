"""Factors: which cells of a grid are run, and what trials show of each factor and each pair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from mydyno.model import Figure, Finding, FindingPlace, Outcome
from mydyno.stats.drift import Levels, Trials, levels
from mydyno.stats.effects import ratio
from mydyno.stats.result import Part, Ratio, Together
from mydyno.stats.rule import CONFIDENCE, FIRST, Rule
from mydyno.stats.sequential import steady_of

Array = NDArray[np.float64]
Cells = Mapping[str, Mapping[str, str]]
"""Each treatment's level of each factor, as text."""

_SPARE = 2  # least residual degrees of freedom for an interval
_MOST = 0.8  # least share of the gain that "a few changes" must explain
_PAIRED = 6  # factors: with more, a campaign cannot estimate the pairs
_SHOWN = 6  # combinations of levels listed per workload


@dataclass(frozen=True, slots=True)
class _Coded:
    """Factors with their levels, the baseline's first, and the columns of the design."""

    factors: Mapping[str, Sequence[str]]
    chosen: Sequence[tuple[str, str]] = ()

    def row(self, cell: Mapping[str, str]) -> Array:
        """Return a cell's row: one, each factor's contrasts, each chosen pair's products.

        A factor that is not in the cell stands at the mean over its levels (sum-to-zero contrasts).
        """
        mains = {f: _contrasts(known, cell.get(f)) for f, known in self.factors.items()}
        pairs = [np.outer(mains[a], mains[b]).ravel() for a, b in self.chosen]
        return np.concatenate([[1.0], *mains.values(), *pairs])

    def distinct_levels(self, factor: str) -> Sequence[str]:
        """Return the levels to list in pairs; of two levels only the second."""
        known = self.factors[factor]
        return known[1:] if len(known) == 2 else known  # noqa: PLR2004

    def width(self, pair: tuple[str, str]) -> int:
        """Return the number of design columns of a pair."""
        a, b = pair
        return (len(self.factors[a]) - 1) * (len(self.factors[b]) - 1)


@dataclass(frozen=True, slots=True)
class _FactorTrials:
    """Trials whose treatment has factor levels: cells, times in s, steady levels as logs."""

    cells: Sequence[Mapping[str, str]]
    at_s: Array
    level: Array

    def fitted(self, coded: _Coded) -> Levels | None:
        """Return the coefficients, or None where the design does not identify all of them."""
        design = np.array([coded.row(cell) for cell in self.cells])
        n, columns = design.shape
        if n < columns + _SPARE or np.linalg.matrix_rank(design) < columns:
            return None
        return levels(Trials(design, self.at_s, self.level, np.ones(n)))


def attribute(
    outcomes: Sequence[Outcome], rule: Rule, workload: str, cells: Cells
) -> tuple[list[Part], list[Together]]:
    """Return the main effect of each level of each factor, and the interactions of pairs.

    A main effect is the mean over the levels of the others (sum-to-zero contrasts); a pair enters
    the model if the Bayesian information criterion selects it (Schwarz, 1978).  Each interval
    is at 95 %, not simultaneous.  Both lists are empty where the design does not identify them.
    """
    trials = _factor_trials(outcomes, rule, workload, cells)
    if trials is None:
        return [], []
    coded = _Coded(_factors(trials.cells, cells.get(rule.baseline) or cells.get(FIRST)))
    found = trials.fitted(coded)
    if not coded.factors or found is None:
        return [], []
    coded, found = _with_pairs(trials, coded, found)
    sign = rule.gain(1.0, workload)

    def part(factor: str, level: str, against: str) -> Part:
        contrast = coded.row({factor: level}) - coded.row({factor: against})
        return Part(workload, factor, level, against, _ratio(found, sign * contrast))

    parts = [part(f, level, known[0]) for f, known in coded.factors.items() for level in known[1:]]
    return parts, _together(coded, found, workload, sign)


def few(parts: Sequence[Part], cell: Mapping[str, str], winner: str, rule: Rule) -> Finding | None:
    """Return the few changes that give most of a winner's gain, None if it takes all of them."""
    gains: dict[str, float] = {}
    for part in parts:
        if cell.get(part.factor) == part.level:
            gain = rule.gain(log(part.effect.ratio), part.workload)
            gains[part.factor] = gains.get(part.factor, 0.0) + gain
    ordered = sorted((gain, name) for name, gain in gains.items() if gain > 0)[::-1]
    total = sum(gain for gain, _ in ordered)
    count, so_far = 0, 0.0
    while so_far < _MOST * total:
        so_far += ordered[count][0]
        count += 1
    if count in {0, len(gains)}:
        return None
    figures: dict[str, Figure] = {
        "changes": len(gains),
        "share": so_far / total,
        "names": [name for _, name in ordered[:count]],
    }
    return Finding("few-changes", figures, FindingPlace(winner))


def _factor_trials(
    outcomes: Sequence[Outcome], rule: Rule, workload: str, cells: Cells
) -> _FactorTrials | None:
    trials, steady = steady_of(outcomes, rule, workload)
    which = [i for i, t in enumerate(trials) if cells.get(t.treatment)]
    mine = [trials[i] for i in which]
    if not mine:
        return None
    return _FactorTrials(
        [cells[t.treatment] for t in mine], np.array([t.at_s for t in mine]), steady.level[which]
    )


def _factors(
    cells: Sequence[Mapping[str, str]], baseline: Mapping[str, str] | None
) -> dict[str, list[str]]:
    """Return the factors that vary with their levels, the baseline's before the others."""
    found: dict[str, list[str]] = {}
    for factor in cells[0]:
        known = dict.fromkeys(cell[factor] for cell in cells)
        first = (baseline or {}).get(factor)
        ordered = [*([first] if first in known else []), *(k for k in known if k != first)]
        if len(ordered) > 1:
            found[factor] = [str(level) for level in ordered]
    return found


def _contrasts(known: Sequence[str], level: str | None) -> Array:
    """Return sum-to-zero contrasts: minus one in all for the last level, zeros for their mean."""
    row = np.zeros(len(known) - 1)
    if level == known[-1]:
        row[:] = -1.0
    elif level is not None:
        row[known.index(level)] = 1.0
    return row


def _with_pairs(trials: _FactorTrials, coded: _Coded, found: Levels) -> tuple[_Coded, Levels]:
    """Return the model with the pairs that the criterion selects, the strongest first."""
    while len(coded.factors) <= _PAIRED:
        best, more = 0.0, None
        for pair in combinations(coded.factors, 2):
            if pair in coded.chosen:
                continue
            wider = _Coded(coded.factors, (*coded.chosen, pair))
            fitted = trials.fitted(wider)
            if fitted is None:
                continue
            width = wider.width(pair)
            own, spread = fitted.level[-width:], fitted.covariance[-width:, -width:]
            excess = float(own @ np.linalg.solve(spread, own)) - width * log(len(trials.level))
            if excess > best:
                best, more = excess, (wider, fitted)
        if more is None:
            return coded, found
        coded, found = more
    return coded, found


def _ratio(found: Levels, contrast: Array) -> Ratio:
    effect = float(contrast @ found.level)
    reach = float(stdtrit(found.df, (1 + CONFIDENCE) / 2))
    reach *= float(np.sqrt(contrast @ found.covariance @ contrast))
    return Ratio(ratio(effect), ratio(effect - reach), ratio(effect + reach))


def _together(coded: _Coded, found: Levels, workload: str, sign: float) -> list[Together]:
    """Return the significant interactions, the strongest first."""
    interactions = []
    for a, b in coded.chosen:
        for one, other in product(coded.distinct_levels(a), coded.distinct_levels(b)):
            both = coded.row({a: one, b: other}) + coded.row({})
            contrast = both - coded.row({a: one}) - coded.row({b: other})
            effect = _ratio(found, sign * contrast)
            if not effect.low <= 1 <= effect.high:
                interactions.append(Together(workload, {a: one, b: other}, effect))
    return sorted(interactions, key=lambda t: -abs(log(t.effect.ratio)))[:_SHOWN]


_SHARE = 0.5  # a third misses interactions too often
_VAGUE, _LIKELY_SMALL = 1e-3, 1.0  # prior precision (1 / variance) of an effect
# Ties are broken by order, whatever the rounding of a processor: a campaign that is resumed on
# another machine has the same cells.
_TIE = 1e-9
_GAIN = 1e-6


def fraction(cells: Sequence[tuple[int, ...]], wanted: int | None) -> list[int]:
    """Return which cells of a full grid are run, ascending; the first is always included.

    They make the determinant of X'X + K large, for main effects and all pairs: Bayesian
    D-optimality (DuMouchel and Jones, 1994): interactions are likely small, so there may be more of
    them than the cells could estimate.  Cells are added one at a time, then exchanged as Fedorov
    (1972) does. `wanted` is how many; without it half of the grid.
    """
    levels = {
        f"{i}": [f"{n}" for n in range(max(of) + 1)]
        for i, of in enumerate(zip(*cells, strict=True))
    }
    coded = _Coded(levels, tuple(combinations(levels, 2)))
    named = ({f"{i}": f"{n}" for i, n in enumerate(cell)} for cell in cells)
    rows = np.array([coded.row(cell) for cell in named])
    mains = sum(len(of) - 1 for of in levels.values())
    count = wanted or max(round(_SHARE * len(cells)), 1)
    count = min(max(count, mains + 1), len(cells))
    known = np.full(rows.shape[1], _VAGUE)
    known[1 + mains :] = _LIKELY_SMALL
    prior = np.diag(known)
    chosen = [0]
    while len(chosen) < count:
        spread = _spread(rows, chosen, prior).diagonal().copy()
        spread[chosen] = -1.0
        chosen.append(_first_best(spread))
    while (swap := _exchange(_spread(rows, chosen, prior), chosen)) is not None:
        chosen[swap[0]] = swap[1]
    return sorted(chosen)


def _spread(rows: Array, chosen: Sequence[int], prior: Array) -> Array:
    """Return the covariances (cells, cells) of the predictions from the chosen cells."""
    selected = rows[list(chosen)]
    found: Array = rows @ np.linalg.solve(selected.T @ selected + prior, rows.T)
    return found


def _exchange(spread: Array, chosen: Sequence[int]) -> tuple[int, int] | None:
    """Return the index in `chosen` and the cell to exchange it for, or None if none improves it.

    The first cell keeps its place.
    """
    out, own = list(chosen[1:]), spread.diagonal()
    gains = (1 - own[out])[:, None] * (1 + own) + spread[out] ** 2  # factors of the determinant
    gains[:, list(chosen)] = 0.0
    best = _first_best(gains.ravel())
    place, cell = divmod(best, len(own))
    return (place + 1, cell) if gains[place, cell] > 1 + _GAIN else None


def _first_best(values: Array) -> int:
    """Return the index of the first value that is the largest, up to rounding."""
    most = values.max(initial=-np.inf)
    return int(np.flatnonzero(values >= most - _TIE * abs(most))[0]) if values.size else 0
