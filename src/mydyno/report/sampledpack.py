"""The panels' data in the page: a key to every sampled trial, and all codes."""

from array import array
from collections.abc import Sequence

import msgspec

from mydyno.report import units
from mydyno.report.panelplot import legend
from mydyno.report.panels import Panel
from mydyno.report.payload import Scale, deltas, packed, scale, squeezed
from mydyno.report.resources import Resources, SampledTrial


class PanelKey(msgspec.Struct, frozen=True):
    """How to read and draw one panel; `curves` are triples of a label, a colour and a dash."""

    id: str
    title: str
    unit: str
    stacked: bool
    scale: Scale
    curves: list[tuple[str, int, int]]


class SeriesKey(msgspec.Struct, frozen=True):
    """Position of one trial's samples of one panel: from code `at`, `length` for each track."""

    at: int
    length: int
    start: float
    step: float
    tracks: list[int]
    top: float | None


class TrialKey(msgspec.Struct, frozen=True):
    """One trial: how it is drawn, its window, and by panel its series and its sentence."""

    name: str
    colour: int
    dash: int
    window: tuple[float, float]
    series: dict[str, SeriesKey]
    sentences: dict[str, str]


class SampledKey(msgspec.Struct, frozen=True):
    """The key to all codes."""

    panels: list[PanelKey]
    trials: list[TrialKey]


def encoded(resources: Resources) -> tuple[str, str]:
    """Return the key (JSON) and the codes, each gzipped and in base64.

    The tracks of a series follow one another; each code is the difference from the one before it,
    and the first of a track from 0, as `payload` has them.
    """
    known = [view.panel for view in resources.panels]
    scales = {s.id: _scale(s, resources.shown) for s in known}
    codes = array("h")
    trials = [_trial(shown, known, scales, codes) for shown in resources.shown]
    key = SampledKey([_panel(s, scales[s.id]) for s in known], trials)
    return squeezed(msgspec.json.encode(key)), packed(codes)


def _scale(panel: Panel, every: Sequence[SampledTrial]) -> Scale:
    found = [shown.series[panel.id] for shown in every if panel.id in shown.series]
    return scale((track for one in found for track in one.tracks), log=panel.log)


def _panel(panel: Panel, fits: Scale) -> PanelKey:
    drawn = [(s.name, s.colour, s.dash) for s in legend(panel)]
    curves = drawn or [(label, -1, 0) for _, label in panel.curves]
    return PanelKey(panel.id, panel.title, panel.unit, panel.stacked, fits, curves)


def _trial(
    shown: SampledTrial, known: Sequence[Panel], scales: dict[str, Scale], codes: "array[int]"
) -> TrialKey:
    keys = {}
    for panel in known:
        if panel.id not in shown.series:
            continue
        series = shown.series[panel.id]
        there = [i for i, track in enumerate(series.tracks) if track]
        place = (len(codes), series.length, series.start_s, series.step_s)
        keys[panel.id] = SeriesKey(*place, there, series.top)
        for i in there:
            codes.extend(deltas(series.tracks[i], scales[panel.id], series.length))
    sentences = {panel.id: units.prose(shown.sentences[panel.id]) for panel in known}
    style = shown.style
    return TrialKey(style.name, style.colour, style.dash, shown.trial.window, keys, sentences)
