"""All runs in a text, of any tool, and its unparsed lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.workloads.foreign import fio_json, fio_text, mysqlslap, sysbench
from mydyno.workloads.foreign.log_text import Text, text_of
from mydyno.workloads.foreign.parsed_run import Caveat, Found, ParsedRun
from mydyno.workloads.foreign.unsupported import unsupported_figures

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
    found = [json, _but_for(fio_text.find(rest), json), mysqlslap.find(rest), sysbench.find(rest)]
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


def _but_for(found: Found, json: Found) -> Found:
    """Return the runs of a text less those that fio gave as JSON too (normal,json)."""
    kept = [r for r in found.readings if not any(_is_same(r, other) for other in json.readings)]
    return Found(tuple(kept), found.rejected, found.known)


def _is_same(one: ParsedRun, other: ParsedRun) -> bool:
    inside = one.lines[0] <= other.lines[0] and other.lines[-1] <= one.lines[-1]
    a, b = one.totals["iops"], other.totals["iops"]
    return inside and abs(a - b) <= _SAME * max(a, b)
