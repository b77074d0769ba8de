"""The table of the digest's bench: medians with their range, ratios, and the goals beside them."""

import argparse
import os
import platform
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from digest import Row

MB = 1e6
_TITLE = ("tool", "MB/s of CPU", "MB/s of time", "x pt", "x dumpslow", "peak MB", "events, totals")
_WIDTHS = (24, 22, 12, 6, 10, 8, 0)
# MB/s of CPU on one thread; times pt-query-digest; times mysqldumpslow; two threads' speed-up.
_GOALS = {"oltp": 1000, "wide": 2000}
_PT, _DUMPSLOW, _TWO = 200, 40, 1.8


def head(ask: argparse.Namespace) -> str:
    """Return what machine this is and how the figures come about."""
    return (
        f"machine  {_model()}, {os.cpu_count()} cores, {_memory() / 1e9:.0f} GB, "
        f"kernel {platform.release()}, {time.strftime('%Y-%m-%d')}\n"
        f"logs     made by crates/digest/examples/slowlog from seed {ask.seed}, in the page cache\n"
        "MB/s     10^6 bytes a second of processor (user and system, children too), the median\n"
        f"         [least..most] of {ask.rounds} runs, {ask.slow_rounds} of the slow tools, in "
        "turns; and of the clock\n"
        "cut      the slow tools read the first part of the same log: MB/s is the same measure\n"
    )


def body(rows: list["Row"]) -> str:
    """Return a table for each log, and what became of the goals."""
    parts = []
    for shape in dict.fromkeys(row.log.shape for row in rows):
        some = [row for row in rows if row.log.shape == shape]
        speeds = {row.tool.name: _speed(row) for row in some if row.runs}
        largest = max((row.log for row in some), key=lambda log: log.size)
        mean = largest.size / largest.events
        lines = [
            (
                f"{shape}: {largest.size / MB:.0f} MB, {largest.events} events, "
                f"{mean:.0f} bytes an event"
            ),
            _line(_TITLE),
            *(_row(row, speeds) for row in some),
            "",
            *_goals(shape, some, speeds),
        ]
        parts.append("\n".join(lines))
    peers = ", ".join(dict.fromkeys(row.version for row in rows if row.version))
    return "\n\n".join(parts) + f"\n\nversions: {peers}\n"


def _row(row: "Row", speeds: dict[str, float]) -> str:
    if row.absent:
        return f"{row.tool.name:<{_WIDTHS[0]}}  {row.absent}"
    each = [row.log.size / MB / run.cpu_s for run in row.runs]
    name = f"{row.tool.name} (cut)" if row.tool.slow else row.tool.name
    output = row.runs[-1].output
    return _line(
        (
            name,
            f"{_short(statistics.median(each))} [{_short(min(each))}..{_short(max(each))}]",
            _short(_clock(row)),
            _ratio(row.tool.name, "pt-query-digest", speeds),
            _ratio(row.tool.name, "mysqldumpslow", speeds),
            f"{max(run.peak for run in row.runs) / MB:.0f}",
            f"{output.events}, {output.right}",
        )
    )


def _goals(shape: str, rows: list["Row"], speeds: dict[str, float]) -> list[str]:
    one, two = ("mydyno-probe, 1 thread", "mydyno-probe, 2 threads")
    clock = {row.tool.name: _clock(row) for row in rows if row.runs}
    lines = []
    if one in speeds:
        lines.append(_goal("MB/s a core", speeds[one], _GOALS[shape]))
    for peer, goal in (("pt-query-digest", _PT), ("mysqldumpslow", _DUMPSLOW)):
        if one in speeds and peer in speeds:
            lines.append(_goal(f"times {peer}, one core", speeds[one] / speeds[peer], goal))
        if two in clock and peer in clock:
            lines.append(_goal(f"times {peer}, as both are run", clock[two] / clock[peer], goal))
    if one in clock and two in clock:
        lines.append(_goal("two threads against one, by the clock", clock[two] / clock[one], _TWO))
    return lines


def _goal(what: str, found: float, goal: float) -> str:
    met = "met" if found >= goal else "MISSED"
    return f"  goal: {what} at least {goal:g}: {_short(found)}, {met}"


def _speed(row: "Row") -> float:
    return statistics.median(row.log.size / MB / run.cpu_s for run in row.runs)


def _clock(row: "Row") -> float:
    return statistics.median(row.log.size / MB / run.wall_s for run in row.runs)


def _ratio(name: str, peer: str, speeds: dict[str, float]) -> str:
    return _short(speeds[name] / speeds[peer]) if peer in speeds else "-"


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _line(cells: tuple[str, ...]) -> str:
    return "  ".join(
        f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)
    ).rstrip()


def _model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
