"""The lab's link: rates in and out, shares of a load's traffic, and reports of what it gives."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.lab.lab_link import parse as parse_gauge
from mydyno.model import SpecError
from mydyno.stack.link import (
    Link,
    bytes_per_s,
    delay_us,
    normal,
    parse,
    refuse_bad_link,
    resolved,
    share,
    text,
    traffic_key,
    unmeasured,
)
from mydyno.stack.protocol import split

SLOW = split({"db/net.address": "lab", "db/link.rate": "40%"})
GAUGE = Path(__file__).parents[1] / "golden" / "stack" / "link" / "iperf3"


@given(st.integers(100, 10**8))
def test_a_rate_is_written_and_read_back(kilobits):
    rate = text(kilobits * 1000)
    assert normal(rate) == rate
    assert bytes_per_s(rate) == pytest.approx(kilobits * 125)


@pytest.mark.parametrize("rate", ["", "fast", "1 gbit", "-1mbit", "99kbit", "1000gbit", "0mbit"])
def test_a_rate_that_cannot_be_is_refused(rate):
    with pytest.raises(SpecError, match=r"link\.rate"):
        normal(rate)


def test_shares():
    assert share("40%") == 0.4
    assert share("100mbit") is None
    assert share("%") is None


def test_a_share_becomes_a_rate_once_the_traffic_is_known():
    key = traffic_key(SLOW, "rw/16")
    assert resolved(SLOW, "rw/16", {key: 1e6}) == {
        "db/net.address": "lab",
        "db/link.rate": "3200kbit",
    }
    assert resolved(SLOW, "rw/16", {}) == {"db/net.address": "lab"}
    assert resolved(split({"db/link.rate": "1gbit"}), "rw/16", {}) == {"db/link.rate": "1gbit"}


def test_traffic_is_measured_once_for_all_shares_of_it():
    other = split({**SLOW, "db/link.rate": "80%"})
    todo = unmeasured([SLOW, other, split({"db/net.transport": "tcp"})], ["a/1", "b/1"], {})
    assert [workload for _, workload in todo.values()] == ["a/1", "b/1"]
    assert all("db/link.rate" not in settings for settings, _ in todo.values())
    assert unmeasured([SLOW], ["a/1"], dict.fromkeys(todo, 1.0)) == {}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"db/link.rate": "1gbit"}, "net.address"),
        ({**SLOW, "db/link.rate": "0%"}, "must be above 0"),
        ({**SLOW, "db/link.rate": "10MB"}, "write 1gbit"),
    ],
)
def test_rates_are_refused_before_any_trial(settings, words):
    with pytest.raises(SpecError, match=words):
        refuse_bad_link(split(settings))


@pytest.mark.parametrize(
    ("delay", "us"), [("500us", 500), ("2ms", 2000), ("0us", 0), ("0.5ms", 500)]
)
def test_a_delay_is_read_in_microseconds(delay, us):
    assert delay_us(delay) == us


@pytest.mark.parametrize("delay", ["", "500", "1s", "-1us", "2 ms", "1001ms", "125%"])
def test_a_delay_that_cannot_be_is_refused(delay):
    with pytest.raises(SpecError, match=r"link\.delay"):
        refuse_bad_link(split({"db/net.address": "lab", "db/link.delay": delay}))
    with pytest.raises(SpecError, match=r"link\.delay applies to the lab link only"):
        refuse_bad_link(split({"db/link.delay": delay}))


def test_a_delay_is_ordered_from_the_wire_and_only_where_there_is_one():
    wired = Link("labh", "lab", "labl", Path("/orders"))
    now = parse(b"delay 250\n[]\n[]\n")
    assert now == {"rate": "unlimited", "delay": "250us"}
    (change,) = wired.plan(now, {"delay": "2ms"})
    assert (change.before, change.after) == ("250us", "2000us")
    assert (change.action.argv[-1], change.action.stdin) == ("/orders/order", b"delay 2000\n")
    assert [c.after for c in wired.plan(now, {})] == ["0us"]
    assert wired.plan(now, {"delay": "0.25ms"}) == []
    with pytest.raises(SpecError, match="without a wire"):
        Link("labh", "lab", "labl").plan({"rate": "unlimited"}, {"delay": "2ms"})


def test_a_share_of_the_traffic_leaves_the_delay():
    far = split({**SLOW, "db/link.delay": "1ms"})
    assert resolved(far, "rw/16", {})["db/link.delay"] == "1ms"
    assert resolved(far, "rw/16", {traffic_key(far, "rw/16"): 1e6})["db/link.delay"] == "1ms"
    assert traffic_key(far, "rw/16") != traffic_key(SLOW, "rw/16")


def test_the_gauge_reads_what_iperf3_prints():
    full = (GAUGE / "down.json").read_bytes()
    received = json.loads(full)["end"]["sum_received"]["bits_per_second"]
    assert parse_gauge(full) == pytest.approx(received / 8 * 1514 / 1448)
    assert "unable to connect" in parse_gauge((GAUGE / "refused.json").read_bytes())
    assert "no report" in parse_gauge(full[: len(full) // 2])
    assert "no report" in parse_gauge(b"")
    assert "no end" in parse_gauge(b"{}")


@given(st.binary())
def test_the_gauge_reads_anything(raw):
    assert isinstance(parse_gauge(raw), float | str)
