"""Leases as text: what a treatment changes on a host, and what is on trial or kept there."""

from collections.abc import Sequence
from datetime import UTC, datetime

from mydyno.audit.option_files import written
from mydyno.keep.lease import Held, LeasePlan, LeaseRow
from mydyno.report import units

_LARGE = 1 << 16  # from here on, a multiple of 1024 is a size
_STATES = {
    "open": "is being begun",
    "trial": "on trial",
    "confirmed": "confirmed, not all of it stored yet",
    "kept": "kept",
    "reverting": "is being restored",
    "reverted": "restored",
}


def render_plan(
    name: str,
    plan: LeasePlan,
    evidence: Sequence[str],
    seconds: float,
    width: int,
    data_bytes: float | None,
) -> str:
    """Return what would change, by what evidence, and what it costs."""
    lines = [*_table(plan.rows, width), *(f"evidence: {one}" for one in evidence)]
    if plan.restart:
        data = f" (data: {units.quantity(data_bytes, 'B')})" if data_bytes else ""
        lines.append(f"1 restart of the server when it begins, and 1 if it is restored{data}")
    else:
        lines.append("no restart")
    lines += [f"confirm writes {change.place}" for change in plan.stored]
    lines.append(
        f"{name}: on trial for {units.duration(seconds)}; a reboot, or no mydyno confirm until "
        "then, restores everything"
    )
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[LeaseRow], width: int) -> list[str]:
    cells = [(row.key, _shown(row.before), _shown(row.wanted)) for row in rows]
    most = max(12, (width - 20) // 3)
    sizes = [min(most, max(len(row[i]) for row in cells)) for i in range(3)]
    return [
        f"  {key:<{sizes[0]}}  {before:>{sizes[1]}} -> {wanted:<{sizes[2]}}  {row.cost}"
        for (key, before, wanted), row in zip(cells, rows, strict=True)
    ]


def _shown(value: str) -> str:
    """Return a value as option files write it: 16777216 is 16M."""
    large = value.isdigit() and int(value) >= _LARGE
    return written(float(value)) if large else value or units.NOTHING


def render_leases(name: str, held: Sequence[Held], now: float) -> str:
    """Return a line or two for each lease, the latest last."""
    if not held:
        return f"{name}: no lease\n"
    undone = {one.lease.undoes for one in held if one.state == "kept"}
    return "".join(_lease(one, now, undone=one.lease.id in undone) for one in held)


def _lease(one: Held, now: float, *, undone: bool) -> str:
    lease = one.lease
    begun = f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M} UTC"
    state = _STATES.get(one.state, one.state)
    if one.state == "trial":
        state += f", {units.duration(max(0.0, one.until - now))} left"
    if one.state == "reverted" and one.why:
        state += f" ({one.why})"
    if undone:
        state = "undone"
    if lease.undoes:
        state += f"; undoes {lease.undoes}"
    head = f"{lease.id}  {begun}  {lease.who}: {lease.why}\n    {state}\n"
    settings = ", ".join(f"{k} = {v}" for k, v in lease.note.settings.items())
    head += f"    {settings}\n" if settings else ""
    if one.verdict:
        head += f"    production: {one.verdict} ({one.judged})\n"
    return head + "".join(f"    left as it is, gone or changed by others: {p}\n" for p in one.left)
