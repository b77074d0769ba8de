"""The page and the text as wholes: what must hold for any result."""

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from mydyno.model import Finding
from mydyno.report.html import render_html
from mydyno.report.text import render_text
from mydyno.stats.result import (
    Comparison,
    Curve,
    Estimate,
    Part,
    Ratio,
    Result,
    Row,
    Together,
    TrialView,
)

_EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\" '"


def test_hostile_text_stays_text():
    """Nothing that came from outside opens an element, in markup, attribute or script data."""
    read = _Reading(render_html(_result(_EVIL)))
    quiet = _Reading(render_html(_result("plain")))
    assert read.tags == quiet.tags
    assert not any(name.startswith("on") for name in read.attributes)


def test_hostile_names_of_sampled_trials_stay_text():
    read, quiet = (_Reading(render_html(_sampled(name))) for name in (_EVIL, "plain"))
    assert read.tags == quiet.tags
    assert not any(name.startswith("on") for name in read.attributes)
    assert "optgroup" in read.tags


def test_a_missing_sampler_is_reported_in_one_sentence():
    assert "These trials were not sampled" in render_html(_result("A"))
    assert "Not recorded in any trial: p99 latency; Processors;" in render_html(_sampled("A"))


def test_a_page_without_a_baseline_compares_with_none():
    found = replace(_sampled("A"), comparison=replace(_result("A").comparison, winner=None))
    small = "<small>keep the baseline</small>"
    phrases = (small, "small numbers are ratios to STOCK", "the grey line of STOCK")
    page = render_html(found)
    assert all(phrase in page for phrase in phrases)
    rows = [row for row in found.comparison.treatments if row.name != "STOCK"]
    page = render_html(replace(found, comparison=replace(found.comparison, treatments=rows)))
    assert not any(phrase in page for phrase in phrases)
    assert "<small>a ranking</small>" in page


def test_the_page_loads_nothing():
    page = render_html(_result("A"))
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", page)
    assert not re.search(r"url\(|@import|unsafe-", page)
    assert " style=" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_the_licence_travels_with_the_library():
    assert "Copyright (c) 2022 Leon Sorokin" in render_html(_result("A"))


def test_a_result_with_nothing_in_it_is_still_a_page():
    compared = Comparison("c", "tps", "STOCK", 0.0, None, {}, [], "Nothing was run.", [])
    empty = Result(compared, "", "", "", "", "", [], {}, [], {}, 0)
    assert "Nothing was run." in render_html(empty)
    assert render_text(empty, 80).startswith("Nothing was run.\n")


def test_the_cause_is_reported_in_page_and_text():
    page, text = render_html(_result("A")), _flat(_result("A"))
    assert "Main effects of the changes" in page
    assert "interaction" in page
    assert "1.10 [1.00..1.20] A = A, not A" in text
    assert "A = A with b = 1, interaction" in text


def test_weaker_durability_is_reported():
    result = _result("A", durability="weaker")
    assert render_html(result).count("weaker</strong>") >= 1
    assert "A crash" not in render_text(result, 80)
    assert "WEAKER: a crash may lose transactions that A reported as committed." in _flat(result)


def test_a_failed_trial_shows_its_error():
    page = render_html(_result("A"))
    assert "<pre>mysqld died\nlast words</pre>" in page
    assert "1 trial that did not end well is not drawn" in page


def test_a_long_section_of_facts_is_folded():
    facts = {"server": {f"variable {i}": "1" for i in range(600)}}
    page = render_html(replace(_result("A"), facts=facts, protocol="fixed: 60 s"))
    assert "<summary>600 facts</summary>" in page
    assert "<h3>Server</h3>" in page
    assert "<p>Fixed: 60\N{NO-BREAK SPACE}s.</p>" in page


def test_every_verdict_has_a_word_and_a_symbol():
    for word, symbol in (("adopt", "✓"), ("reject", "✗"), ("unstable", "~"), ("new", "·")):
        page = render_html(_result("A", verdict=word))
        assert f'<span aria-hidden="true">{symbol}</span> {word}</span>' in page


@pytest.mark.parametrize("width", [76, 80, 100, 160])
@pytest.mark.parametrize("name", ["A", "KERN+MYSQL+JE", "n" * 40])
def test_text_keeps_within_the_terminal(width, name):
    shown = render_text(_result(name), width)
    assert max(map(len, shown.splitlines())) <= width
    assert name in shown


def test_text_that_fits_names_the_workload_in_the_row():
    assert re.search(r"^A +rw/16 +711 /s +1\.92 \[1\.71\.\.2\.15\]", _text(120), re.MULTILINE)
    assert "Workload rw/16" in _text(72)


def test_text_moves_no_cursor():
    assert "\x1b" not in render_text(_result("a\x1b[2Jb"), 80)


def test_warnings_name_what_they_are_about():
    assert "! A, rw/16: Few blocks: add one." in _text(80)


def _text(width):
    return render_text(_result("A"), width)


def _flat(result):
    return " ".join(render_text(result, 80).split())


def _result(name, verdict="adopt", durability="same"):
    about = ("rw/16", verdict, durability, 1, Estimate(711.2, "/s"), Ratio(1.92, 1.71, 2.15))
    guards = {"latency_p99_s": Ratio(0.5, 0.4, 0.6)}
    rows = [
        Row("STOCK", "rw/16", "baseline", "same", 1, Estimate(371.0, "/s"), None, {}, []),
        Row(name, *about, guards, findings=[Finding("recorded", {"text": "Few blocks: add one."})]),
    ]
    winners = {"rw/16": name}
    ratio = Ratio(1.1, 1.0, 1.2)
    parts = [Part("rw/16", name, name, name, ratio)]
    together = [Together("rw/16", {name: name, "b": "1"}, ratio)]
    text = ("It is so.", [name], parts, together, name)
    compared = Comparison(name, "tps", "STOCK", 60.0, name, winners, rows, *text)
    message = "mysqld died\nlast words"
    lost = TrialView(1, name, "rw/16", 0, "failed", message, (0.0, 0.0), {}, [])
    facts = {name: {name: name}}
    return Result(compared, name, name, name, name, name, [lost], {}, [], facts, 1, 0.03)


def _sampled(name):
    seconds = [1.0, 2.0, 3.0]
    work, queue = (Curve(n, "", seconds, [1.0, 2.0, 3.0]) for n in ("tps", "disk.queue"))
    about = ("ok", "", (1.0, 3.0), {"tps": 1.0}, [work], [queue])
    return replace(_result(name), trials=[TrialView(1, name, "rw/16", 0, *about)])


class _Reading(HTMLParser):
    """The elements and attributes that a browser would see."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes = [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
