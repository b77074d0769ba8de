"""A sampler's file, as `mydyno report` and `mydyno inspect` show it; no campaign is needed."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from mydyno.model import SpecError
from mydyno.report.machine import MachineSample, means
from mydyno.sample.derive import DISK, NET, Table, series, tracks
from mydyno.sample.probe_file import ProbeFileError, Sampled, read
from mydyno.sample.sampler import Where
from mydyno.stats.result import Curve

_MOST_NOTES = 20


def machine(path: Path) -> tuple[MachineSample, list[Curve]]:
    """Return what a sampler's file holds, and its series in seconds since the first tick.

    Raises `SpecError` for a file that is missing, unreadable, or not one of the sampler's.
    """
    try:
        found = read(path)
    except ProbeFileError as error:
        raise SpecError(f"{error}; name a file that mydyno-probe sample has written") from error
    if not len(found.seqs):
        raise SpecError(f"{path}: holds no tick; sample for longer than one interval")
    disks, interfaces = _busy(found, DISK, "disk."), _busy(found, NET, "net.")
    where = Where(next(iter(disks), ""), next(iter(interfaces), ""))
    origin_s = float(found.mono_s[0])
    made = series(found, where, origin_s)
    curves = [Curve(s.name, s.unit, list(s.t_s), list(s.values)) for s in made]
    head, end = found.head, found.end
    began = float(found.wall_s[0])
    return MachineSample(
        file=path.name,
        host=head.host,
        began=_moment(began),
        duration_s=float(found.mono_s[-1] - found.mono_s[0]),
        interval_s=head.interval_ns * 1e-9,
        ticks=len(found.seqs),
        missed=end.missed if end else 0,
        ended=end.reason if end else "",
        processors=head.cpus,
        version=head.version,
        means=means(curves),
        disks=disks,
        interfaces=interfaces,
        notes=_notes(found),
    ), curves


def _moment(wall_s: float) -> str:
    with suppress(ValueError, OverflowError, OSError):  # a clock that was never set
        return datetime.fromtimestamp(wall_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return "an unknown time"


def _notes(found: Sampled) -> list[str]:
    """Return what the sampler noted, the first few."""
    lines = [
        " ".join(filter(None, (f"tick {n.seq}:", n.source, n.event, n.of, n.text)))
        for n in found.notes
    ]
    more = len(lines) - _MOST_NOTES
    return lines[:_MOST_NOTES] + ([f"{more} more notes"] if more > 0 else [])


def _busy(found: Sampled, table: Table, prefix: str) -> dict[str, dict[str, float]]:
    """Return the means of each device that did something, the busiest by its bytes first."""
    ways = [name for name in table if name.endswith("_bytes")]
    instances = dict.fromkeys(found.instances(ways[0]))
    named = {of: _means(found, table, of) for of in instances}
    busy = {of: sum(each.get(way, 0.0) for way in ways) for of, each in named.items()}
    ranked = sorted((of for of in named if busy[of] > 0 and of != "lo"), key=lambda of: -busy[of])
    return {
        of: {name.removeprefix(prefix): value for name, value in named[of].items()} for of in ranked
    }


def _means(found: Sampled, table: Table, of: str) -> Mapping[str, float]:
    curves: Sequence[Curve] = [
        Curve(name, unit, track.at_s[known].tolist(), track.values[known].tolist())
        for name, unit, track in tracks(table, found, of)
        if (known := ~np.isnan(track.at_s) & ~np.isnan(track.values)).any()
    ]
    return means(curves)
