"""What is shown: controls of others as escapes, JSON as the same JSON, our own live line."""

import fcntl
import io
import json
import os
import pty
import struct
import sys
import termios
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.cli.terminal import EscapedStream, Progress, guarded, own, print_message, visible
from mydyno.model import Metric, Outcome, Trial, TrialStatus, Window


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\x9b31m", "a\\u009b31m"),
        ("100\r99\x08", "100\\x0d99\\x08"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("\udcff", "\\udcff"),
        ("a\tb\né 数", "a\tb\né 数"),
    ],
)
def test_controls_are_shown(text, shown):
    assert visible(text) == shown
    assert visible(shown) == shown


@given(st.dictionaries(st.text(), st.text()))
def test_json_stays_the_same_json(fields):
    assert json.loads(visible(json.dumps(fields, ensure_ascii=False))) == fields


@given(st.text(st.characters()))
def test_no_control_gets_through(text):
    seen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    EscapedStream(seen).write(text)
    seen.flush()
    assert set(seen.buffer.getvalue()) <= {9, 10, *range(0x20, 0x7F)}


def test_libraries_write_through_it_and_we_beside_it(capsys):
    with guarded():
        print("\x1b[2J")  # noqa: T201 - what a library does
        sys.stderr.writelines(["\x07", "\x08"])
        own(sys.stderr).write("\x1b[2K")
    output = capsys.readouterr()
    assert (output.out, output.err) == ("\\x1b[2J\n", "\\x07\\x08\x1b[2K")


def test_a_trials_line_has_the_units_of_the_table_and_counts_from_one(capsys):
    metrics = (Metric("tps", 1559.1, "/s"), Metric("latency_p99_s", 0.0244, "s"))
    trial = Trial(0, "POOL", "rw/16", 0, 1)
    progress = Progress(None, {"rw/16": "tps"}, 30.0)
    progress.started(trial)
    progress.finished(Outcome(trial, TrialStatus.OK, Window(10, 30), metrics))
    assert capsys.readouterr().err == (
        "  1  block 1  rw/16  POOL           1.56 k/s   p99  24.4 ms\n"
    )


def test_a_response_that_is_a_latency_is_printed_once(capsys):
    metrics = (Metric("latency_p99_s", 0.0244, "s"),)
    trial = Trial(4, "POOL", "rw/16", 1, 1)
    progress = Progress(None, {"rw/16": "latency_p99_s"}, 30.0)
    progress.started(trial)
    progress.finished(Outcome(trial, TrialStatus.OK, Window(10, 30), metrics))
    assert capsys.readouterr().err == "  5  block 2  rw/16  POOL            24.4 ms\n"


def test_the_live_line_is_as_long_as_the_terminal_that_it_is_on(monkeypatch):
    """A report that goes to a file has another width, and a longer line would wrap."""
    end, own_end = pty.openpty()
    fcntl.ioctl(own_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 31, 0, 0))
    monkeypatch.setenv("COLUMNS", "200")
    with os.fdopen(own_end, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr(sys, "stderr", stderr)
        Progress(8, {"w": "tps"}).started(Trial(0, "A" * 60, "w", 0, 1))
        print_message("")  # the line is no live one any more
    shown = b""
    with suppress(OSError):  # a terminal passes on what is written a little later, in parts
        while part := os.read(end, 1000):
            shown += part
    os.close(end)
    line = shown.decode().partition("\x1b[2K")[2].splitlines()[0]
    assert len(line) == 30
