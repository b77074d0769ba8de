"""The server's limits: plans are idempotent, any output is read."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mydyno.stack.launch_file import Limits, Server, parse_limits

LAYER = Limits(Server(Path("/h/limits"), Path("/h/pid"), Path("/h/my.cnf")))
TITLES = {"nofile": "Max open files", "nproc": "Max processes", "memlock": "Max locked memory"}
INHERITED = {"nofile": "1024", "nproc": "100", "memlock": "8388608"}
VALUES = st.integers(1, 2**40).map(str) | st.sampled_from(["unlimited", "64M", "1024"])
WANTS = st.dictionaries(st.sampled_from(sorted(TITLES)), VALUES)


def shown(lines):
    asked = dict(line.split("=") for line in lines)
    rows = [
        f"limits\t{TITLES[key]}   {asked.get(key, value)}  {asked.get(key, value)}  units"
        for key, value in INHERITED.items()
    ]
    return parse_limits(
        "\n".join([*(f"own\t{line}" for line in lines), "running\t", *rows]).encode()
    )


@given(WANTS, WANTS)
def test_plans_are_idempotent(first, second):
    now = shown([])
    for want in (first, second, {}):
        changes = LAYER.plan(now, want)
        now = shown(changes[0].action.stdin.decode().splitlines()) if changes else now
        assert LAYER.plan(now, want) == []
    assert now == INHERITED


@given(st.binary())
def test_any_output_is_read(raw):
    assert all(isinstance(part, str) for pair in parse_limits(raw).items() for part in pair)
