"""What the image is made of: the recipe, and the digest that names what it gives."""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

FOLDER = Path(__file__).parent
GUEST = FOLDER / "guest"
MODULES_HOOK = FOLDER / "modules.sh"
GUEST_HOOK = FOLDER / "guest.sh"
PINS_HOOK = FOLDER / "pins.sh"
_RECIPE = FOLDER / "recipe.toml"


@dataclass(frozen=True, slots=True)
class KernelPackages:
    """The packages of one kernel; ``a|b`` is the first that the archive has."""

    image: str
    headers: str


@dataclass(frozen=True, slots=True)
class Packages:
    """What is installed where ZFS is compiled, and in the guest."""

    builder: Sequence[str]
    guest: Sequence[str]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe as written; `epoch` in seconds, `root_bytes` in bytes."""

    suite: str
    later: str
    components: Sequence[str]
    epoch: int
    zfs: str
    root_bytes: int
    kernels: Mapping[str, KernelPackages]
    packages: Packages


@cache
def recipe() -> Recipe:
    """Return the recipe that ships with mydyno."""
    return msgspec.convert(tomllib.loads(_RECIPE.read_text("utf-8")), Recipe)


@cache
def digest() -> str:
    """Return a short name for what the recipe gives: 16 hexadecimal digits."""
    total = hashlib.sha256()
    for path in _parts():
        total.update(f"{path.relative_to(FOLDER)}\0".encode())
        total.update(path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def _parts() -> Iterator[Path]:
    yield from (_RECIPE, MODULES_HOOK, GUEST_HOOK, PINS_HOOK)
    yield from sorted(path for path in GUEST.rglob("*") if path.is_file())
