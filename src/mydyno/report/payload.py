"""The charts' data in the page: int16 deltas, gzipped, in base64, and a key to them."""

import base64
import gzip
import math
from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from sys import byteorder

import msgspec

from mydyno.report.curves import Chart, Samples, drawable

_TOP = 32766  # so that the difference of any two codes, -1 for a gap included, fits 16 bits
_GAP = -1


class Scale(msgspec.Struct, frozen=True):
    """What a code means: ``low + code/32766 * (high - low)``, in logarithms where `log`."""

    log: bool
    low: float
    high: float


class ChartKey(msgspec.Struct, frozen=True):
    """How to read and draw one chart; `tracks` are pairs of a treatment's index and a block.

    `warm` is where the first and the last warm-up ended and `end` where the last window did.
    """

    id: str
    unit: str
    step: float
    length: int
    scale: Scale
    warm: tuple[float, float]
    end: float
    tracks: list[tuple[int, int]]


def encoded(
    charts: Sequence[tuple[str, Chart]], treatments: Sequence[str]
) -> tuple[list[ChartKey], str]:
    """Return the keys of the charts, by id, and all their codes in one base64 text.

    Codes lie chart by chart, track by track, `length` to a track, each the difference from the
    one before it.  16 bits show 1 part in 32766 of a chart's range: finer than any screen.
    """
    keys: list[ChartKey] = []
    codes = array("h")
    for id_, chart in charts:
        fits = scale([t.samples for t in chart.tracks], log=chart.log)
        tracks = [(treatments.index(t.treatment), t.block) for t in chart.tracks]
        about = (id_, chart.unit, chart.step_s, chart.length, fits, chart.warm, chart.end)
        keys.append(ChartKey(*about, tracks))
        for track in chart.tracks:
            codes.extend(deltas(track.samples, fits, chart.length))
    return keys, packed(codes)


def packed(codes: "array[int]") -> str:
    """Return 16-bit codes, least significant byte first, gzipped, as base64."""
    if byteorder == "big":
        codes.byteswap()
    return squeezed(codes.tobytes())


def squeezed(data: bytes) -> str:
    """Return bytes gzipped, as base64."""
    return base64.b64encode(gzip.compress(data, mtime=0)).decode()


def scale(tracks: Iterable[Samples], *, log: bool) -> Scale:
    """Return the scale that all samples of these tracks fit on."""
    drawn = [s for t in tracks for s in t if drawable(s, log=log)]
    low, high = min(drawn, default=1.0), max(drawn, default=1.0)
    if log:
        return Scale(log=True, low=low, high=max(high, low * 1.001))
    return Scale(log=False, low=min(low, 0.0), high=max(high, 1e-9))


def deltas(samples: Samples, fits: Scale, length: int) -> list[int]:
    """Return the differences of the codes of `length` samples, those beyond the end as gaps."""
    codes = [_code(s, fits) for s in samples] + [_GAP] * (length - len(samples))
    return [b - a for a, b in pairwise([0, *codes])]


def _code(sample: float | None, scale: Scale) -> int:
    if not drawable(sample, log=scale.log):
        return _GAP
    if scale.log:
        part = math.log(sample / scale.low) / math.log(scale.high / scale.low)
    else:
        part = (sample - scale.low) / (scale.high - scale.low)
    return round(_TOP * part)
