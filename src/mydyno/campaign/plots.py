"""Split plots: in each block, treatments that share hard-to-change factors run together."""

import random
from collections.abc import Mapping, Sequence

from mydyno.model import Settings

_REBOOTED = ("db/kernel.release",)
_REFORMATTED = ("db/fs.type", "db/fs.mkfs", "db/raid.", "db/server.")

Cell = tuple[str, str]  # workload, treatment


def plots(treatments: Mapping[str, Settings], *, one_device: bool) -> Mapping[str, str]:
    """Return the whole plot of each treatment: its levels of the hard-to-change factors.

    These cost a reboot or, with `one_device`, which holds one data set at a time, another data set.
    A lab holds all data sets at once.
    """
    hard_to_change = _REBOOTED + (_REFORMATTED if one_device else ())
    return {
        name: repr(sorted((k, v) for k, v in settings.items() if k.startswith(hard_to_change)))
        for name, settings in treatments.items()
    }


def grouped(order: Sequence[Cell], of: Mapping[str, str], chance: random.Random) -> list[Cell]:
    """Return a block's trials grouped by whole plot, the plots in random order.

    The order is drawn again for every block, so that the random effect of a reboot differs between
    a treatment's trials and is part of their variance (Yates, 1935, for the design).
    """
    found = list(dict.fromkeys(of.get(treatment, "") for _, treatment in order))
    chance.shuffle(found)
    return sorted(order, key=lambda cell: found.index(of.get(cell[1], "")))
