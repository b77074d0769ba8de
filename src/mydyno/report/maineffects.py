"""Main effects and interactions of the changes, as a table with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from mydyno.analyse.result import Comparison, Part, Ratio, Together
from mydyno.report import units
from mydyno.report.forest import Forest, Whisker, forest

_PAIR = " with "


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One line: what was changed, its ratio as text and as a mark."""

    changed: str
    against: str
    effect: tuple[str, str, str]
    whisker: Whisker


@dataclass(frozen=True, slots=True)
class EffectsView:
    """Main effects and interactions under one workload, the strongest first."""

    workload: str
    forest: Forest
    rows: tuple[EffectRow, ...]
    pairs: tuple[EffectRow, ...]


def parts(compared: Comparison, margin: float) -> tuple[EffectsView, ...]:
    """Return one view for each workload that has main effects."""
    works = dict.fromkeys(part.workload for part in compared.parts)
    return tuple(_view(compared, work, margin) for work in works)


def ordered(found: Sequence[Part]) -> list[Part]:
    """Return main effects with the strongest first."""
    return sorted(found, key=lambda part: -abs(log(part.effect.ratio)))


def together(pair: Together) -> str:
    """Return a pair of levels as text."""
    return _PAIR.join(f"{factor} = {level}" for factor, level in pair.levels.items())


def _view(compared: Comparison, work: str, margin: float) -> EffectsView:
    mains = ordered([part for part in compared.parts if part.workload == work])
    pairs = [pair for pair in compared.together if pair.workload == work]
    axis = forest([*(p.effect for p in mains), *(p.effect for p in pairs)], margin)
    return EffectsView(
        work,
        axis,
        tuple(_row(axis, f"{p.factor} = {p.level}", p.against, p.effect) for p in mains),
        tuple(_row(axis, together(p), "", p.effect) for p in pairs),
    )


def _row(axis: Forest, changed: str, against: str, effect: Ratio) -> EffectRow:
    return EffectRow(changed, against, units.interval(effect), axis.whisker(effect))
