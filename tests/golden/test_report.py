"""Golden reports: a stored result must give the stored text and the stored page."""

import os
import re
from pathlib import Path

import msgspec
import pytest

from mydyno.report.digestpage import render_digest
from mydyno.report.html import render_html
from mydyno.report.text import render_text
from mydyno.stats.result import Result

_HERE = Path(__file__).parent / "report"
_CASES = sorted(path.parent.name for path in _HERE.glob("*/result.json"))
_INLINED = re.compile(
    r"(<style>|<script>|<script type=\"text/plain\" id=\"[a-z-]+\">)[^<]*(?:<(?!/s)[^<]*)*"
)
_HASH = re.compile(r"&#39;sha256-[^&]*&#39;")


@pytest.mark.parametrize("case", _CASES)
def test_text(case):
    result = msgspec.json.decode((_HERE / case / "result.json").read_bytes(), type=Result)
    _same(_HERE / case / "want.txt", render_text(result, 80, f"runs/{case}/report.html"))


@pytest.mark.parametrize("case", _CASES)
def test_page(case):
    """The code and the packed data are left out: they have tests of their own."""
    result = msgspec.json.decode((_HERE / case / "result.json").read_bytes(), type=Result)
    page = _INLINED.sub(r"\1…", render_html(result))
    _same(_HERE / case / "want.html", _HASH.sub("'sha256-…'", page))


def test_digest_page():
    digest = msgspec.json.decode((_HERE / "digest" / "digest.json").read_bytes())
    page = _INLINED.sub(r"\1…", render_digest(digest, "slow.log"))
    _same(_HERE / "digest" / "want.html", _HASH.sub("'sha256-…'", page))


def _same(want: Path, got: str) -> None:
    if os.environ.get("MYDYNO_GOLDEN") == "write":
        want.write_text(got, encoding="utf-8")
    beside = want.with_name(want.name.replace("want", "got"))
    if got != want.read_text(encoding="utf-8"):
        beside.write_text(got, encoding="utf-8")
    else:
        beside.unlink(missing_ok=True)
    assert got == want.read_text(encoding="utf-8"), f"compare {want} with {beside}"
