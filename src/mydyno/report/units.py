"""Formatting of numbers, the only place where base units are scaled, and of lines."""

import math
import re
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime

from mydyno.stats.result import Ends, Ratio

NOTHING = "\N{EN DASH}"  # what stands where there is no value
TIMES = "\N{MULTIPLICATION SIGN}"
_NUMBER_AND_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|(?:[kMG]?/|[µm]?)s|min|h|[KMGT]?i?B(?:/s)?|cores?|k?IOPS)(?!\w))"
)
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|[@-_])")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]+")
_SIZES = ("_size", "_capacity", "_bytes", "_length")  # endings of settings that are bytes
_MINUTE_S = 60.0
_HOUR_S = 3600.0
_MINUTES_FROM_S = 120.0  # below two minutes, seconds are more precise
_TENTHS_BELOW_H = 48.0
_NARROW = 0.05  # an interval this narrow needs a third decimal to be seen at all
_SI = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_BINARY = ((2.0**40, "Ti"), (2.0**30, "Gi"), (2.0**20, "Mi"), (2.0**10, "Ki"), (1.0, ""))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def quantity(value: float, unit: str) -> str:
    """Return a value in a base unit with three figures and a scaled unit: ``1.23 k/s``, ``34 ms``.

    Known units are ``s``, ``B``, ``B/s``, ``/s``, ``ratio``, ``cores`` and ``share``, a ratio in
    per cent; any other is scaled by thousands.
    """
    if not math.isfinite(value):
        return NOTHING
    if unit == "s":
        return _seconds(value)
    if unit in {"", "ratio"}:
        return _figures(value)
    if unit == "cores":
        return f"{_figures(round(value, 2))} cores"
    if unit == "share":
        return f"{_figures(100 * value)} %"
    steps = _BINARY if unit.startswith("B") else _SI
    factor, prefix = next((s for s in steps if _rounded(abs(value) / s[0]) >= 1), steps[-1])
    return f"{_figures(value / factor)} {prefix}{unit}"


def measurement(value: float, unit: str) -> str:
    """Return `quantity` with all its three figures: ``1.60 k/s``, so that a column lines up."""
    figures, space, rest = quantity(value, unit).partition(" ")
    missing = 3 - sum(c.isdigit() for c in figures.lstrip("-0."))
    if unit != "/s" or not space or value == 0 or missing <= 0:
        return f"{figures}{space}{rest}"
    point = "" if "." in figures else "."
    return f"{figures}{point}{'0' * missing} {rest}"


def duration(seconds: float) -> str:
    """Return a length of time for prose: ``48 s``, ``27 min``, ``3.4 h``."""
    if seconds < _MINUTES_FROM_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    hours = seconds / _HOUR_S
    return f"{hours:.1f} h" if hours < _TENTHS_BELOW_H else f"{hours:.0f} h"


def span(seconds: float) -> str:
    """Return a length of time with three figures whatever its size: ``34 ms``, ``6.93 min``."""
    if seconds < _MINUTES_FROM_S:
        return quantity(seconds, "s")
    if seconds < 2 * _HOUR_S:
        return f"{_figures(seconds / _MINUTE_S)} min"
    return f"{_figures(seconds / _HOUR_S)} h"


def moment(text: str) -> str:
    """Return an ISO 8601 time to the minute, in UTC; what is not such a time stays as it is."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at.tzinfo else text


def interval(ratio: Ratio) -> tuple[str, str, str]:
    """Return a ratio's estimate, low and high end, with as many decimals as its width needs."""
    narrow = ratio.high - ratio.low < _NARROW
    estimate, low, high = (_ratio(x, narrow=narrow) for x in (ratio.ratio, ratio.low, ratio.high))
    return estimate, low, high


def bracketed(ratio: Ratio, decimals: int) -> str:
    """Return a ratio with its interval: ``1.31 [1.22..1.41]``."""
    estimate, low, high = (f"{x:.{decimals}f}" for x in (ratio.ratio, ratio.low, ratio.high))
    return f"{estimate} [{low}..{high}]"


def times(ratio: float) -> str:
    """Return a bare ratio with its sign, as in 1.92 times."""
    return f"{_ratio(ratio, narrow=False)}{TIMES}"


def share(value: float) -> str:
    """Return a ratio from 0 to 1 as a percentage: ``99.9 %``."""
    return f"{100 * value:.6g} %"


def name(metric: str) -> str:
    """Return a metric's name in words: ``latency_p99_s`` is ``p99 latency``."""
    known = {
        "tps": "throughput",
        "iops": "I/O operations",
        "qps": "queries",
        "storage_bytes": "size on disk",
        "prepare_s": "time to fill",
        "replica_lag_s": "lag of the replica",
        "replica_speed_ratio": "speed of the replica",
        "unfairness_ratio": "unfairness of connections",
    }
    if metric.endswith("_logsd"):
        return f"spread of {name(metric.removesuffix('_logsd'))}"
    if metric.startswith("latency_"):
        return f"{metric.removeprefix('latency_').removesuffix('_s')} latency"
    return known.get(metric, metric.replace("_", " "))


def names(metrics: str) -> str:
    """Return metrics that are separated by commas in words: ``tps, iops``."""
    return listed([name(metric.strip()) for metric in metrics.split(",")])


def heading(metric: str) -> str:
    """Return a metric's name to begin a line with; `p99` keeps its small letter."""
    text = name(metric)
    percentile = text[:1] == "p" and text[1:2].isdigit()
    return text if percentile else text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return `text` with a capital to begin it and a full stop to end it."""
    capital = text[:1].upper() + text[1:]
    return capital if not capital or capital.endswith((".", "!", "?")) else f"{capital}."


def setting(key: str, value: str) -> str:
    """Return the scaled size that a setting's raw bytes stand for, or nothing: ``512 MiB``."""
    if not (value.isdecimal() and key.endswith(_SIZES)):
        return ""
    size = int(value)
    return quantity(size, "B") if size and size % 2**20 == 0 else ""


def prose(text: str) -> str:
    """Return `text` with each number tied to its unit, so that no line breaks between them."""
    return _NUMBER_AND_UNIT.sub("\N{NO-BREAK SPACE}", text)


def legible(text: str) -> str:
    """Return `text` without terminal escapes and other control characters but line ends."""
    return _CONTROL.sub(" ", _ESCAPE.sub("", text))


def number(value: float) -> str:
    """Return a count in full, as ``1 234 567``, or a mean below 100 with three figures."""
    if not math.isfinite(value):
        return NOTHING
    if abs(value) < 100 and value != int(value):  # noqa: PLR2004 - three figures
        return _figures(value)
    return f"{round(value):,}".replace(",", "\N{NO-BREAK SPACE}")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 block``, ``12 trials``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def measured(trials: int, ends: Ends) -> str:
    """Return how many trials were measured, and of how many where some were lost: ``2 of 8``."""
    return f"{trials} of {ends.trials}" if ends.lost else str(trials)


def listed(words: Sequence[str]) -> str:
    """Return words as English lists them: ``a, b and c``."""
    if len(words) < 2:  # noqa: PLR2004 - a list of two needs its "and"
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _seconds(value: float) -> str:
    if abs(value) >= _MINUTES_FROM_S:
        return duration(value)
    if value == 0:
        return "0 s"
    factor, unit = next((s for s in _SECONDS if _rounded(abs(value) / s[0]) >= 1), _SECONDS[-1])
    return f"{_figures(value / factor)} {unit}"


def _rounded(value: float) -> float:
    """Return `value` to three figures, so that 999.9 is scaled as the 1000 it is shown as."""
    return float(f"{value:.3g}")


def _figures(value: float) -> str:
    """Return three figures, never in exponents: ``1.23``, ``34``, ``712``."""
    rounded = _rounded(value)
    if abs(rounded) >= 100 or rounded == int(rounded):  # noqa: PLR2004 - no fraction left
        return f"{rounded:.0f}"
    return f"{rounded:.6f}".rstrip("0")


def _ratio(value: float, *, narrow: bool) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else NOTHING
    if value >= 10:  # noqa: PLR2004 - tenfold and more needs no hundredths
        return f"{value:.1f}"
    return f"{value:.3f}" if narrow or value < 0.1 else f"{value:.2f}"  # noqa: PLR2004 - as above


def wrapped(text: str, width: int, indent: str = "", head: str = "") -> list[str]:
    """Return a text in lines, words in one piece; its own spaces are columns, and stay."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=head,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
