"""All that a trial's sample holds, as one figure each over a window: the evidence of `diagnose`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from mydyno.model import Figures, Window
from mydyno.sample.derive import checkpoint_age, counted_once, cpus_online, opened
from mydyno.sample.probe_file import READ_AT, Column, Sampled, Values
from mydyno.sample.sampler import Where

_LEAST = 2  # readings that a rate needs
_STATES, _THREADS = "state.seconds", "state.threads"  # times in states; how many threads
_LOOKS = "state.looks"  # how often was looked


def figures(folder: Path, window: Window) -> Figures | None:
    """Return the figures of a trial's window, None where it was not sampled.

    Raises `ProbeFileError` for a file that is not one of the sampler's.
    """
    return next(iter(of_windows(folder, [window])), None)


def of_windows(folder: Path, windows: Sequence[Window]) -> list[Figures]:
    """Return the figures of a trial's windows, none where it was not sampled; as `figures`."""
    if not (found := opened(folder)):
        return []
    sampled, where, origin_s = found
    shifted = [Window(window.start_s + origin_s, window.end_s + origin_s) for window in windows]
    return [of_window(sampled, where, window) for window in shifted]


def of_window(sampled: Sampled, where: Where, window: Window) -> Figures:
    """Return the figures of a window in the time of the sample's head."""
    made = Figures({"window.seconds": window.end_s - window.start_s})
    there = (sampled.mono_s > window.start_s) & (sampled.mono_s <= window.end_s)
    online = cpus_online(sampled)[there]
    made.means["cpus"] = float(online.mean()) if online.size else float(sampled.head.cpus)
    made.means.update(where.caps)
    if where.link_bytes_per_s:
        made.means["net.capacity"] = where.link_bytes_per_s
    if age := checkpoint_age(sampled, ""):
        there = (age.at_s > window.start_s) & (age.at_s <= window.end_s) & ~np.isnan(age.values)
        if there.any():
            made.means["redo.age"] = float(age.values[there].mean())
    by_source: dict[str, list[int]] = {}
    for number, column in enumerate(sampled.columns):
        if column.name != READ_AT:
            by_source.setdefault(column.source, []).append(number)
    for source, numbers in by_source.items():
        stamps = sampled.find(READ_AT, source)
        times = sampled.mono_s if stamps is None else stamps
        inside = (times > window.start_s) & (times <= window.end_s)
        if inside.sum() >= _LEAST:
            columns = [sampled.columns[n] for n in numbers]
            values = _counted(columns, sampled.values[:, numbers])  # a copy, by its list of columns
            _add(made, columns, times[inside], values[inside], where)
    return made


def mean(several: Sequence[Figures]) -> Figures:
    """Return the mean figures of several trials; what one of them lacks is the others' mean.

    A state that threads were not seen in took no time.
    """
    return Figures(
        _mean([f.means for f in several]),
        _mean([f.spread for f in several]),
        _mean([f.rise for f in several]),
    )


def _mean(tables: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: fmean(_present(tables, name)) for name in names}


def _present(tables: Sequence[dict[str, float]], name: str) -> Iterator[float]:
    column, _, of = name.partition(":")
    looks = f"{_LOOKS}:{of.partition('/')[0]}" if column == _STATES else None
    for table in tables:
        if name in table:
            yield table[name]
        elif looks in table:
            yield 0.0


def _counted(columns: Sequence[Column], values: Values) -> Values:
    """Return these values, a state's time 0 from when there are threads of its class.

    Its column begins when it is first seen.  What connections did before the server first listed
    them is the time of other classes.
    """
    classes = {column.of: n for n, column in enumerate(columns) if column.name == _THREADS}
    for number, column in enumerate(columns):
        threads = classes.get(column.of.rpartition("/")[0]) if column.name == _STATES else None
        if threads is not None:
            unseen = np.cumsum(~np.isnan(values[:, number])) == 0
            values[unseen & ~np.isnan(values[:, threads]), number] = 0.0
    return values


def _add(
    made: Figures, columns: Sequence[Column], times: Values, values: Values, where: Where
) -> None:
    counts = np.array([column.kind == "counter" for column in columns])
    passed = np.diff(times)[:, None]
    steps = np.diff(counted_once(values), axis=0)
    with np.errstate(invalid="ignore"):
        rates = np.where(steps >= 0, steps / passed, np.nan)  # one that fell began again
    shown = np.where(counts[None, :], rates, values[1:])
    known = ~np.isnan(shown) & (passed > 0)
    weight, half = np.where(known, passed, 0.0), len(shown) // 2
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(known, shown * weight, 0.0).sum(axis=0) / weight.sum(axis=0)
        apart = (shown - _middle(shown, known)) ** 2
        spread = np.sqrt(_middle(apart, known, 1)) / means
        rise = (_middle(shown[half:], known[half:]) - _middle(shown[:half], known[:half])) / means
        enough = (known.sum(axis=0) > _LEAST) & (means > 0)
    names = [_name(column, where) for column in columns]
    for into, found, there in (
        (made.means, means, known.any(axis=0)),
        (made.spread, spread, enough),
        (made.rise, rise, enough & np.isfinite(rise)),
    ):
        into.update((names[i], float(found[i])) for i in np.flatnonzero(there))


def _middle(values: Values, known: NDArray[np.bool_], less: int = 0) -> Values:
    """Return the mean of each column's known values, with `less` degrees of freedom fewer."""
    return np.asarray(np.where(known, values, 0.0).sum(axis=0) / (known.sum(axis=0) - less))


def _name(column: Column, where: Where) -> str:
    own = where.disk if column.name.startswith("disk.") else ""
    own = where.interface if column.name.startswith("net.") else own
    return column.name if column.of in {"", own} else f"{column.name}:{column.of}"
