"""The digest of a slow log: the JSON of `mydyno-probe` as values."""

from collections.abc import Mapping

import msgspec


class ClassMetric(msgspec.Struct, frozen=True):
    """One attribute's values over the events of a class; the unit is in the attribute's name.

    `histogram` holds ``(low, high, count)``.
    """

    count: int = 0
    sum: float = 0.0
    mean: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    histogram: list[tuple[float, float, int]] = []


class Example(msgspec.Struct, frozen=True):
    """The slowest statement of a class."""

    query: str = ""
    query_time_s: float = 0.0
    at: str | None = None


class Class(msgspec.Struct, frozen=True):
    """The statements of one fingerprint; `share` is of all query time."""

    id: str
    fingerprint: str
    verb: str = ""
    events: int = 0
    events_weighted: int = 0
    share: float = 0.0
    first_seen: str | None = None
    last_seen: str | None = None
    metrics: dict[str, ClassMetric] = {}
    flags: dict[str, int] = {}
    users: dict[str, int] = {}
    hosts: dict[str, int] = {}
    databases: dict[str, int] = {}
    example: Example | None = None


class File(msgspec.Struct, frozen=True):
    """A log that was read."""

    name: str
    bytes: int = 0


class Summary(msgspec.Struct, frozen=True):
    """Exact totals of what was read."""

    events: int = 0
    events_weighted: int = 0
    query_time_s: float = 0.0
    lock_time_s: float = 0.0
    rows_sent: int = 0
    rows_examined: int = 0
    classes: int = 0
    bytes: int = 0
    first_seen: str | None = None
    last_seen: str | None = None
    files: list[File] = []
    oddities: dict[str, int] = {}
    filtered: int = 0


class WindowShare(msgspec.Struct, frozen=True):
    """A class's share of a window."""

    id: str
    events: int = 0
    query_time_s: float = 0.0


class LogWindow(msgspec.Struct, frozen=True):
    """The statements that ended in one interval of time."""

    start: str
    end: str
    events: int = 0
    query_time_s: float = 0.0
    classes: list[WindowShare] = []


class Digest(msgspec.Struct, frozen=True):
    """The digest, its classes in the requested order."""

    digest: int
    summary: Summary
    classes: list[Class] = []
    windows: list[LogWindow] = []


def read(digest: Mapping[str, object]) -> Digest:
    """Return the values of a digest's JSON; raises `ValueError` naming the place of a fault."""
    found = msgspec.convert(digest, Digest, strict=False)
    if found.digest != 1:
        raise ValueError(
            f"unknown digest version {found.digest}; use the mydyno-probe of this version (1)"
        )
    return found
