"""The report as one HTML file that needs nothing else: no network, no server, no script even."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

import jinja2
import msgspec
from markupsafe import Markup

from mydyno.analyse.result import Result
from mydyno.report import units, verdicts
from mydyno.report.page import page
from mydyno.report.payload import encoded
from mydyno.report.views import Page

_SHEETS = ("vendor/uPlot.min.css", "template/report.css", "template/narrow.css")
_SECTIONS = (
    ("verdicts", "Verdicts"),
    ("changes", "Changes"),
    ("time", "Over time"),
    ("distributions", "Distributions"),
    ("trials", "Trials"),
    ("host", "Host"),
    ("warnings", "Warnings"),
    ("method", "Method"),
)


def render_html(result: Result) -> str:
    """Return the whole page; every name and message in it is escaped.

    Its content security policy forbids all loading and allows exactly its own two scripts and
    its one style sheet, by their hashes.
    """
    shown = page(result)
    style = "".join(_file(name) for name in _SHEETS)
    scripts = (_licensed(), _file("template/charts.js"))
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    key, data = _payload(shown)
    return (
        _environment()
        .get_template("report.html")
        .render(
            page=shown,
            result=result,
            compared=result.comparison,
            policy=policy,
            style=Markup(style),  # noqa: S704 - our own files
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
            sections=_SECTIONS,
            key=key,
            data=data,
        )
    )


def _payload(shown: Page) -> tuple[Markup, str]:
    """Return the key to the charts' data, safe within a script element, and the data."""
    charts = [(view.id, view.chart) for work in shown.workloads for view in work.charts]
    keys, data = encoded(charts, [style.name for style in shown.styles])
    drawn = [(s.name, s.colour, s.dash, s.name in shown.shown) for s in shown.styles]
    text = msgspec.json.encode({"treatments": drawn, "charts": keys}).decode()
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026")), data  # noqa: S704 - as said


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _file(f"template/{name}")),
        autoescape=True,
        finalize=lambda shown: units.legible(shown) if type(shown) is str else shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = units.prose
    environment.globals |= {"units": units, "verdicts": verdicts}
    return environment


@cache
def _file(path: str) -> str:
    return (files("mydyno.report") / path).read_text(encoding="utf-8")


def _licensed() -> str:
    """Return uPlot with its licence, which asks to travel with every copy."""
    return (
        f"/*!\n{_file('vendor/uPlot.LICENSE.txt').strip()}\n*/\n{_file('vendor/uPlot.iife.min.js')}"
    )


def _hash(text: str) -> str:
    """Return a source expression that allows exactly this inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
