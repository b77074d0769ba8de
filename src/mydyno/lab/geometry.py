"""The geometry of a stripe in the words of each mkfs: a loop device cannot tell it (FACTS 2.2)."""

import re
import shlex
from itertools import pairwise

from mydyno.lab.values import Stripe

_BLOCK = 4096  # bytes; what mkfs.ext4 chooses for any device of more than 512 MiB
_XFS = re.compile(r"(?:^|,)(?:su|sunit|sw|swidth|noalign)(?:=|,|$)")
_EXT4 = re.compile(r"(?:^|,)(?:stride|stripe_width|stripe-width)=")


def mkfs_options(kind: str, options: str, stripe: Stripe) -> str:
    """Return mkfs options with the stripe's geometry among them, unless they name one.

    XFS is told stripe unit and width, ext4 stride and stripe width in its blocks; btrfs has none.
    """
    if stripe.disks == 1 or kind not in _WORDS:
        return options
    flag, words, known = _WORDS[kind]
    argv = shlex.split(options)
    if any(known.search(word) for word in _values(argv, flag)):
        return options
    return shlex.join(_merged(argv, flag, words(stripe)))


def _xfs(stripe: Stripe) -> str:
    return f"su={stripe.chunk >> 10}k,sw={stripe.disks}"


def _ext4(stripe: Stripe) -> str:
    stride = stripe.chunk // _BLOCK
    return f"stride={stride},stripe_width={stride * stripe.disks}"


_WORDS = {"xfs": ("-d", _xfs, _XFS), "ext4": ("-E", _ext4, _EXT4)}


def _values(argv: list[str], flag: str) -> list[str]:
    """Return what follows a flag, wherever it is given."""
    return [value for word, value in pairwise(argv) if word == flag]


def _merged(argv: list[str], flag: str, words: str) -> list[str]:
    """Put words behind the last of a flag, which is the one that mke2fs heeds, or add the flag."""
    if flag not in argv[:-1]:
        return [flag, words, *argv]
    at = len(argv) - argv[::-1].index(flag)
    return [*argv[:at], f"{argv[at]},{words}", *argv[at + 1 :]]
