"""Figures in the text around logs that no run of the logs supports."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from mydyno.workloads.foreign.number import PrintedNumber
from mydyno.workloads.foreign.parsed_run import Caveat, ParsedRun

_MIB = 2**20
_BYTES = re.compile(r"(?<![\d.])(\d+\.\d\d+) ?Mi?B/s")
_RATE = re.compile(r"(?i:tps|qps|iops)\D{0,6}?(?<![\d.])(\d+\.\d\d+)(?![\d.]*\s?[%a-zA-Z])")
_COPIED = 0.51  # of the last digit: such figures are copied, not rounded


def unsupported_figures(lines: Sequence[str], known: Collection[int], readings: Iterable[ParsedRun]
           ) -> Iterator[Caveat]:  # fmt: skip
    """Yield each figure with two decimals, in MiB/s, TPS, QPS or IOPS, that no run supports.

    Only texts with runs are checked; figures within 0.1 % of a run are supported.
    """
    runs = tuple(readings)
    rates = [v for r in runs for k, v in r.totals.items() if k != "seconds"]
    moved = [v / _MIB for r in runs for k, v in r.totals.items() if k.endswith("_bytes")]
    for number, line in enumerate(lines) if runs else ():
        if number in known:
            continue
        for pattern, unit, figures in ((_BYTES, "MiB/s", moved), (_RATE, "per second", rates)):
            for text in pattern.findall(line):
                yield from _unsupported(text, unit, figures, number)


def _unsupported(text: str, unit: str, figures: Sequence[float], number: int) -> Iterator[Caveat]:
    printed = PrintedNumber(float(text), _COPIED / 10 ** len(text.partition(".")[2]))
    if not figures or any(printed.agrees(figure) for figure in figures):
        return
    places = len(text.partition(".")[2])
    alike = [f"{figure:.{places}f}" for figure in figures]
    typo = next((figure for figure in alike if _is_one_off(text, figure)), "")
    hint = f" (one digit off {typo})" if typo else ""
    yield Caveat(number, f"unsupported figure: {text} {unit} agrees with none of the runs{hint}")


def _is_one_off(one: str, other: str) -> bool:
    same = len(one) == len(other)
    return same and sum(a != b for a, b in zip(one, other, strict=True)) == 1
