"""What the digest of a slow log says: the probe's JSON as values."""

from collections.abc import Mapping

import msgspec


class Metric(msgspec.Struct, frozen=True):
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
    metrics: dict[str, Metric] = {}
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


class Part(msgspec.Struct, frozen=True):
    """A class's part of a window."""

    id: str
    events: int = 0
    query_time_s: float = 0.0


class Window(msgspec.Struct, frozen=True):
    """What ended in one stretch of time."""

    start: str
    end: str
    events: int = 0
    query_time_s: float = 0.0
    classes: list[Part] = []


class Digest(msgspec.Struct, frozen=True):
    """The whole digest, its classes in the order that was asked for."""

    digest: int
    summary: Summary
    classes: list[Class] = []
    windows: list[Window] = []


def read(digest: Mapping[str, object]) -> Digest:
    """Return the values of a digest's JSON; raises `ValueError` naming the place of a fault."""
    found = msgspec.convert(digest, Digest, strict=False)
    if found.digest != 1:
        raise ValueError(f"a digest of version {found.digest}: only version 1 is known")
    return found
