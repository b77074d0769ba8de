"""The page of a digest: hostile text, exact sums, bounds."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from golden.report.digests import hostile, nothing, shop
from mydyno.report import digestpage, units
from mydyno.report.digestpage import ClassMetric, LogWindow, WindowShare, render_digest

_CLASS = {"id": "0123456789ABCDEF", "fingerprint": "select ?", "events": 1, "share": 1.0}
_EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'"


def test_hostile_text_stays_text():
    read = _Reading(render_digest(hostile(), f"</title>{_EVIL}"))
    assert read.tags.count("script") == 1
    assert "img" not in read.tags
    assert not any(name.startswith("on") for name in read.attributes)


def test_the_page_loads_nothing_and_styles_nothing_in_place():
    page = render_digest(shop(), "slow.log")
    assert "default-src &#39;none&#39;" in page
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", page)
    assert not re.search(r"url\(|@import|unsafe-| style=", page)


def test_characters_that_utf8_cannot_encode_are_replaced():
    assert "\ud800" in hostile()["classes"][0]["example"]["query"]
    render_digest(hostile(), "slow.log").encode()


def test_every_class_is_in_the_profile_and_below():
    read = _Reading(render_digest(shop(), "slow.log"))
    ids = {f"class-{c['id']}" for c in shop()["classes"]}
    assert ids == {value for value in read.ids if value.startswith("class-")}
    assert {f"#{id_}" for id_ in ids} <= read.links


def test_an_empty_log_is_still_a_page():
    page = render_digest(nothing(), "empty.log")
    assert "The log holds no statement." in page
    assert 'id="classes"' not in page


def test_another_version_is_refused():
    with pytest.raises(ValueError, match="version 2"):
        render_digest({"digest": 2, "summary": {}}, "x")
    with pytest.raises(ValueError, match=r"\$\.classes\[0\]"):
        render_digest({"digest": 1, "summary": {}, "classes": [{"id": 1}]}, "x")


def test_fields_that_are_not_known_yet_do_no_harm():
    render_digest({"digest": 1, "summary": {"new": 1}, "classes": [_CLASS | {"new": {}}]}, "x")


def test_thousands_of_classes_make_a_page_that_opens():
    every = [_CLASS | {"id": f"{i:016X}", "share": 0.0} for i in range(5000)]
    digest = {"digest": 1, "summary": {"events": 5000, "classes": 9000}, "classes": every}
    page = render_digest(digest, "x")
    assert len(page) < 2_000_000
    assert page.count("<article") == 200
    assert "7\N{NO-BREAK SPACE}000 more classes are not listed" in page


def test_a_statement_of_megabytes_is_cut_and_marked_as_cut():
    page = render_digest(
        {"digest": 1, "summary": {}, "classes": [_CLASS | {"fingerprint": "x" * 3_000_000}]}, "x"
    )
    assert len(page) < 200_000
    assert "(3\N{NO-BREAK SPACE}000\N{NO-BREAK SPACE}000 characters)" in page


def test_a_histogram_loses_no_event():
    fine = [(1.047**k, 1.047 ** (k + 1), 3) for k in range(-300, 40)]
    drawn = digestpage.histogram(ClassMetric(histogram=[(0.0, 1e-9, 5), *fine, (1.0, 2.0, 0)]))
    assert drawn is not None
    counts = [
        int(bar.label.rsplit(": ")[1].replace("\N{NO-BREAK SPACE}", "")) for bar in drawn.bars
    ]
    assert sum(counts) == 3 * 340 + 5
    assert all(0 <= bar.x <= 1000 and bar.width > 0 for bar in drawn.bars)
    assert digestpage.histogram(ClassMetric(histogram=[(0.0, 0.0, 7)])) is None


def test_windows_are_stacked_to_their_total_time():
    parts = [WindowShare("a", 30.0), WindowShare("b", 10.0), WindowShare("c", 5.0)]
    window = LogWindow("2026-03-02T08:00:00Z", "2026-03-02T08:01:00Z", 4, 50.0, parts)
    drawn = digestpage.windows([window], {"a": ("c1", "A"), "b": ("c2", "B")})
    assert drawn is not None
    labels = [bar.label.partition(", ")[2] for bar in drawn.bars]
    assert labels == ["A: 30 s", "B: 10 s", "all others: 10 s"]
    assert sum(bar.height for bar in drawn.bars) == pytest.approx(1000 * 50 / 60, abs=0.2)
    assert digestpage.windows([LogWindow("soon", "later", 1, 1.0)], {}) is None


def test_many_windows_are_taken_together():
    at = [f"2026-03-02T{h:02}:{m:02}:00Z" for h in range(24) for m in range(60)]
    every = [LogWindow(a, b, 1, 1.0, [WindowShare("a", 1.0)]) for a, b in pairwise(at)]
    drawn = digestpage.windows(every, {"a": ("c1", "A")})
    assert drawn is not None
    assert len(drawn.bars) <= 240
    assert drawn.bars[0].label == "00:00, A: 6 s"


def test_the_first_sentence_names_where_the_time_went():
    found = digestpage.read(shop())
    assert re.fullmatch(
        r"852.015 statements took 1\d\d min; three of 10 classes took \d\d % of it\.",
        digestpage.sentence(found),
    )


@pytest.mark.parametrize(
    ("seconds", "wanted"), [(0.034, "34 ms"), (416, "6.93 min"), (9000, "2.5 h"), (1e6, "278 h")]
)
def test_times_have_three_figures_whatever_their_size(seconds, wanted):
    assert units.span(seconds) == wanted


class _Reading(HTMLParser):
    """The elements, attributes, ids and links that a browser would see."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.ids, self.links = [], set(), set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids |= {value for name, value in attrs if name == "id"}
        self.links |= {value for name, value in attrs if name == "href"}
