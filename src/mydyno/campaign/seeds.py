"""The seed of each trial's load: who shares one meets the same rows in the same order."""

from mydyno.model import Reset


def seed_of(first: int, number: int, block: int, reset: Reset) -> int:
    """Return the seed of a campaign's trial `number` in `block`; `first` is the campaign's.

    A block shares one, so that its treatments meet the same load.  Where the server goes on
    running each trial has its own: the second to read the same rows would find them in memory,
    and the first of each block would look slower than it is.
    """
    return first + (number if reset is Reset.NONE else block)
