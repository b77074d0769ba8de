"""Histories of a production server: hours from Prometheus, or from a table as CSV."""

import csv
import json
import math
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mydyno.model import HostError, SpecError
from mydyno.stats.production import History

# What mysqld_exporter shows without performance_schema: statements at once over statements a second
# is the mean time of a statement (Little's law).
VALUE = (
    "avg_over_time(mysql_global_status_threads_running{{instance=~'{instance}'}}[1h]) / "
    "rate(mysql_global_status_questions{{instance=~'{instance}'}}[1h])"
)
LOAD = "rate(mysql_global_status_questions{{instance=~'{instance}'}}[1h])"
_STEP_S = 3600
_GAP_S = 60.0  # of a sampler that does not run: no part of an hour
_MOST = 10_000  # points of one question; Prometheus answers 11,000
_TRIES, _PAUSE_S, _TIMEOUT_S = 4, 0.5, 60.0
_LARGEST = 64 << 20  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Samples:
    """What a sampler saw of a server: times in seconds since the epoch, a value for each.

    `running` is ``Threads_running`` without the sampler's own, `questions` the counter.
    """

    wall_s: npt.NDArray[np.float64]
    running: npt.NDArray[np.float64]
    questions: npt.NDArray[np.float64]


def from_prometheus(url: str, value: str, load: str, begin_h: int, end_h: int) -> History:
    """Return the hours of two expressions, each of one series; an hour is that before its mark.

    Raises `SpecError` for an expression that is refused or gives no or several series, `HostError`
    where the server cannot be reached.
    """
    values = dict(_points(url, value, begin_h, end_h))
    loads = dict(_points(url, load, begin_h, end_h))
    return _history({hour: (v, loads[hour]) for hour, v in values.items() if hour in loads})


def _history(pairs: dict[int, tuple[float, float]]) -> History:
    """Return the hours whose value and load are numbers above 0: others are gaps."""
    rows = [(h, v, q) for h, (v, q) in sorted(pairs.items()) if _positive(v) and _positive(q)]
    hours, values, loads = zip(*rows, strict=True) if rows else ((), (), ())
    return History(np.array(hours, dtype=np.int64), np.array(values), np.array(loads))


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _points(url: str, query: str, begin_h: int, end_h: int) -> Iterator[tuple[int, float]]:
    for first in range(begin_h, end_h, _MOST):
        last = min(first + _MOST, end_h) - 1
        # what is measured over an hour is known at its end
        asked = {"query": query, "start": (first + 1) * _STEP_S, "end": (last + 1) * _STEP_S}
        text = urllib.parse.urlencode({**asked, "step": _STEP_S})
        found = _answered(f"{url.rstrip('/')}/api/v1/query_range?{text}", url, query)
        series = found.get("data", {}).get("result", [])
        if len(series) > 1:
            raise SpecError(f"{query}: gives {len(series)} series; select one instance")
        for at, value in series[0]["values"] if series else ():
            yield int(at) // _STEP_S - 1, float(value)


# A counter's fastest hour of a month, and how mysqld_exporter names those that it does not name
# like the server.
PEAK_DAYS = 30
_PEAK = "max_over_time(rate({name}{{{labels}}}[1h])[{days}d:1h])"
_LABELLED = {
    "innodb_buffer_pool_pages_flushed": (
        "mysql_global_status_buffer_pool_page_changes_total",
        "operation='flushed'",
    ),
}


def peaks(url: str, instance: str, counters: Sequence[str]) -> dict[str, float]:
    """Return the rate of each counter in its fastest hour of the last month; others are absent."""
    found: dict[str, float] = {}
    for counter in counters:
        name, label = _LABELLED.get(counter, (f"mysql_global_status_{counter}", ""))
        labels = ",".join(filter(None, (f"instance=~'{instance_label(instance)}'", label)))
        query = _PEAK.format(name=name, labels=labels, days=PEAK_DAYS)
        text = urllib.parse.urlencode({"query": query})
        answer = _answered(f"{url.rstrip('/')}/api/v1/query?{text}", url, query)
        series = answer.get("data", {}).get("result", [])
        if len(series) > 1:
            raise SpecError(f"{instance}: {len(series)} series have this instance; name one")
        if series and _positive(value := float(series[0]["value"][1])):
            found[counter] = value
    return found


def instance_label(text: str) -> str:
    """Return a value of the label instance; raise `SpecError` for one that ends the matcher."""
    if "'" in text or "\\" in text or "\n" in text:
        raise SpecError(f"{text!r}: is not a value of the label instance")
    return text


def _answered(address: str, url: str, query: str) -> dict[str, Any]:
    """Return the answer; one that fails by chance (5xx, a lost connection) is asked for again."""
    if not address.startswith(("http://", "https://")):
        raise SpecError(f"--prometheus {url}: write http://HOST:9090")
    problem = ""
    for attempt in range(_TRIES):
        time.sleep(_PAUSE_S * attempt**2)
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - above
                found = json.loads(answer.read(_LARGEST))
        except urllib.error.HTTPError as error:
            problem = _message(error)
            if error.code < 500:  # noqa: PLR2004 - the first code of a server's own failure
                raise SpecError(f"{query}: Prometheus refuses it: {problem}") from error
        except (OSError, ValueError) as error:
            problem = str(getattr(error, "reason", error))
        else:
            return found if isinstance(found, dict) else {}
    raise HostError(f"{url}: no answer after {_TRIES} tries: {problem}; check that it is reachable")


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(_LARGEST))["error"])[:200]
    except (ValueError, KeyError, TypeError, OSError):
        return f"{error.code} {error.reason}"


def from_samples(parts: Sequence[Samples]) -> History:
    """Return the hours of a server that a sampler has looked at; hours with half of it are gaps.

    The mean time of a statement is that of statements at once over statements a second.
    """
    sums: dict[int, npt.NDArray[np.float64]] = {}
    for part in parts:
        step_s, asked = np.diff(part.wall_s), np.diff(part.questions)
        seen = (step_s > 0) & (step_s < _GAP_S) & (asked >= 0) & np.isfinite(part.running[1:])
        for hour in np.unique(part.wall_s[1:][seen] // _STEP_S):
            mine = seen & (part.wall_s[1:] // _STEP_S == hour)
            rows = np.array([step_s, part.running[1:] * step_s, asked])
            sums[int(hour)] = sums.get(int(hour), np.zeros(3)) + rows[:, mine].sum(axis=1)
    full = {h: s for h, s in sums.items() if s[0] >= _STEP_S / 2 and s[2] > 0}
    return _history({h: (running / asked, asked / s) for h, (s, running, asked) in full.items()})


_COLUMNS = ("time", "value", "load")


def from_csv(path: Path) -> History:
    """Return the hours of a table with columns time, value and load; several of an hour are a mean.

    A time is seconds since the epoch, or ISO 8601, in UTC where it names no zone.  Raises
    `SpecError` with the line.
    """
    sums: dict[int, list[tuple[float, float]]] = {}
    number = 1
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (rows.fieldnames or ())]
            if missing:
                raise SpecError(f"{path}:1: no column {missing[0]!r}; name {', '.join(_COLUMNS)}")
            for row in rows:
                number = rows.line_num
                hour = int(_seconds(row["time"]) // _STEP_S)
                sums.setdefault(hour, []).append((float(row["value"]), float(row["load"])))
    except (TypeError, ValueError, OverflowError, csv.Error) as error:
        raise SpecError(f"{path}:{number}: {error}; write numbers as UTF-8 text") from error
    return _history({hour: _mean(pairs) for hour, pairs in sums.items()})


def _mean(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    values, loads = zip(*pairs, strict=True)
    return sum(values) / len(values), sum(loads) / len(loads)


def _seconds(text: str) -> float:
    return float(text) if text.replace(".", "", 1).isdigit() else seconds_of(text)


def seconds_of(text: str) -> float:
    """Return a moment in ISO 8601 as seconds since the epoch; without a zone it is UTC."""
    moment = datetime.fromisoformat(text.strip())
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
