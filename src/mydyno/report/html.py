"""The report as one HTML file; it needs no network and no server, and works without JavaScript."""

import msgspec
from markupsafe import Markup

from mydyno.analyse.result import Result
from mydyno.report import sampledpack
from mydyno.report.offline import environment, policy, text
from mydyno.report.page import page
from mydyno.report.payload import encoded
from mydyno.report.views import Page

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
            sampled=sampledpack.encoded(shown.resources) if shown.resources else None,
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
