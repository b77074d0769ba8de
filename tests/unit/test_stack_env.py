"""The server's environment: plans are idempotent, any output is read."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.cli.benches import build
from mydyno.cli.recipes import SpecSource
from mydyno.model import SpecError
from mydyno.stack.launch_file import Env, Server, parse_env

LAYER = Env(Server(Path("/h/env"), Path("/h/pid"), Path("/h/my.cnf")))
VALUES = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=8)
WANTS = st.dictionaries(st.from_regex(r"X_[A-Z0-9]{1,3}", fullmatch=True), VALUES, max_size=3)


def applied(now, changes):
    if not changes:
        return now
    lines = changes[0].action.stdin.decode().splitlines()
    shown = [f"own\t{line}" for line in lines] + ["running\t", "environ\tPATH=/bin"]
    return parse_env("\n".join([*shown, *(f"environ\t{line}" for line in lines)]).encode())


@given(WANTS, WANTS)
def test_plans_are_idempotent(first, second):
    now = applied({}, LAYER.plan({}, first))
    assert LAYER.plan(now, first) == []
    then = applied(now, LAYER.plan(now, second))
    assert LAYER.plan(then, second) == []
    assert applied(then, LAYER.plan(then, {})) == {}


@given(st.binary())
def test_any_output_is_read(raw):
    assert all(isinstance(part, str) for pair in parse_env(raw).items() for part in pair)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("LC_ALL", "mydyno sets it"),
        ("MYDYNO_SEED", "mydyno sets it"),
        ("-u", "not a variable's name"),
    ],
)
def test_a_load_has_no_variable_that_is_ours_or_none(name, message, tmp_path):
    """Of a bare command, too, which needs no server."""
    text = f"""
[stack]
server = "none"
[treatments.A]
[treatments.B]
"load/env.{name}" = "x"
[workloads.w]
tool = "command"
argv = ["true"]
"""
    with pytest.raises(SpecError, match=rf"B: load/env\.{name}: {message}"):
        build(SpecSource(text, "a.toml", {}), [], tmp_path)
    build(SpecSource(text.replace(name, "LD_PRELOAD"), "a.toml", {}), [], tmp_path)
