"""The strips' data as the page carries it: a key to every sampled trial, and all their codes."""

from array import array
from collections.abc import Sequence

import msgspec

from mydyno.report import units
from mydyno.report.payload import Scale, deltas, packed, scale, squeezed
from mydyno.report.resources import Resources, Shown
from mydyno.report.stripplot import legend
from mydyno.report.strips import Strip


class StripKey(msgspec.Struct, frozen=True):
    """How to read and draw one strip; `curves` are triples of a label, a colour and a dash."""

    id: str
    title: str
    unit: str
    stacked: bool
    scale: Scale
    curves: list[tuple[str, int, int]]


class TapeKey(msgspec.Struct, frozen=True):
    """Where one trial's samples of one strip lie: from code `at`, `length` to each of `tracks`."""

    at: int
    length: int
    start: float
    step: float
    tracks: list[int]
    top: float | None


class TrialKey(msgspec.Struct, frozen=True):
    """One trial: how it is drawn, its window, and by strip its tape and what is said of it."""

    name: str
    colour: int
    dash: int
    window: tuple[float, float]
    tapes: dict[str, TapeKey]
    says: dict[str, str]


class Key(msgspec.Struct, frozen=True):
    """The key to all codes."""

    strips: list[StripKey]
    trials: list[TrialKey]


def encoded(resources: Resources) -> tuple[str, str]:
    """Return the key (JSON) and the codes, each gzipped and in base64.

    A tape's tracks lie one after the other; each code is the difference from the one before it,
    and the first of a track from 0, as `payload` has them.
    """
    known = [view.strip for view in resources.strips]
    scales = {s.id: _scale(s, resources.shown) for s in known}
    codes = array("h")
    trials = [_trial(shown, known, scales, codes) for shown in resources.shown]
    key = Key([_strip(s, scales[s.id]) for s in known], trials)
    return squeezed(msgspec.json.encode(key)), packed(codes)


def _scale(strip: Strip, every: Sequence[Shown]) -> Scale:
    tapes = [shown.tapes[strip.id] for shown in every if strip.id in shown.tapes]
    return scale((track for tape in tapes for track in tape.tracks), log=strip.log)


def _strip(strip: Strip, fits: Scale) -> StripKey:
    drawn = [(s.name, s.colour, s.dash) for s in legend(strip)]
    curves = drawn or [(label, -1, 0) for _, label in strip.curves]
    return StripKey(strip.id, strip.title, strip.unit, strip.stacked, fits, curves)


def _trial(
    shown: Shown, known: Sequence[Strip], scales: dict[str, Scale], codes: "array[int]"
) -> TrialKey:
    tapes = {}
    for strip in known:
        if strip.id not in shown.tapes:
            continue
        tape = shown.tapes[strip.id]
        there = [i for i, track in enumerate(tape.tracks) if track]
        place = (len(codes), tape.length, tape.start_s, tape.step_s)
        tapes[strip.id] = TapeKey(*place, there, tape.top)
        for i in there:
            codes.extend(deltas(tape.tracks[i], scales[strip.id], tape.length))
    says = {strip.id: units.prose(shown.says[strip.id]) for strip in known}
    style = shown.style
    return TrialKey(style.name, style.colour, style.dash, shown.trial.window, tapes, says)
