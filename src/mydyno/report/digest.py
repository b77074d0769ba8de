"""The digest of a slow log as one HTML file that needs nothing else."""

from collections.abc import Mapping

from markupsafe import Markup

from mydyno.report import digestpage, slowlog
from mydyno.report.offline import environment, policy, text

_SHEETS = ("template/report.css", "template/narrow.css", "template/digest.css")


def render_digest(digest: Mapping[str, object], title: str) -> str:
    """Return the page of what `mydyno-probe digest --json` wrote; every text in it is escaped.

    Raises `ValueError` for what is not such a digest, naming the place of the fault.
    """
    found = slowlog.read(digest)
    style, script = "".join(text(name) for name in _SHEETS), text("template/sort.js")
    shown = (
        environment()
        .get_template("digest.html")
        .render(
            page=digestpage.page(found),
            digest=found,
            title=title,
            listed=digestpage.listed(found),
            policy=policy(style, [script]),
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own file
        )
    )
    return shown.encode("utf-8", "replace").decode()  # a lone surrogate could not be written
