"""Elasticities: what throughput loses when one resource's speed is lowered by a known factor.

e = d ln(throughput) / d ln(speed).  In a closed loop the elasticities to all speeds add up to 1: if
every time in the system grows by a factor, throughput falls by that factor.  So an interval that
lies above one half proves the main limit, whatever was not tested, and one less the elasticity of
all doses at once is the share that none of them explains.

A closed loop stalls now and then: InnoDB waits for free pages or a checkpoint, and nothing is done
for a second or three.  Whether that falls into a segment of seconds has nothing to do with its dose
and hides it, so such seconds are counted and left out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log
from statistics import fmean, median

import numpy as np
from msgspec.structs import replace

from mydyno.diagnose.diagnosis import A_LIMIT, ALL, NOT_IT, THE_LIMIT, UNDECIDED, Proof
from mydyno.stats.effects import student
from mydyno.stats.looks import each_of, nominal

FIRST_LOOK = 3  # blocks
MAIN, NOTABLE, SMALL, REFUTED = 0.5, 0.15, 0.25, 0.35
_ERROR = 0.05
_CORRELATION = 1 / 3  # of two doses, as the baseline has two segments for each of theirs
_MOST_ERROR = 0.999  # of a look that may spend almost nothing
MOST_STALLED = 0.25  # share of the time: what is more frequent is how the load runs
_HALF, _SPREAD, _NORMAL = 0.5, 6.0, 1.4826  # of the median; standard deviations; of a MAD in them


@dataclass(frozen=True, slots=True)
class Segment:
    """The throughput of one segment: what is dosed, ``""`` for the baseline, and its speed."""

    dose: str
    block: int
    value: float
    speed: float = 1.0  # relative to the baseline's


@dataclass(frozen=True, slots=True)
class BlockLooks:
    """The blocks that may be run, which set how the error is spent over the looks at their ends."""

    planned: int

    def shares(self, done: int) -> tuple[list[int], list[float]]:
        """Return the numbers of blocks at the looks so far, and the share of the error by each."""
        blocks = [*range(FIRST_LOOK, done + 1)] or [done]
        last = max(self.planned, done)
        return blocks, [round(n / last, 3) for n in blocks]


def proofs(
    segments: Sequence[Segment], looks: BlockLooks, title: Callable[[str], str] = str
) -> list[Proof]:
    """Return the elasticity of each dose that the segments have, that of `ALL` last.

    A dose may have several speeds.  Intervals hold together, at 95 %, over the doses and the looks;
    none is returned before the second block.
    """
    doses = sorted({s.dose for s in segments if s.dose}, key=lambda name: (name == ALL, name))
    fitted = _fit(segments, doses)
    if fitted is None:
        return []
    elasticities, errors, df = fitted
    blocks = len({s.block for s in segments})
    singles = max(1, sum(dose != ALL for dose in doses))
    alpha = 2 * each_of(singles, _CORRELATION, _ERROR / 2)  # to either side
    numbers, shares = looks.shares(blocks)
    wide = student(min(nominal(numbers, shares, alpha), _MOST_ERROR), df)
    found = []
    for dose, e, error in zip(doses, elasticities, errors, strict=True):
        speeds, half = [s.speed for s in segments if s.dose == dose], wide * error
        found.append(Proof(dose, title(dose), speeds[-1], e, e - half, e + half, "", len(speeds)))
    return judged(found)


def judged(found: Sequence[Proof]) -> list[Proof]:
    """Return the proofs with their verdicts, which depend on each other."""
    made: list[Proof] = []
    for proof in found:
        others = [p for p in found if p.limit not in {proof.limit, ALL}]
        verdict = "" if proof.limit == ALL else _verdict(proof, others)
        made.append(replace(proof, verdict=verdict))
    return made


def all_refuted(found: Sequence[Proof]) -> bool:
    """Return whether no dose that was tried can be worth much."""
    single = [proof for proof in found if proof.limit != ALL]
    return bool(single) and all(proof.high < REFUTED for proof in single)


def blocks_to_decide(proof: Proof) -> int:
    """Return in about how many blocks with a dose it would be decided, at the spread that it has.

    An interval narrows with the root of their number, and is to lie above `NOTABLE` or below
    `SMALL`.
    """
    half = (proof.high - proof.low) / 2
    enough = max(proof.elasticity - NOTABLE, SMALL - proof.elasticity)
    return max(proof.segments + 1, ceil(proof.segments * (half / enough) ** 2))


def _verdict(proof: Proof, others: Sequence[Proof]) -> str:
    """Return the verdict; none is the main limit beside another proven one that may be as large.

    Of balanced queues a dose of a fifth shows more than one half of each.
    """
    above_all = bool(others) and proof.low > max(p.high for p in others)
    alone = proof.low > MAIN and not any(p.low > NOTABLE and p.high > proof.low for p in others)
    if alone or (above_all and proof.low > NOTABLE):
        return THE_LIMIT
    if proof.low > NOTABLE:
        return A_LIMIT
    return NOT_IT if proof.high < SMALL else UNDECIDED


def _fit(
    segments: Sequence[Segment], doses: Sequence[str]
) -> tuple[list[float], list[float], int] | None:
    """Return each dose's elasticity and its standard error; speeds are logarithms."""
    blocks = sorted({s.block for s in segments})
    df = len(segments) - len(blocks) - len(doses)
    if not doses or len(blocks) < 2 or df < 1:  # noqa: PLR2004 - one block has no spread
        return None
    design = np.zeros((len(segments), len(blocks) + len(doses)))
    for row, segment in enumerate(segments):
        design[row, blocks.index(segment.block)] = 1.0
        if segment.dose:
            design[row, len(blocks) + doses.index(segment.dose)] = log(segment.speed)
    values = np.log([max(s.value, 1e-9) for s in segments])
    inverse = np.linalg.pinv(design.T @ design)
    fit = inverse @ design.T @ values
    variance = float(((values - design @ fit) ** 2).sum()) / df
    errors = np.sqrt(np.diag(inverse) * variance)
    return fit[len(blocks) :].tolist(), errors[len(blocks) :].tolist(), df


def stall_below(rates: Sequence[float]) -> float:
    """Return the rate of a second below which it is a stall, 0 where noise reaches as far.

    It is half of the usual rate, and six standard deviations away from it, by median and MAD.
    """
    if not rates:
        return 0.0
    usual = median(rates)
    spread = _NORMAL * median(abs(rate - usual) for rate in rates)
    return max(0.0, min(_HALF * usual, usual - _SPREAD * spread))


def outside(rates: Sequence[float], below: float, skip: int = 0) -> tuple[float | None, float]:
    """Return the mean rate outside of stalls, None where no second is, and the share of stalls.

    The seconds beside a stall are part of it in part, and left out, too.  `skip` of the first
    seconds are not measured, but their stalls count for the second that follows them.
    """
    stalls = [rate < below for rate in rates]
    beside = [any(stalls[max(0, at - 1) : at + 2]) for at in range(len(rates))]
    steady = [rate for rate, left in zip(rates[skip:], beside[skip:], strict=True) if not left]
    share = fmean(stalls[skip:]) if stalls[skip:] else 0.0
    return (fmean(steady) if steady else None), share
