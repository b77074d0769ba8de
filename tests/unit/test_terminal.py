"""What is shown: controls of others as escapes, JSON as the same JSON, our own live line."""

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.cli.terminal import EscapedStream, guarded, own, visible


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
