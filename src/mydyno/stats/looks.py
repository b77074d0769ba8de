"""Planned looks: when a campaign may decide, and how much of its error each look spends.

A campaign looks at its trials at the end of each block.  Its error is spent over the looks as its
blocks or its machine time pass (Lan and DeMets, 1983): a boundary at each look keeps the
probability that any of them is crossed by chance at what was promised (Jennison and Turnbull,
2000).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt

_BLOCKS = 12  # where neither blocks nor a budget end a campaign
_POINTS = 201  # of the density between two looks
_STEP = 3  # digits of a share: more would only make each look's boundary another one
_FIRST = 2  # trials at the first look
_APART = 1.25  # of the number of trials, from one look to the next
_PACE = 0.5  # the power of the share that is spent: below 1, more at the first looks
_LEAST = 1e-9  # probability of a look that may spend nothing
_NODES = 48


@dataclass(frozen=True, slots=True)
class Looks:
    """What ends a campaign: its blocks, its budget in seconds of machine time, or either.

    `once`: it decides when it has ended and never before.
    """

    blocks: int | None = None
    budget_s: float | None = None
    once: bool = False

    def share(self, block: int, spent_s: float) -> float:
        """Return the share of the error that may be spent by the end of `block`, from 0 to 1."""
        shares = [(block + 1) / self.blocks] if self.blocks else []
        if self.budget_s:
            shares.append(spent_s / self.budget_s)
        return round(min(max(shares, default=(block + 1) / _BLOCKS), 1.0), _STEP)


@cache
def thinned(trials: int) -> Sequence[int]:
    """Return after how many trials a treatment with so many had its looks; the last one is now.

    Each of many trials changes too little for a look of its own.
    """
    found = [_FIRST]
    while found[-1] < trials:
        found.append(max(found[-1] + 1, int(_APART * found[-1])))
    return [*(n for n in found if n < trials), trials]


def nominal(trials: Sequence[int], shares: Sequence[float], alpha: float) -> float:
    """Return the two-sided error of the last look's interval, given all looks until then.

    `trials` are the numbers of a treatment's trials at the looks, `shares` those of `alpha` that
    may be spent by then; both rise.
    """
    from scipy.special import ndtr  # noqa: PLC0415 - half a second that most commands do not need

    return float(2 * ndtr(-_bounds(tuple(trials), tuple(shares), alpha)[-1]))


def last_bound(trials: Sequence[int], shares: Sequence[float], alpha: float) -> tuple[int, float]:
    """Return how many trials a treatment can have at the last look, and the boundary there.

    Its trials go on at their pace until all of `alpha` may be spent.
    """
    count, share = trials[-1], shares[-1]
    if share >= 1 or share <= 0:
        return count, _bounds(tuple(trials), tuple(shares), alpha)[-1]
    last = max(round(count / share), count + 1)
    more = [n for n in thinned(last) if n > count]
    rest = [round(share + (1 - share) * (n - count) / (last - count), _STEP) for n in more]
    return last, _bounds((*trials, *more), (*shares, *rest), alpha)[-1]


@cache
def _bounds(trials: tuple[int, ...], shares: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    """Return the boundary at each look, in standard errors (Armitage, McPherson and Rowe, 1969).

    The density of the sum of the trials that have crossed none so far is integrated from look to
    look (Simpson's rule).
    """
    import numpy as np  # noqa: PLC0415
    from scipy.optimize import brentq  # noqa: PLC0415
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    simpson = np.ones(_POINTS)
    simpson[1:-1:2], simpson[2:-1:2] = 4.0, 2.0
    found: list[float] = []
    grid, mass, before, spent = np.zeros(1), np.ones(1), 0, 0.0
    for count, share in zip(trials, shares, strict=True):
        wanted = max(alpha * (share**_PACE - spent**_PACE), _LEAST)
        step = sqrt(count - before)

        def crossed(bound: float, n: int = count, step: float = step) -> float:
            at = bound * sqrt(n)
            return float(mass @ (ndtr((grid - at) / step) + ndtr((-at - grid) / step)))  # noqa: B023

        bound = (
            brentq(lambda at: crossed(at) - wanted, 0.0, 12.0)  # noqa: B023
            if before
            else -float(ndtri(wanted / 2))
        )
        found.append(float(bound))
        at = bound * sqrt(count)
        inside = np.linspace(-at, at, _POINTS)
        density = np.exp(-(((inside[:, None] - grid) / step) ** 2) / 2) @ mass
        mass = density / (step * sqrt(2 * np.pi)) * simpson * (inside[1] - inside[0]) / 3
        grid, before, spent = inside, count, share
    return tuple(found)


@cache
def each_of(treatments: int, correlation: float, error: float) -> float:
    """Return the one-sided error of each of several comparisons with one control.

    The probability that any of them errs is `error`; they correlate by their share of the control
    (Dunnett, 1955, eq. 2, with a known variance).
    """
    from numpy import polynomial, sqrt  # noqa: PLC0415
    from scipy.optimize import brentq  # noqa: PLC0415
    from scipy.special import ndtr  # noqa: PLC0415

    nodes, weight = polynomial.hermite_e.hermegauss(_NODES)
    weight = weight / weight.sum()

    def none_errs(bound: float) -> float:
        one = ndtr((bound + sqrt(correlation) * nodes) / sqrt(1 - correlation))
        return float(weight @ one**treatments)

    return float(ndtr(-brentq(lambda bound: none_errs(bound) - (1 - error), -2.0, 12.0)))
