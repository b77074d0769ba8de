"""The command workload: every line is a report, or an error names the line."""

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.loads.command import parse
from mydyno.loads.histogram import checked, recorded
from mydyno.model import Interval, Overhead
from mydyno.stats.estimates import merged

HISTOGRAM, _ = recorded([(1000, 5), (2000, 1)])


def test_intervals_and_overhead():
    lines = [
        b'{"event": "overhead", "cost_s": 20}\n',
        b"\n",
        b'{"t_s": 1.0, "tps": 512.0, "latency_p99_s": 0.031}\n',
        b'{"t_s": 2.0, "tps": 500, "latency_hist": "%b"}\n' % HISTOGRAM.encode(),
        b'{"t_s": 3.0, "tps": 5',
    ]
    assert list(parse(lines)) == [
        Overhead(20.0),
        Interval(1.0, {"tps": 512.0, "latency_p99_s": 0.031}),
        Interval(2.0, {"tps": 500.0}, HISTOGRAM),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"hello\n", "line 1: not a JSON object: 'hello'"),
        (b"[1]\n", "line 1: not a JSON object"),
        (b'{"tps": 5}\n', "line 1: t_s is None, not a number"),
        (b'{"t_s": 1, "tps": "5"}\n', "line 1: tps is '5', not a number"),
        (b'{"t_s": 1, "tps": true}\n', "line 1: tps is True, not a number"),
        (b'{"event": "over"}\n', "line 1: unknown event 'over'; known: overhead"),
        (b'{"t_s": 0, "tps": 5}\n', "line 1: t_s is 0 after 0"),
        (b'{"t_s": 1e12, "tps": 5}\n', "line 1: t_s is 1e+12; give seconds since the load began"),
        (b'{"event": "overhead", "cost_s": -1}\n', "line 1: cost_s is -1; give seconds"),
        (b'{"t_s": 1, "tps": %b}\n' % (b"9" * 400), "line 1: tps is an integer of 1329 bits; "),
        (b'{"t_s": 1, "tps": 1e-310}\n', "line 1: tps is 1e-310; report base units"),
        (b'{"t_s": 1, "tps": 1e999}\n', "line 1: not a JSON object"),
        (b'{"t_s": 1, "tps": NaN}\n', "line 1: not a JSON object"),
        (b'{"t_s": 1, "tps": %b}\n' % (b"[" * 10**5), "line 1: not a JSON object"),
        (b'{"t_s": 1, "tps": [[5]]}\n', "line 1: tps is a list, not a number"),
        (b'{"t_s": 1, "latency_hist": "HISTF"}\n', "line 1: latency_hist: not an HdrHistogram"),
        (b" " * (1 << 20), "line 1: is longer than 1048576 bytes"),
        (b'{"t_s": 1, "latency_hist": 5}\n', "line 1: latency_hist is not a base64 string"),
    ],
)
def test_a_line_that_is_no_report_is_named(line, message):
    with pytest.raises(ValueError, match="line") as error:
        list(parse([line]))
    assert message in str(error.value)


@given(st.lists(st.binary(max_size=60)))
def test_junk_is_an_error_and_never_a_crash(lines):
    message = ""
    try:
        list(parse([line + b"\n" for line in lines]))
    except ValueError as error:
        message = str(error)
    assert not message or message.startswith("line ")


def test_more_numbers_than_a_trial_can_have_are_refused():
    line = b'{"t_s": %d, ' + b", ".join(b'"v%d": 1' % i for i in range(1000)) + b"}\n"
    with pytest.raises(ValueError, match=r"line 1000: .* more than 1000000 numbers"):
        list(parse(line % second for second in range(1, 6000)))


def histogram(counts=b"\x02", digits=3, lowest=1, highest=3_600_000_000, size=None):
    """Return a V2 histogram whose parts are as asked, right or wrong."""
    body = struct.pack(">IIiiQQd", 0x1C849313, size or len(counts), 0, digits, lowest, highest, 1.0)
    packed = zlib.compress(body + counts)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(packed)) + packed).decode()


@pytest.mark.parametrize(
    ("encoded", "why"),
    [
        (histogram(), ""),
        (HISTOGRAM, ""),
        (HISTOGRAM[:-8], "cut off"),
        (histogram(bytes(1 << 26)), "cut off"),
        (histogram(b"\x02" * 60_000), "do not fit"),
        (histogram(b"\xff" * 8), "its counts are cut off"),
        (histogram(b"\xff" * 9), "do not fit"),
        (histogram(b"\xfe" + b"\xff" * 8), "events in it"),
        (histogram(digits=5), "give at most 3 digits"),
        (histogram(lowest=0), "give at most 3 digits"),
        (histogram(highest=2**63), "give at most 3 digits"),
        (histogram(b"\xff\xff\x03\x02", highest=2**50), "over an hour"),
    ],
)
def test_a_histogram_is_sound_or_refused(encoded, why):
    assert why in checked(encoded)
    assert bool(checked(encoded)) == bool(why)


@given(st.binary(max_size=80), st.integers(0, 5), st.integers(0, 2**64 - 1))
def test_a_histogram_that_passes_can_be_merged(counts, digits, highest):
    encoded = histogram(counts, digits, 1, highest)
    if not checked(encoded):
        merged([encoded])
