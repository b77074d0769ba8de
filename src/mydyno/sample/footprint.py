"""What a data set takes: bytes on its disk, what compression saves of them, time to fill it."""

import json
from contextlib import suppress
from pathlib import Path

from mydyno.host import Host, ask
from mydyno.model import Action, HostError, Metric, Probe

FILE = "storage.json"

_BLOCK_BYTES = 512  # what the kernel counts allocated space in, whatever the filesystem
_PATIENCE_S = 300.0  # a sync of what a load left dirty, on a slow disk
_UNITS = {
    "storage_bytes": "B",
    "storage_apparent_bytes": "B",
    "compression_ratio": "ratio",
    "prepare_s": "s",
}


def sizes(folder: Path) -> Probe[tuple[dict[str, float], str]]:
    """Return the probe for a folder's bytes, by metric, and for its type of filesystem.

    `storage_bytes` are allocated and `storage_apparent_bytes` are those that reading gives.
    """
    print_sizes = ("-type", "f", "-printf", "%s %b\\n")
    kind = ("-path", str(folder), "-exec", "stat", "-f", "-c", "%T", "{}", ";")
    find = (str(folder), *print_sizes, ",", *kind)
    # a file that goes meanwhile is no error
    return Probe(Action(("sh", "-c", 'find "$@"; :', "find", *find)), parse_sizes)


def parse_sizes(raw: bytes) -> tuple[dict[str, float], str]:
    """Return the bytes and the filesystem that `sizes` asked for."""
    kind, apparent, blocks = "", 0, 0
    for line in raw.decode(errors="replace").splitlines():
        size, _, count = line.partition(" ")
        if size.isdecimal() and count.isdecimal():
            apparent, blocks = apparent + int(size), blocks + int(count)
        else:
            kind = line
    allocated = float(blocks * _BLOCK_BYTES)
    return {"storage_bytes": allocated, "storage_apparent_bytes": float(apparent)}, kind


def compressed(kind: str, folder: Path) -> Probe[dict[str, float]] | None:
    """Return the probe for the compression ratio, or None for a filesystem that has none."""
    if kind == "btrfs":
        return Probe(Action(("compsize", "-b", "-x", str(folder))), parse_compsize)
    if kind == "zfs":
        get = ("zfs", "get", "-H", "-p", "-o", "value", "refcompressratio", str(folder))
        return Probe(Action(get), parse_zfs)
    return None


def parse_compsize(raw: bytes) -> dict[str, float]:
    """Return usage and ratio of the line TOTAL; the kernel's own count is before compression."""
    for line in raw.decode(errors="replace").splitlines():
        words = line.split()
        if words[:1] == ["TOTAL"] and all(word.isdecimal() for word in words[2:4]):
            usage, plain = float(words[2]), float(words[3])
            ratio = {"compression_ratio": plain / usage} if usage else {}
            return {"storage_bytes": usage, **ratio}
    return {}


def parse_zfs(raw: bytes) -> dict[str, float]:
    """Return the ratio of what a dataset refers to: a clone's own is of what it has written."""
    word = raw.decode(errors="replace").strip().removesuffix("x")
    return {"compression_ratio": float(word)} if word.replace(".", "", 1).isdecimal() else {}


def save(host: Host, data: Path, folder: Path, prepare_s: float = 0.0) -> None:
    """Write what the data set in `data` takes into a trial's folder; where it cannot, nothing.

    `prepare_s` is how long it took to fill it, once for all trials, 0 where that is not known.

    Costs one command, some milliseconds for a few hundred files; on btrfs and ZFS also a sync,
    because what is not written yet is not compressed yet.
    """
    with suppress(HostError, OSError):  # a trial is valid without
        found, kind = ask(host, sizes(data))
        if more := compressed(kind, data):
            host.run(Action(("sync", "-f", str(data))), timeout_s=_PATIENCE_S)
            with suppress(HostError):  # the tool may not be here
                saved = ask(host, more)
                found |= saved
        found |= {"prepare_s": prepare_s} if prepare_s else {}
        if kind:
            (folder / FILE).write_text(json.dumps(found), encoding="utf-8")


def metrics(folder: Path) -> tuple[Metric, ...]:
    """Return what `save` wrote, as metrics of the trial; nothing where it wrote nothing."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return tuple(
            Metric(name, found[name], unit) for name, unit in _UNITS.items() if name in found
        )
    return ()
