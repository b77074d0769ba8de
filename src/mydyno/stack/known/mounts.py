"""Which mount options took effect, as far as the kernel shows them, and how it spells them."""

import re

# What kernel 6.18 does not show because it is the default, tried on ext4, xfs and btrfs.
_SILENT = frozenset(
    {
        *("acl", "attr2", "auto", "auto_da_alloc", "barrier", "barrier=1", "commit=30", "commit=5"),
        *("compress=no", "datacow", "datasum", "defaults", "delalloc", "dioread_nolock"),
        *("errors=continue", "ikeep", "init_itable=10", "inode64", "inode_readahead_blks=32"),
        *("journal_checksum", "max_inline=2048", "noautodefrag", "nodiscard", "nofail"),
        *("noflushoncommit", "noikeep", "nolargeio", "norelatime", "nostrictatime"),
        *("treelog", "user_xattr"),
    }
)
_NEVER_SHOWN = frozenset({"thread_pool"})
_SPELT = {
    "barrier=0": "nobarrier",
    "compress": "compress=zlib:3",
    "compress-force": "compress-force=zlib:3",
    "compress-force=zlib": "compress-force=zlib:3",
    "compress-force=zstd": "compress-force=zstd:3",
    "compress=zlib": "compress=zlib:3",
    "compress=zstd": "compress=zstd:3",
    "dioread_lock": "nodioread_nolock",
    "discard=sync": "discard",
}
# Files are made with or without these; to those that are there already they come too late.
_SHAPING = frozenset({"compress", "compress-force", "nodatacow", "nodatasum"})
# The word that takes an option away on a remount, which leaves alone what it does not name.
_REMOVED_BY = {
    "": {
        **dict.fromkeys(("noatime", "strictatime"), "relatime"),
        "dirsync": "",
        "lazytime": "nolazytime",
        "mand": "nomand",
        "nodev": "dev",
        "nodiratime": "diratime",
        "noexec": "exec",
        "nosuid": "suid",
        "ro": "rw",
        "nosymfollow": "symfollow",
        "sync": "async",
    },
    "ext4": {
        "commit": "commit=5",
        "discard": "nodiscard",
        "grpid": "nogrpid",
        "inode_readahead_blks": "inode_readahead_blks=32",
        "init_itable": "init_itable=10",
        "max_batch_time": "max_batch_time=15000",
        "min_batch_time": "min_batch_time=0",
        "errors": "errors=continue",
        "noauto_da_alloc": "auto_da_alloc",
        "nobarrier": "barrier",
        "noblock_validity": "block_validity",
        "nodelalloc": "delalloc",
        "nodioread_nolock": "dioread_nolock",
        "noinit_itable": "init_itable=10",
    },
    "btrfs": {
        "autodefrag": "noautodefrag",
        "commit": "commit=30",
        "compress": "compress=no",
        "compress-force": "compress=no",
        "flushoncommit": "noflushoncommit",
        "max_inline": "max_inline=2048",
        "nobarrier": "barrier",
        "nodatacow": "datacow",
        "nodatasum": "datasum",
        "notreelog": "treelog",
    },
    "xfs": {},
}
_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30}
_SIZED = re.compile(r"(?P<name>\w+)=(?P<number>\d+)(?P<unit>[kmg])", re.IGNORECASE)


def shaping(options: str) -> str:
    """Return those of a mount's options that must hold when files are made (btrfs(5)), sorted."""
    chosen = {o.strip() for o in options.split(",") if o.strip().partition("=")[0] in _SHAPING}
    return ",".join(sorted(chosen))


def missing(now: str, want: str) -> list[str]:
    """Return the wanted options that a mount is without; both are lists with commas between.

    An option that is a default may be silent, unless its contrary is shown.
    """
    shown = {_plain(option) for option in now.split(",")}
    wanted = sorted({option.strip() for option in want.split(",") if option.strip()})
    return [option for option in wanted if not _there(option, shown)]


def removing(kind: str, option: str) -> str | None:
    """Return the word that takes a shown option away on a remount, None where none is known.

    It is empty for one that goes where a remount does not name it.
    """
    name = option.partition("=")[0]
    return {**_REMOVED_BY[""], **_REMOVED_BY.get(kind, {})}.get(name)


def spelt(option: str) -> str:
    """Return an option as the kernel shows it."""
    return _plain(option)


def silent(option: str) -> bool:
    """Return whether the kernel shows nothing of an option, for it is the default."""
    return option in _SILENT or option in {"atime", "strictatime", "defaults"}


def _there(option: str, shown: set[str]) -> bool:
    if option == "strictatime":  # the kernel's way to show it is to show neither
        return not {"noatime", "relatime"} & shown
    if option == "atime":
        return "noatime" not in shown
    if _plain(option) in shown or option.partition("=")[0] in _NEVER_SHOWN:
        return True
    return option in _SILENT and not any(_contrary(option, other) for other in shown)


def _contrary(option: str, other: str) -> bool:
    name, known = option.partition("=")[0], other.partition("=")[0]
    return known in {name, f"no{name}", name.removeprefix("no")}


def _plain(option: str) -> str:
    """Return an option as the kernel spells it, and a size in bytes."""
    spelt = _SPELT.get(option, option)
    if sized := _SIZED.fullmatch(spelt):
        return f"{sized['name']}={int(sized['number']) * _UNITS[sized['unit'].lower()]}"
    return spelt
