"""The seed of each trial's load: loads with the same seed use the same rows in order."""

from mydyno.model import Reset


def seed_of(first: int, number: int, block: int, reset: Reset) -> int:
    """Return the seed of a campaign's trial `number` in `block`; `first` is the campaign's.

    Trials of a block share a seed, so that its treatments have the same load.  Where the server
    keeps running, each trial has its own: with the same rows, later trials would find them cached.
    """
    return first + (number if reset is Reset.NONE else block)
