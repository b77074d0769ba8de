"""Split plots: in a block, treatments with one level of a hard-to-change factor stay together."""

import random
from collections.abc import Mapping, Sequence

from mydyno.model import Settings

_REBOOTED = ("db/kernel.release",)
_MADE_ANEW = ("db/fs.type", "db/fs.mkfs", "db/raid.", "db/server.")

Cell = tuple[str, str]  # workload, treatment


def plots(treatments: Mapping[str, Settings], *, one_device: bool) -> Mapping[str, str]:
    """Return the whole plot of each treatment: its settings that cost a reboot or another data set.

    A lab holds every data set at once; `one_device` holds one at a time.
    """
    dear = _REBOOTED + (_MADE_ANEW if one_device else ())
    return {
        name: repr(sorted((k, v) for k, v in settings.items() if k.startswith(dear)))
        for name, settings in treatments.items()
    }


def gathered(order: Sequence[Cell], of: Mapping[str, str], chance: random.Random) -> list[Cell]:
    """Return a block's trials with those of a whole plot together, plots in random order.

    The plots are drawn anew in every block, so that what a reboot does by chance differs between a
    treatment's trials and is part of their variance (Yates, 1935, for the design).
    """
    found = list(dict.fromkeys(of.get(treatment, "") for _, treatment in order))
    chance.shuffle(found)
    return sorted(order, key=lambda cell: found.index(of.get(cell[1], "")))
