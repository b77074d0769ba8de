"""Drift as text: what was kept, what is stored, what is in force."""

from collections.abc import Sequence

from mydyno.keep.drift import DriftRow
from mydyno.report import units

_HEAD = ("setting", "kept", "stored", "in force", "")
_STATES = {
    "kept": "",
    "not stored": "not stored: a restart loses it",
    "not loaded": "stored, not in force: reload or restart",
    "changed": "another value is in force",
    "unknown": "stored; what is in force cannot be seen",
}


def render_drift(name: str, rows: Sequence[DriftRow], width: int) -> str:
    """Return a table of at most `width` columns where that is possible, ending in a newline."""
    cells = [_HEAD, *(_cells(row) for row in rows)]
    sizes = [max(len(row[i]) for row in cells) for i in range(len(_HEAD) - 1)]
    if sum(sizes) > width - 8:
        most = max(12, (width - 8) // 4)
        sizes = [min(most, size) for size in sizes]
    lines = []
    for row in cells:
        shown = [f"{text:<{size}}" for text, size in zip(row, sizes, strict=False)]
        lines.append("  ".join([*shown, row[-1]]).rstrip())
    differ = [row for row in rows if row.state != "kept"]
    last = f"{name}: {units.counted(len(rows), 'setting')}, {len(differ)} not as kept"
    return "\n".join([*lines, last]) + "\n"


def _cells(row: DriftRow) -> tuple[str, ...]:
    where = f" [{row.where}]" if row.where and row.state != "kept" else ""
    nothing = units.NOTHING
    state = _STATES[row.state] + where
    return row.key, row.wanted, row.stored or nothing, row.effective or nothing, state
