"""Golden reports: a simulated campaign must give the stored text and the stored page.

`make golden` runs the campaigns and writes the files again; read the difference as code.
"""

import re
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from golden.report.campaigns import CASES, simulated
from golden.report.digests import small
from golden.rewrite import hold
from mydyno.report.digestpage import render_digest
from mydyno.report.html import render_html
from mydyno.report.text import render_csv, render_markdown, render_text
from mydyno.stats.result import Result

_HERE = Path(__file__).parent
_LONGEST = 75_000  # bytes of a golden file that a person may be asked to read
_INLINED = re.compile(
    r"(<style>|<script>|<script type=\"text/plain\" id=\"[a-z-]+\">)[^<]*(?:<(?!/s)[^<]*)*"
)
_HASH = re.compile(r"&#39;sha256-[^&]*&#39;")
_DRAWING = re.compile(r"(<svg[^>]*>).*?</svg>", re.DOTALL)
_RESOURCES = re.compile(r"<section[^>]*id=\"resources\".*?</section>", re.DOTALL)
_PAGES = sorted(set(CASES) - {"many"})  # its page is too long to read; a browser opens it


@cache
def _result(case: str) -> Result:
    with TemporaryDirectory() as folder:
        return simulated(case, Path(folder))


@pytest.mark.parametrize("case", CASES)
def test_text(case):
    hold(_HERE / "report" / case / "want.txt", render_text(_result(case), 80))


@pytest.mark.parametrize("case", ["failing", "hostile", "ladder"])
def test_what_is_pasted_elsewhere(case):
    hold(_HERE / "report" / case / "want.md", render_markdown(_result(case)))
    hold(_HERE / "report" / case / "want.csv", render_csv(_result(case).comparison))


@pytest.mark.parametrize("case", _PAGES)
def test_page(case):
    """The code and the packed data are left out: they have tests of their own."""
    page = _readable(render_html(_result(case)))
    if case in {"ladder", "sampled"}:  # the others show what a drawing is
        page = _DRAWING.sub(r"\1…</svg>", page)
    if case == "sampled":
        page = _RESOURCES.search(page)[0] + "\n"
    hold(_HERE / "report" / case / "want.html", page)


def test_digest_page():
    digest = msgspec.json.decode(msgspec.json.encode(small()))
    page = _readable(render_digest(digest, "slow.log"))
    hold(_HERE / "report" / "digest" / "want.html", page)


def _readable(page: str) -> str:
    return _HASH.sub("'sha256-…'", _INLINED.sub(r"\1…", page))


def test_a_person_can_read_each_golden_file():
    long = {
        str(path.relative_to(_HERE)): path.stat().st_size
        for path in _HERE.rglob("*")
        if path.is_file() and path.stat().st_size > _LONGEST
    }
    assert long == {}
