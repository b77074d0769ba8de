"""The effect of a change in production as text."""

import textwrap

import msgspec

from mydyno.report import units


class EffectReport(msgspec.Struct, frozen=True):
    """What `effect --json` prints; ratios of a value of which less is better.

    `can_show` maps hours after the change to the smallest change that can be shown, as a share.
    Without hours after the change there is no verdict: `ratio` is None.
    """

    server: str
    change: str
    control: bool
    verdict: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    hours: int = 0
    outside: float = 0.0
    placebos: list[float] = []
    can_show: dict[int, float] = {}
    foretold: list[str] = []


_NEXT = {
    "keep": "keep: it is not worse by 3 % or more",
    "revert": "revert: it is worse by more than 3 %",
    "wait": "wait: the interval still holds both; more hours make it narrower, a control more so",
}


def render_effect(found: EffectReport, width: int) -> str:
    """Return the effect as text of at most `width` columns, ending in a newline."""
    against = "an untouched control" if found.control else "its own past, load and hour allowed for"
    lines = [f"{found.server}, change at {found.change}, compared with {against}"]
    if found.ratio is None or found.low is None or found.high is None:
        lines += [f"{hours} h after it: {_share(size)}" for hours, size in found.can_show.items()]
        return "\n".join(lines) + "\n"
    lines.append(
        f"effect    {found.ratio:.3f} [{found.low:.3f}..{found.high:.3f}] over "
        f"{units.counted(found.hours, 'hour')}"
    )
    if found.outside:
        lines.append(
            f"left out  {units.share(found.outside)} of the hours: such load was not seen before"
        )
    low, high = min(found.placebos), max(found.placebos)
    size = next(iter(found.can_show.values()))
    lines.append(
        f"placebos  {len(found.placebos)} days without a change: {low:.2f} to {high:.2f}; "
        f"{_share(size)}"
    )
    lines += [f"predicted  {line}" for line in found.foretold]
    lines.append(_NEXT[found.verdict])
    return "\n".join("\n".join(textwrap.wrap(line, max(width, 60))) for line in lines) + "\n"


def _share(size: float) -> str:
    return f"a change of {units.share(size)} or more can be shown"
