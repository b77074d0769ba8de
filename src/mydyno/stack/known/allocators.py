"""The allocators that a server can be started with: one row each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mydyno.model import SpecError

GLIBC = "glibc"


@dataclass(frozen=True, slots=True)
class Allocator:
    """`soname` is what the loader finds, `package` its package of Debian and Ubuntu.

    `path` matches the end of its file's path.  `words` are in a program that contains it.
    """

    soname: str
    package: str
    path: re.Pattern[str]
    words: str


ALLOCATORS = {
    "jemalloc": Allocator(
        "libjemalloc.so.2", "libjemalloc2", re.compile(r"/libjemalloc\.so[\w.]*$"), "<jemalloc>: "
    ),
    "tcmalloc": Allocator(
        "libtcmalloc_minimal.so.4",
        "libtcmalloc-minimal4",
        re.compile(r"/libtcmalloc(?:_minimal)?(?:_debug)?\.so[\w.]*$"),
        "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
    ),
    "mimalloc": Allocator(
        "libmimalloc.so.2",
        "libmimalloc2.0",
        re.compile(r"/libmimalloc(?:-\w+)?\.so[\w.]*$"),
        "mimalloc: error: ",
    ),
}
TUNABLES = {GLIBC: "GLIBC_TUNABLES", "jemalloc": "MALLOC_CONF"}
"""The variable that holds all tunables of an allocator; the others read one for each."""


def tunables_of(library: str) -> str:
    """Return the variable of an allocator's tunables; raise `SpecError` where each has its own."""
    if library not in TUNABLES:
        raise SpecError(
            f"alloc.tunables with {library}: it reads variables of its own: set env.NAME instead"
        )
    return TUNABLES[library]


def named_in(paths: Iterable[str]) -> list[str]:
    """Return the allocators among the files, in a fixed order."""
    paths = list(paths)
    return [name for name, one in ALLOCATORS.items() if any(map(one.path.search, paths))]
