"""mkfs options for the geometry of a stripe, which mkfs cannot detect on a loop device."""

import re
import shlex
from itertools import pairwise

from mydyno.lab.values import Stripe
from mydyno.stack.raid import Geometry

_KNOWN = {
    "xfs": re.compile(r"(?:^|,)(?:su|sunit|sw|swidth|noalign)(?:=|,|$)"),
    "ext4": re.compile(r"(?:^|,)(?:stride|stripe_width|stripe-width)="),
}


def mkfs_options(kind: str, options: str, stripe: Stripe) -> str:
    """Return mkfs options with the stripe's geometry among them, unless they name one.

    For XFS stripe unit and width, for ext4 stride and stripe width in blocks; btrfs has none.
    """
    geometry = Geometry(stripe.chunk, stripe.disks).options(kind)
    if stripe.disks == 1 or not geometry:
        return options
    flag, words = geometry
    argv = shlex.split(options)
    if any(_KNOWN[kind].search(word) for word in _values(argv, flag)):
        return options
    return shlex.join(_merged(argv, flag, words))


def _values(argv: list[str], flag: str) -> list[str]:
    """Return what follows a flag, wherever it is given."""
    return [value for word, value in pairwise(argv) if word == flag]


def _merged(argv: list[str], flag: str, words: str) -> list[str]:
    """Append to the value of the last occurrence of a flag (mke2fs uses that), or add the flag."""
    if flag not in argv[:-1]:
        return [flag, words, *argv]
    at = len(argv) - argv[::-1].index(flag)
    return [*argv[:at], f"{argv[at]},{words}", *argv[at + 1 :]]
