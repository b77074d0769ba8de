"""What the best of several looks better by for having been chosen: the winner's curse."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from mydyno.analyse.contrasts import Effect

_FEWEST = 2  # to choose from


def shrink_best(
    effects: Mapping[str, Effect], apart: Callable[[str, str], float]
) -> dict[str, Effect]:
    """Return the effects, the best one's estimate without what its lead may owe to luck.

    `apart` tells the standard error of the difference of two.  The lead over the next is shrunk by
    the positive-part rule of James and Stein (Efron and Morris, 1973), and half of what that takes
    away is taken from the best.  Intervals stay: they hold for each, whichever is chosen.
    """
    if len(effects) < _FEWEST:
        return dict(effects)
    best, second = sorted(effects, key=lambda name: -effects[name].log_ratio)[:2]
    lead = effects[best].log_ratio - effects[second].log_ratio
    luck = min(lead, apart(best, second) ** 2 / lead) if lead > 0 else 0.0
    return {**effects, best: replace(effects[best], luck=luck / 2)}
