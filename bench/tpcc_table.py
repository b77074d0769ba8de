"""The table of the TPC-C bench: data, load, conditions and rates, ours and go-tpc's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tpcc_ours import TABLES, Cost

ITEMS, PER_WAREHOUSE = 100_000, {"warehouse": 1, "district": 10, "stock": 100_000,
    "customer": 30_000, "history": 30_000, "orders": 30_000, "new_order": 9_000,
    "order_line": 300_000}  # fmt: skip
ABSENT = "not here"


@dataclass(slots=True)
class Column:
    """What was found of one tool; nothing where it could not be had."""

    counts: dict[str, int] = field(default_factory=dict)
    load: Cost | None = None
    steps: dict[str, Cost] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)
    rates: list[tuple[float, float]] = field(default_factory=list)


def rendered(warehouses: int, ours: Column, peer: Column) -> str:
    """Return all tables as text."""
    lines = [_line("rows", "clause 1.2.1", "sysbench-tpcc", "go-tpc")]
    for table in TABLES:
        want = ITEMS if table == "item" else PER_WAREHOUSE[table] * warehouses
        about = "~" if table == "order_line" else ""
        lines.append(_line(table, f"{about}{want:,}", _count(ours, table), _count(peer, table)))
    lines += ["", _line("load", "", "sysbench-tpcc", "go-tpc")]
    for name, of in _LOADS.items():
        cells = [of(c.load, warehouses) if c.load else ABSENT for c in (ours, peer)]
        lines.append(_line(name, "", *cells))
    for step, cost in ours.steps.items():
        used = f"{cost.wall_s:.1f}, CPU {cost.server_s + cost.tool_s:.1f}"
        lines.append(_line(f"  of it {step}, s", "", used, ""))
    lines += ["", _line("conditions", "", "sysbench-tpcc", "go-tpc")]
    for name in dict.fromkeys([*ours.checks, *peer.checks]):
        lines.append(_line(name, "", ours.checks.get(name, ""), peer.checks.get(name, ABSENT)))
    lines += ["", _line("rates, /s", "", "sysbench-tpcc", "go-tpc")]
    lines += [_rates(n, i, ours, peer) for i, n in enumerate(("new orders", "all transactions"))]
    return "\n".join([*lines, *_ratios(ours, peer)]) + "\n"


_LOADS = {
    "by the clock, s": lambda cost, _: f"{cost.wall_s:.1f}",
    "warehouses per minute": lambda cost, n: f"{60 * n / cost.wall_s:.2f}",
    "CPU of the server, s per warehouse": lambda cost, n: f"{cost.server_s / n:.2f}",
    "CPU of the tool, s per warehouse": lambda cost, n: f"{cost.tool_s / n:.2f}",
}


def _count(column: Column, table: str) -> str:
    return f"{column.counts[table]:,}" if column.counts else ABSENT


def _rates(name: str, which: int, *columns: Column) -> str:
    cells = [_spread([pair[which] for pair in c.rates]) if c.rates else ABSENT for c in columns]
    return _line(f"{name}, median [least..most]", "", *cells)


def _spread(values: Sequence[float], places: int = 1) -> str:
    return f"{median(values):.{places}f} [{min(values):.{places}f}..{max(values):.{places}f}]"


def _ratios(ours: Column, peer: Column) -> list[str]:
    """Return the ratios of neighbouring runs: the machine's drift falls on both alike."""
    pairs = list(zip(ours.rates, peer.rates, strict=False))
    return [
        _line(f"{name}, ours / go-tpc", "", _spread([a[i] / b[i] for a, b in pairs], 2), "")
        for i, name in enumerate(("new orders", "all transactions"))
        if pairs
    ]


def _line(name: str, want: str, ours: str, peer: str) -> str:
    return f"{name:<38}{want:>14}{ours:>24}{peer:>24}".rstrip()
