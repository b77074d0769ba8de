"""Figures that a text around its logs names: those that follow from none of its runs."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from mydyno.workloads.foreign.number import Shown
from mydyno.workloads.foreign.reading import Doubt, Reading

_MIB = 2**20
_BYTES = re.compile(r"(?<![\d.])(\d+\.\d\d+) ?Mi?B/s")
_RATE = re.compile(r"(?i:tps|qps|iops)\D{0,6}?(?<![\d.])(\d+\.\d\d+)(?![\d.]*\s?[%a-zA-Z])")
_COPIED = 0.51  # of the last digit: such figures are copied, not rounded


def unsupported(lines: Sequence[str], known: Collection[int], readings: Iterable[Reading]
           ) -> Iterator[Doubt]:  # fmt: skip
    """Yield each figure with two decimals, of MiB/s, TPS, QPS or IOPS, that no run of a text gives.

    Only texts with runs are looked through; what agrees with a run within 0.1 % is passed over.
    """
    runs = tuple(readings)
    rates = [v for r in runs for k, v in r.totals.items() if k != "seconds"]
    moved = [v / _MIB for r in runs for k, v in r.totals.items() if k.endswith("_bytes")]
    for number, line in enumerate(lines) if runs else ():
        if number in known:
            continue
        for pattern, unit, figures in ((_BYTES, "MiB/s", moved), (_RATE, "per second", rates)):
            for told in pattern.findall(line):
                yield from _unfounded(told, unit, figures, number)


def _unfounded(told: str, unit: str, figures: Sequence[float], number: int) -> Iterator[Doubt]:
    claim = Shown(float(told), _COPIED / 10 ** len(told.partition(".")[2]))
    if not figures or any(claim.agrees(figure) for figure in figures):
        return
    places = len(told.partition(".")[2])
    alike = [f"{figure:.{places}f}" for figure in figures]
    typo = next((figure for figure in alike if _is_one_off(told, figure)), "")
    hint = f" (one digit off {typo})" if typo else ""
    yield Doubt(number, f"the text says {told} {unit}, which follows from none of its runs{hint}")


def _is_one_off(one: str, other: str) -> bool:
    same = len(one) == len(other)
    return same and sum(a != b for a, b in zip(one, other, strict=True)) == 1
