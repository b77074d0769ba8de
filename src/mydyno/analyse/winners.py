"""Selection bias of the best of several treatments (the winner's curse)."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mydyno.analyse.contrasts import Effect

_FEWEST = 2  # to choose from


def shrink_best(
    effects: Mapping[str, Effect], apart: Callable[[str, str], float]
) -> dict[str, Effect]:
    """Return the effects, the best one's estimate corrected for selection bias.

    `apart` returns the standard error of the difference of two treatments.  The lead over the
    second best is shrunk by the positive-part rule of James and Stein (Efron and Morris, 1973),
    and half of the shrinkage is subtracted from the best.  Intervals do not change: they hold for
    each treatment, whichever is chosen.
    """
    if len(effects) < _FEWEST:
        return dict(effects)
    best, second = sorted(effects, key=lambda name: -effects[name].log_ratio)[:2]
    lead = effects[best].log_ratio - effects[second].log_ratio
    shrinkage = min(lead, apart(best, second) ** 2 / lead) if lead > 0 else 0.0
    return {**effects, best: replace(effects[best], bias=shrinkage / 2)}
