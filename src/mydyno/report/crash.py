"""Power cuts as text: what each treatment lost, those of the same durability first."""

from collections.abc import Sequence

from mydyno.report import units
from mydyno.report.text import aligned
from mydyno.stats.losses import Loss

_HEADS = (
    *("treatment", "durability", "cuts", "lost commits in", "at most", "binlog", "damaged"),
    "recovery",
)


def render_losses(found: Sequence[Loss], width: int) -> str:
    """Return a table and one sentence a treatment that lost something, ending in a newline."""
    order = ordered(found)
    lines = aligned([_HEADS, *(_row(one) for one in order)], ())
    if max(map(len, lines)) > width:
        lines = [line for one in order for line in _tall(one)]
    return "\n".join([*lines, "", *map(sentence, order)]) + "\n"


def ordered(found: Sequence[Loss]) -> list[Loss]:
    """Return those of the same durability first."""
    return sorted(found, key=lambda one: one.durability != "same")


def sentence(one: Loss) -> str:
    """Return what a treatment's power cuts have shown, in one sentence."""
    if not one.cuts:
        return f"{one.treatment}: no cut was measured ({one.example or 'none was made'})."
    share = f"{100 * one.lossy_low:.1f} to {100 * one.lossy_high:.1f} % of cuts"
    parts = []
    if one.corrupt:
        parts.append(f"damaged data in {one.corrupt} of {one.cuts} cuts")
    if one.lossy:
        parts.append(
            f"lost commits in {one.lossy} of {one.cuts} cuts ({share}), of those at a random "
            f"instant in {one.lossy_at_random} of {one.cuts - one.inside}; {one.commits_lost:g} "
            f"in the median and {one.most_lost} at most"
        )
    if one.binlog:
        parts.append(f"lost commits from the binary log in {one.binlog}")
    if one.unlogged:
        parts.append(f"has commits that its binary log lacks after {one.unlogged}")
    if not parts:
        mended = f" (torn pages were repaired after {one.repaired})" if one.repaired else ""
        return (
            f"{one.treatment}: lost nothing in {one.cuts} cuts{mended}; up to "
            f"{100 * one.lossy_high:.1f} % of cuts could."
        )
    return f"{one.treatment}: {'; '.join(parts)}."


def _row(one: Loss) -> tuple[str, ...]:
    return (
        one.treatment,
        one.durability,
        str(one.cuts),
        str(one.lossy),
        str(one.most_lost),
        "-" if one.binlog is None else str(one.binlog),
        str(one.corrupt),
        units.duration(one.recovery_s),
    )


def _tall(one: Loss) -> list[str]:
    cells = zip(_HEADS, _row(one), strict=True)
    first, *rest = [f"{head}: {cell}" for head, cell in cells]
    return [first, *(f"  {line}" for line in rest)]
