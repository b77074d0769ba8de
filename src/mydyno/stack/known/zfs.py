"""The server settings that belong to ZFS and are unsafe on other filesystems."""

from collections.abc import Iterable, Mapping, Sequence

from mydyno.model import Settings, unknown_value
from mydyno.stack.known.values import normalise

_PAGE = 16384  # bytes; InnoDB's default page
_RECORD = 131072  # bytes; the default of recordsize
_UNPROTECTED = frozenset(("0", "detect_only"))  # values of innodb_doublewrite without repair
_BYPASSED = (2, 3)  # from this version of ZFS on, O_DIRECT goes past the ARC
_KEY = "fs.zfs."
# What may be set of a pool and of a filesystem (zpoolprops(7), zfsprops(7) of ZFS 2.3).
_PROPERTIES = frozenset(
    {
        *("altroot", "ashift", "autoexpand", "autoreplace", "autotrim", "bootfs", "cachefile"),
        *("comment", "compatibility", "dedup_table_quota", "delegation", "failmode"),
        *("listsnapshots", "multihost", "version"),
        *("aclinherit", "aclmode", "acltype", "atime", "canmount", "casesensitivity", "checksum"),
        *("compression", "context", "copies", "dedup", "defcontext", "devices", "direct"),
        *("dnodesize", "encryption", "exec", "filesystem_limit", "fscontext", "keyformat"),
        *("keylocation", "logbias", "longname", "mlslabel", "mountpoint", "nbmand"),
        *("normalization", "overlay", "pbkdf2iters", "prefetch", "primarycache", "quota"),
        *("readonly", "recordsize", "redundant_metadata", "refquota", "refreservation"),
        *("relatime", "reservation", "rootcontext", "secondarycache", "setuid", "sharenfs"),
        *("sharesmb", "snapdev", "snapdir", "snapshot_limit", "special_small_blocks", "sync"),
        *("utf8only", "volmode", "volsize", "vscan", "xattr", "zoned"),
    }
)


def companions(version: tuple[int, ...], flavour: str) -> Settings:
    """Return what a server on ZFS should be set to besides, by the version of ZFS.

    Whole pages are written copy-on-write, so that nothing can be torn (OpenZFS documentation,
    "Workload Tuning: InnoDB"): the doublewrite buffer is not needed.  Neighbours are never beside
    each other, and native AIO is not native there.  Until 2.2 O_DIRECT was taken and ignored, or
    refused by 0.7; since 2.3 it passes the ARC by, which `direct=disabled` prevents.
    """
    found = {
        "innodb_doublewrite": "0",
        "innodb_use_native_aio": "0",
        "innodb_flush_neighbors": "0",
    }
    if flavour == "mariadb":
        found["innodb_use_atomic_writes"] = "0"
    if version < _BYPASSED:
        found["innodb_flush_method"] = "fsync"
    return found


def unsafe(name: str, settings: Settings) -> str:
    """Return why a treatment of full keys would tear pages, or an empty string.

    Without its doublewrite buffer InnoDB cannot repair a page of which a power cut wrote a part;
    only a filesystem that writes a whole page or nothing makes it needless.
    """
    plain = normalise(settings.get("db/mysqld.innodb_doublewrite", "1")).casefold()
    if plain not in _UNPROTECTED:
        return ""
    if settings.get("db/fs.type") != "zfs":
        kind = settings.get("db/fs.type", "the filesystem found")
        return (
            f"{name}: innodb_doublewrite = {plain} belongs to ZFS; on {kind} a power cut tears "
            "pages that nothing can repair: leave it on there, or set fs.type = zfs"
        )
    page = _bytes(settings, "db/mysqld.innodb_page_size", _PAGE)
    record = _bytes(settings, "db/fs.zfs.recordsize", _RECORD)
    if record < page:
        return (
            f"{name}: innodb_doublewrite = {plain} with recordsize {record} below the page size "
            f"{page}: such a page is written in pieces and may tear; use recordsize = {page}"
        )
    return ""


def torn_page_risks(treatments: Mapping[str, Settings]) -> Sequence[str]:
    """Return what is unsafe of a spec that has treatments on ZFS, a sentence each.

    Where no treatment is on ZFS, a buffer switched off is a plain loss of durability, which is
    judged as such (FACTS 6.3).
    """
    if not any(settings.get("db/fs.type") == "zfs" for settings in treatments.values()):
        return ()
    messages = (unsafe(name, settings) for name, settings in treatments.items())
    return tuple(sentence for sentence in messages if sentence)


def misspelt(keys: Iterable[str]) -> str:
    """Return what a property among `keys` may have been meant to be, or an empty string.

    A name that is like none of those known is left to the host's ZFS, which may be newer.
    """
    for key in keys:
        prop = key.removeprefix("db/").removeprefix(_KEY)
        if _KEY in key and prop not in _PROPERTIES:
            known = sorted(_PROPERTIES)
            message = unknown_value(prop, known, "ZFS property", prefix="fs.zfs.", listed=False)
            if "did you mean" in message:
                return message
    return ""


def protected(settings: Settings) -> bool:
    """Return whether a treatment of full keys is safe without its doublewrite buffer."""
    return settings.get("db/fs.type") == "zfs" and not unsafe("", settings)


def _bytes(settings: Settings, key: str, default: int) -> int:
    plain = normalise(settings.get(key, ""))
    return int(plain) if plain.isdigit() else default
