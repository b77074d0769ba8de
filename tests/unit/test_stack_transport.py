"""The transport: plans are idempotent, any output is read."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mydyno.stack.transport import Transport, parse

LAYER = Transport(Path("/h/launch/transport"), ("client",))
WANTS = st.fixed_dictionaries({}, optional={"transport": st.sampled_from(["tcp", "socket"])})


def shown(text):
    closed = "OFF" if "tcp" in text else "ON"
    return parse(f"{text}\nskip_networking\t{closed}\n".encode())


@given(WANTS, WANTS)
def test_plans_are_idempotent(first, second):
    now = shown("")
    for want in (first, second, {}):
        changes = LAYER.plan(now, want)
        now = shown(changes[0].action.stdin.decode()) if changes else now
        assert LAYER.plan(now, want) == []
    assert now["transport"] == "socket"


@given(st.binary())
def test_any_output_is_read(raw):
    assert parse(raw)["transport"]


def test_the_file_and_the_server_are_asked_in_one_command():
    action = LAYER.observe().action
    assert action.argv[0] == "find"
    assert action.argv[-2:] == ("client", ";")
    assert b"skip_networking" in action.stdin
