"""The command workload: every line is a report, or it is told which is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.model import Interval, Overhead
from mydyno.workloads.command import parse


def test_intervals_and_overhead():
    lines = [
        b'{"event": "overhead", "cost_s": 20}\n',
        b"\n",
        b'{"t_s": 1.0, "tps": 512.0, "latency_p99_s": 0.031}\n',
        b'{"t_s": 2.0, "tps": 500, "latency_hist": "HISTF"}\n',
        b'{"t_s": 3.0, "tps": 5',
    ]
    assert list(parse(lines)) == [
        Overhead(20.0),
        Interval(1.0, {"tps": 512.0, "latency_p99_s": 0.031}),
        Interval(2.0, {"tps": 500.0}, "HISTF"),
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"hello\n", "line 1: not a JSON object: 'hello'"),
        (b"[1]\n", "line 1: not a JSON object"),
        (b'{"tps": 5}\n', "line 1: t_s is None, not a number"),
        (b'{"t_s": 1, "tps": "5"}\n', "line 1: tps is '5', not a number"),
        (b'{"t_s": 1, "tps": true}\n', "line 1: tps is True, not a number"),
        (b'{"event": "over"}\n', "line 1: unknown event 'over'; known: overhead"),
        (b'{"t_s": 0, "tps": 5}\n', "line 1: t_s is 0 after 0"),
        (b'{"t_s": 1, "latency_hist": 5}\n', "line 1: latency_hist is not a base64 string"),
    ],
)
def test_what_is_no_report_is_named(line, told):
    with pytest.raises(ValueError, match="line") as error:
        list(parse([line]))
    assert told in str(error.value)


@given(st.lists(st.binary(max_size=60)))
def test_junk_is_an_error_and_never_a_crash(lines):
    told = ""
    try:
        list(parse([line + b"\n" for line in lines]))
    except ValueError as error:
        told = str(error)
    assert not told or told.startswith("line ")
