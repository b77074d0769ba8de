"""The bench's table: what was measured, where and how, with the goals beside."""

import argparse
import os
import platform
import time
from pathlib import Path

from probe_cost import SETTLE_S, Row, idle_share
from probe_effect import LEAD_S, Effect
from probe_missed import Missed

MB = 1e6
VALUES = 600  # what the goals of size are for
_WIDTHS = (32, 8, 26, 22, 9, 11)


def head(ask: argparse.Namespace, server: str) -> str:
    """Return what machine this is and how the figures come about."""
    machine = (
        f"{model()}, {os.cpu_count()} cores, {_memory() / 1e9:.0f} GB, "
        f"kernel {platform.release()}, {time.strftime('%Y-%m-%d')}"
    )
    lines = [
        f"machine  {machine}",
        f"server   {server}, private, on its socket, idle unless stated",
        "cost     CPU time by the clocks of the tool's processes, which are exact:",
        f"         {ask.seconds:g} s a run after the first {SETTLE_S:g} s; median [least..most]",
        f"         of {ask.rounds} runs, whose order is drawn.",
        "         In the server: CPU time of its process less what it takes when nobody asks.",
        "         Exporters are scraped once a second over one connection, not compressed.",
    ]
    return "\n".join(lines) + "\n"


def costs(rows: list[Row]) -> str:
    """Return the table of costs and the goals that it answers."""
    idle = idle_share(rows)
    title = ("tool", "values", "CPU, % of a core", "in the server, %", "peak MB", "file MB/h")
    lines = [_line(*title)]
    lines += [_cost(row, idle) for row in rows[1:]]
    lines += ["", f"(the server by itself: {idle:.3%} of a core)", *_goals(rows, idle)]
    versions = ", ".join(row.version for row in rows if row.version)
    return "\n".join([*lines, f"peers: {versions}"]) + "\n"


def missed(found: list[Missed]) -> str:
    """Return what the sampler missed on busy processors."""
    lines = ["all processors busy: one spinning process each, and sysbench on the server"]
    for one in found:
        late = one.ticks.late
        lines.append(
            f"  {one.tool.name:>5}: {one.ticks.missed} of {one.ticks.due} ticks missed "
            f"({one.ticks.missed / one.ticks.due:.4%}), late by p50 {_ms(late[0])}, "
            f"p99 {_ms(late[1])}, at most {_ms(late[2])}; {one.share:.3%} of a core, "
            f"{one.values:.0f} values, {one.hour_bytes / MB:.2f} MB/h "
            f"({_per_goal(one.hour_bytes, one.values):.2f} for {VALUES} values)"
        )
    first = found[0].ticks
    lines.append(_goal("missed ticks at 10 Hz, %", 100 * first.missed / first.due, 0.01))
    one_hz = found[-1]
    size = _per_goal(one_hz.hour_bytes, one_hz.values)
    lines.append(_goal(f"an hour of {VALUES} values at 1 Hz, busy, MB", size, 2.5))
    return "\n".join(lines) + "\n"


def effect(found: Effect, ask: argparse.Namespace) -> str:
    """Return the effect on the work, whatever it is."""
    return (
        f"effect on sysbench oltp_read_write ({ask.threads} connections, {found.tps:.0f} "
        "transactions/s), sampled as in a\n"
        "  trial: 1 Hz, host, processes, server, and 10 looks a second at the threads' states:\n"
        f"  throughput with / without = {found.ratio:.4f} "
        f"[{found.low:.4f}..{found.high:.4f}], 95 %, t over the logarithms of {found.pairs} pairs\n"
        f"  of neighbouring {ask.block_seconds:g} s blocks in turns (ABBA or BAAB, drawn) of one "
        f"load; {LEAD_S:g} s at each turn not counted;\n"
        f"  a pair's standard deviation {found.spread:.2%}\n"
        + _goal("CPU of the sampler beside it, % of a core", 100 * found.cost, 1.0)
        + "\n"
    )


def _cost(row: Row, idle: float) -> str:
    if row.absent:
        return f"{row.tool.name:<{_WIDTHS[0]}}  {row.absent}"
    low, high = row.spread("share")
    share = f"{100 * row.middle('share'):.3f} [{100 * low:.3f}..{100 * high:.3f}]"
    served = "-"
    if row.tool.asks:
        least, most = (100 * (value - idle) for value in row.spread("server_share"))
        served = f"{100 * (row.middle('server_share') - idle):.3f} [{least:.3f}..{most:.3f}]"
    file = f"{row.middle('hour_bytes') / MB:.2f}" if row.tool.writes else "-"
    values, peak = f"{row.middle('values'):.0f}", f"{row.middle('peak') / MB:.1f}"
    return _line(row.tool.name, values, share, served, peak, file)


def _goals(rows: list[Row], idle: float) -> list[str]:
    found = {row.tool.name: row for row in rows if row.costs}
    lines = []
    for name in ("mydyno-probe", "mydyno-probe, server too"):
        if row := found.get(name):
            size = _per_goal(row.middle("hour_bytes"), row.middle("values"))
            lines += [
                f"{name}, 1 Hz, idle:",
                _goal("values", row.middle("values"), VALUES, least=True),
                _goal("CPU, % of a core", 100 * row.middle("share"), 0.1),
                _goal("peak, MB", row.middle("peak") / MB, 8),
                _goal(f"an hour of {VALUES} values, MB", size, 2.5),
            ]
    if row := found.get("mydyno-probe, server too"):
        served = 100 * (row.middle("server_share") - idle)
        lines.append(_goal("CPU in the server, % of a core", served, 0.15))
    if row := found.get("mydyno-probe, 10 Hz"):
        lines += [f"{row.tool.name}:", _goal("CPU, % of a core", 100 * row.middle("share"), 1.0)]
    return lines


def _goal(what: str, value: float, wanted: float, *, least: bool = False) -> str:
    met = value >= wanted if least else value <= wanted
    sign = ">=" if least else "<="
    return f"  goal: {what:<44} {sign} {wanted:<6g} {value:9.4g}  {'met' if met else 'NOT MET'}"


def _per_goal(size: float, values: float) -> float:
    return size / MB * VALUES / values


def _line(*cells: str) -> str:
    first, *rest = (f"{cell:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True))
    return "".join([f"{first.strip():<{_WIDTHS[0]}}", *rest]).rstrip()


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"


def model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
