"""The report as one HTML file; it needs no network and no server, and works without JavaScript."""

import base64
import gzip
import hashlib
import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from sys import byteorder

import jinja2
import msgspec
from markupsafe import Markup
from msgspec.structs import replace

from mydyno.diagnose import Diagnosis
from mydyno.report import statements, units, verdicts
from mydyno.report.crash import ordered
from mydyno.report.crash import sentence as cut_sentence
from mydyno.report.limits import views
from mydyno.report.page import Page, page
from mydyno.report.redact import Redactor, mapped, secrets_hidden, spec_without_literals
from mydyno.report.resources import Resources, SampledTrial
from mydyno.report.timeseries import Chart, Samples, drawable
from mydyno.stats.losses import Loss
from mydyno.stats.result import Result


def policy(style: str, scripts: Sequence[str]) -> str:
    """Return a content security policy: no loading, and only these texts by their hashes."""
    return "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


@cache
def environment() -> jinja2.Environment:
    """Return the templates: autoescaped, without control characters, strict on names."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: text(f"template/{name}")),
        autoescape=True,
        finalize=lambda shown: units.legible(shown) if type(shown) is str else shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["prose"] = units.prose
    made.globals |= {"units": units, "verdicts": verdicts, "statements": statements}
    return made


@cache
def text(path: str) -> str:
    """Return a file of this package."""
    return (files("mydyno.report") / path).read_text(encoding="utf-8")


def _hash(inlined: str) -> str:
    """Return a source expression that allows exactly this inline text."""
    digest = hashlib.sha256(inlined.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


_SHEETS = ("vendor/uPlot.min.css", "template/report.css", "template/narrow.css")
_SCRIPTS = ("drawing", "charts", "aligned", "page")
_SECTIONS = (
    ("verdicts", "Verdicts"),
    ("cuts", "Power cuts"),
    ("statements", "Statements"),
    ("parts", "Main effects of the changes"),
    ("changes", "Changes"),
    ("load", "Load"),
    ("time", "Over time"),
    ("limits", "Limits"),
    ("resources", "Resources"),
    ("distributions", "Distributions"),
    ("trials", "Trials"),
    ("host", "Host"),
    ("warnings", "Warnings"),
    ("method", "Method"),
)


def render_html(
    result: Result,
    limits: Sequence[Diagnosis] = (),
    cuts: Sequence[Loss] = (),
    *,
    names: bool = False,
) -> str:
    """Return the page; every name and message in it is escaped.

    `limits` are the diagnoses of its treatments, `cuts` what they lost in power cuts.  Without
    `names` it leaves out what identifies hosts and users, paths, addresses and literals of
    statements (`mydyno.report.redact`); passwords it leaves out in any case.
    Its content security policy forbids all loading and allows exactly its own two scripts and
    its one style sheet, by their hashes.
    """
    hidden = secrets_hidden if names else cache(Redactor(result.names))
    shown = page(mapped(result, secrets_hidden) if names else _redacted(result))
    seen = views(mapped(list(limits), hidden))
    style = "".join(text(name) for name in _SHEETS)
    # uPlot's licence asks to travel with every copy
    licence, chart_library = text("vendor/uPlot.LICENSE.txt"), text("vendor/uPlot.iife.min.js")
    library = f"/*!\n{licence.strip()}\n*/\n{chart_library}"
    scripts = (library, "".join(text(f"template/{name}.js") for name in _SCRIPTS))
    key, data = _payload(shown)
    optional = {"limits": seen, "cuts": cuts, "statements": shown.result.statements}
    return (
        environment()
        .get_template("report.html")
        .render(
            page=shown,
            result=shown.result,
            compared=shown.result.comparison,
            policy=policy(style, scripts),
            style=Markup(style),  # noqa: S704 - our own files
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
            sections=[s for s in _SECTIONS if optional.get(s[0], True)],
            limits=seen,
            cuts=ordered(mapped(list(cuts), hidden)),
            cut_sentence=cut_sentence,
            key=key,
            data=data,
            sampled=encoded_samples(shown.resources) if shown.resources else None,
        )
    )


def _redacted(result: Result) -> Result:
    """Return a result that can be sent to others."""
    redact = cache(Redactor(result.names))
    lines = [redact(line) for line in spec_without_literals(result.spec).split("\n")]
    return replace(mapped(replace(result, spec=""), redact), spec="\n".join(lines))


def _payload(shown: Page) -> tuple[Markup, str]:
    """Return the key to the charts' data, safe within a script element, and the data."""
    charts = [(view.id, view.chart) for work in shown.workloads for view in work.charts]
    keys, data = encoded(charts, [style.name for style in shown.styles])
    drawn = [(s.name, s.colour, s.dash, s.name in shown.shown) for s in shown.styles]
    encoded_key = msgspec.json.encode({"treatments": drawn, "charts": keys}).decode()
    return Markup(encoded_key.replace("<", "\\u003c").replace("&", "\\u0026")), data  # noqa: S704 - escaped


# the charts' data in the page: int16 deltas, gzipped, in base64, and a key to them
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


def encoded_samples(resources: Resources) -> tuple[str, str]:
    """Return the key (JSON) and the codes, each gzipped and in base64.

    The tracks of a series follow one another, each as in `encoded`.
    """
    panels = []
    for view in resources.panels:
        panel = view.panel
        found = [s.series[panel.id] for s in resources.shown if panel.id in s.series]
        fits = scale((track for one in found for track in one.tracks), log=panel.log)
        drawn = [(style.name, style.colour, style.dash) for style in view.legend]
        curves = drawn or [(label, -1, 0) for _, label in panel.curves]
        panels.append(PanelKey(panel.id, panel.title, panel.unit, panel.stacked, fits, curves))
    codes = array("h")
    scales = {panel.id: panel.scale for panel in panels}
    trials = [_trial(shown, scales, codes) for shown in resources.shown]
    return squeezed(msgspec.json.encode(SampledKey(panels, trials))), packed(codes)


def _trial(shown: SampledTrial, scales: Mapping[str, Scale], codes: "array[int]") -> TrialKey:
    keys = {}
    for id_, series in shown.series.items():
        there = [i for i, track in enumerate(series.tracks) if track]
        place = (len(codes), series.length, series.start_s, series.step_s)
        keys[id_] = SeriesKey(*place, there, series.top)
        for i in there:
            codes.extend(deltas(series.tracks[i], scales[id_], series.length))
    sentences = {id_: units.prose(shown.sentences[id_]) for id_ in scales}
    style = shown.style
    return TrialKey(style.name, style.colour, style.dash, shown.trial.window, keys, sentences)
