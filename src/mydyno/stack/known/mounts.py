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
