"""The report as one HTML file; it needs no network and no server, and works without JavaScript."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import jinja2
import msgspec
from markupsafe import Markup

from mydyno.report import payload, units, verdicts
from mydyno.report.page import Page, page
from mydyno.report.payload import encoded
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
    made.globals |= {"units": units, "verdicts": verdicts}
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
    ("parts", "Main effects of the changes"),
    ("changes", "Changes"),
    ("time", "Over time"),
    ("resources", "Resources"),
    ("distributions", "Distributions"),
    ("trials", "Trials"),
    ("host", "Host"),
    ("warnings", "Warnings"),
    ("method", "Method"),
)


def render_html(result: Result) -> str:
    """Return the page; every name and message in it is escaped.

    Its content security policy forbids all loading and allows exactly its own two scripts and
    its one style sheet, by their hashes.
    """
    shown = page(result)
    style = "".join(text(name) for name in _SHEETS)
    scripts = (_licensed(), "".join(text(f"template/{name}.js") for name in _SCRIPTS))
    key, data = _payload(shown)
    return (
        environment()
        .get_template("report.html")
        .render(
            page=shown,
            result=result,
            compared=result.comparison,
            policy=policy(style, scripts),
            style=Markup(style),  # noqa: S704 - our own files
            scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
            sections=_SECTIONS,
            key=key,
            data=data,
            sampled=payload.encoded_samples(shown.resources) if shown.resources else None,
        )
    )


def _payload(shown: Page) -> tuple[Markup, str]:
    """Return the key to the charts' data, safe within a script element, and the data."""
    charts = [(view.id, view.chart) for work in shown.workloads for view in work.charts]
    keys, data = encoded(charts, [style.name for style in shown.styles])
    drawn = [(s.name, s.colour, s.dash, s.name in shown.shown) for s in shown.styles]
    encoded_key = msgspec.json.encode({"treatments": drawn, "charts": keys}).decode()
    return Markup(encoded_key.replace("<", "\\u003c").replace("&", "\\u0026")), data  # noqa: S704 - escaped


def _licensed() -> str:
    """Return uPlot with its licence, which asks to travel with every copy."""
    return (
        f"/*!\n{text('vendor/uPlot.LICENSE.txt').strip()}\n*/\n{text('vendor/uPlot.iife.min.js')}"
    )
