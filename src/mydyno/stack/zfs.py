"""ZFS and the server: settings that tear pages elsewhere, and a dataset for the redo log."""

from collections.abc import Mapping, Sequence

from mydyno.model import Settings, SpecError
from mydyno.stack.known import normalise
from mydyno.stack.protocol import StackSettings, full_key

KIND = "zfs"  # of `fs.type`
LOG = "zfs.log."  # before a property of the redo log's own dataset
LOG_HOME = "innodb_log_group_home_dir"
LOG_FOLDER = "../log"  # beside the data directory, as in the article: .../data, .../log
_PAGE = 16384  # bytes; InnoDB's default page
_RECORD = 131072  # bytes; the default of recordsize
_UNPROTECTED = frozenset(("0", "detect_only"))  # values of innodb_doublewrite without repair
_WEAKER = {  # values of properties
    "sync": ("disabled",),
    "redundant_metadata": ("some", "none"),
    "checksum": ("off",),
}


def unsafe(name: str, settings: StackSettings) -> str:
    """Return why a treatment would tear pages, or an empty string.

    Without its doublewrite buffer InnoDB cannot repair a page of which a power cut wrote a part;
    only a filesystem that writes a page atomically makes it needless.
    """
    server, filesystem = settings.of("mysqld"), settings.of("fs")
    plain = normalise(server.get("innodb_doublewrite", "1")).casefold()
    if plain not in _UNPROTECTED:
        return ""
    kind = filesystem.get("type", "the filesystem found")
    if kind != KIND:
        return (
            f"{name}: innodb_doublewrite = {plain} belongs to ZFS; on {kind} a power cut tears "
            "pages that nothing can repair: leave it on there, or set fs.type = zfs"
        )
    page = _bytes(server, "innodb_page_size", _PAGE)
    record = _bytes(filesystem, "zfs.recordsize", _RECORD)
    if record < page:
        return (
            f"{name}: innodb_doublewrite = {plain} with recordsize {record} below the page size "
            f"{page}: such a page is written in pieces and may tear; use recordsize = {page}"
        )
    return ""


def torn_page_risks(treatments: Mapping[str, StackSettings]) -> Sequence[str]:
    """Return what is unsafe of a spec that has treatments on ZFS, a sentence each.

    Where no treatment is on ZFS, a buffer switched off is a plain loss of durability, which is
    judged as such (docs/reference/method.md).
    """
    if not any(settings.of("fs").get("type") == KIND for settings in treatments.values()):
        return ()
    messages = (unsafe(name, settings) for name, settings in treatments.items())
    return tuple(sentence for sentence in messages if sentence)


def protected(settings: StackSettings) -> bool:
    """Return whether a treatment is safe without its doublewrite buffer."""
    return settings.of("fs").get("type") == KIND and not unsafe("", settings)


def weaker(key: str, value: str) -> bool:
    """Return whether a property of ZFS may lose or corrupt what its default would keep."""
    plain = {"false": "off"}.get(value.lower(), value)
    return plain in _WEAKER.get(property_of(key), ())


def property_of(key: str) -> str:
    """Return the property that a bare key of `fs` sets, of the data's dataset or of the log's."""
    return key.removeprefix(LOG).removeprefix("zfs.")


def with_log_folder(settings: Settings, place: str) -> Settings:
    """Return a treatment's settings; where its redo log has a dataset, the server writes to it.

    Raise `SpecError` for a treatment that has the server write elsewhere.
    """
    if not any(key.startswith(full_key("fs", LOG)) for key in settings):
        return settings
    for key, value in settings.items():
        if key.replace("-", "_") == full_key("mysqld", LOG_HOME) and value != LOG_FOLDER:
            raise SpecError(f"{place}: {key}: fs.{LOG}… sets where the redo log is; leave it out")
    return {full_key("mysqld", LOG_HOME): LOG_FOLDER, **settings}


def _bytes(settings: Settings, key: str, default: int) -> int:
    plain = normalise(settings.get(key, ""))
    return int(plain) if plain.isdigit() else default
