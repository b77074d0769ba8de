"""Existing benchmark logs in any text: all runs in it, of any tool, and its unparsed lines."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mydyno.logs import fio, fio_json, fio_terse, mysqlslap, sysbench
from mydyno.logs.text import Caveat, Found, ParsedRun, PrintedNumber, Text, text_of

__all__ = ["Caveat", "ParsedLog", "ParsedRun", "read"]

_MIB = 2**20
_BYTES = re.compile(r"(?<![\d.])(\d+\.\d\d+) ?Mi?B/s")
_RATE = re.compile(r"(?i:tps|qps|iops)\D{0,6}?(?<![\d.])(\d+\.\d\d+)(?![\d.]*\s?[%a-zA-Z])")
_COPIED = 0.51  # of the last digit: such figures are copied, not rounded


def unsupported_figures(
    lines: Sequence[str], known: Collection[int], runs: Sequence[ParsedRun]
) -> Iterator[Caveat]:
    """Yield each figure with two decimals, in MiB/s, TPS, QPS or IOPS, that no run supports.

    Only texts with runs are checked; figures within 0.1 % of a run are supported.
    """
    rates = [v for r in runs for k, v in r.totals.items() if k != "seconds"]
    moved = [v / _MIB for r in runs for k, v in r.totals.items() if k.endswith("_bytes")]
    for number, line in enumerate(lines) if runs else ():
        if number in known:
            continue
        for pattern, unit, figures in ((_BYTES, "MiB/s", moved), (_RATE, "per second", rates)):
            for text in pattern.findall(line):
                yield from _unsupported(text, unit, figures, number)


def _unsupported(text: str, unit: str, figures: Sequence[float], number: int) -> Iterator[Caveat]:
    places = len(text.partition(".")[2])
    printed = PrintedNumber(float(text), _COPIED / 10**places)
    if not figures or any(printed.agrees(figure) for figure in figures):
        return
    alike = [f"{figure:.{places}f}" for figure in figures]
    typo = next((figure for figure in alike if _is_one_off(text, figure)), "")
    hint = f" (one digit off {typo})" if typo else ""
    yield Caveat(number, f"unsupported figure: {text} {unit} agrees with none of the runs{hint}")


def _is_one_off(one: str, other: str) -> bool:
    same = len(one) == len(other)
    return same and sum(a != b for a, b in zip(one, other, strict=True)) == 1


_SAME = 0.001  # ratio: fio prints fewer digits for people than in JSON


@dataclass(frozen=True, slots=True)
class ParsedLog:
    """The contents of a text: runs in order, rejected runs, unsupported figures.

    `lines` counts the lines that are not blank; `unparsed` are the numbers, from 0, of those that
    belong to no run.
    """

    readings: Sequence[ParsedRun]
    rejected: Sequence[Caveat]
    unsupported: Sequence[Caveat]
    lines: int
    unparsed: Sequence[int]
    text: Text


def read(data: bytes) -> ParsedLog:
    """Return the runs in `data`; raise `ValueError` for binary data."""
    text = text_of(data)
    json = fio_json.find(text)
    rest = text.without(json.known)
    people = _but_for(fio.find(rest), json)
    terse = fio_terse.find(rest, [*json.readings, *people.readings])
    answered = {n for r in (*json.readings, *terse.readings) for n in range(*_above(r, text))}
    people.rejected = [d for d in people.rejected if d.line not in answered]
    found = [json, people, terse, mysqlslap.find(rest), sysbench.find(rest)]
    readings = sorted((r for f in found for r in f.readings), key=lambda r: r.lines[0])
    known = {n for f in found for n in f.known}
    filled = [n for n, line in enumerate(text.lines) if line.strip()]
    return ParsedLog(
        readings=tuple(readings),
        rejected=tuple(sorted((d for f in found for d in f.rejected), key=lambda d: d.line)),
        unsupported=tuple(unsupported_figures(text.lines, known, readings)),
        lines=len(filled),
        unparsed=tuple(n for n in filled if n not in known),
        text=text,
    )


_NEAR = 4  # lines at most between a command of fio and its result


def _above(run: ParsedRun, text: Text) -> tuple[int, int]:
    """Return the range of lines in which the command of a run may begin."""
    first = run.lines[0]
    while first and text.lines[first - 1].endswith("\\"):
        first -= 1
    return max(0, first - _NEAR), run.lines[-1] + 1


def _but_for(found: Found, json: Found) -> Found:
    """Return the runs of a text less those that fio gave as JSON too (normal,json)."""
    kept = [r for r in found.readings if not any(_is_same(r, other) for other in json.readings)]
    return Found(kept, found.rejected, found.known)


def _is_same(one: ParsedRun, other: ParsedRun) -> bool:
    inside = one.lines[0] <= other.lines[0] and other.lines[-1] <= one.lines[-1]
    a, b = one.totals["iops"], other.totals["iops"]
    return inside and abs(a - b) <= _SAME * max(a, b)
