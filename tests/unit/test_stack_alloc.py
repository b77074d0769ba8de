"""Allocators: found in the linker's cache, planned once, and read from any output."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.model import SpecError
from mydyno.stack.alloc import Alloc, libraries, parse
from mydyno.stack.launch_file import Server

FOUND = {"jemalloc": "/l/libjemalloc.so.2", "tcmalloc": "/l/libtcmalloc_minimal.so.4"}
LAYER = Alloc(Server(Path("/h/alloc"), Path("/h/pid"), Path("/h/my.cnf")), FOUND)
WANTS = st.fixed_dictionaries(
    {},
    optional={"library": st.sampled_from(["glibc", "jemalloc"]), "tunables": st.just("a:b")},
) | st.just({"library": "tcmalloc"})


def applied(now, changes):
    """Return what is seen of a server restarted with the file that the changes write."""
    if not changes:
        return now
    lines = changes[0].action.stdin.decode().splitlines()
    loaded = [line.removeprefix("LD_PRELOAD=") for line in lines if "LD_PRELOAD" in line]
    shown = [f"own\t{line}" for line in lines] + ["running\t"]
    shown += [f"maps\t7f-80 r-xp 0 08:01 5 {path}" for path in loaded]
    shown += [f"environ\t{line}" for line in lines]
    return parse("\n".join(shown).encode())


@given(WANTS, WANTS)
def test_plans_are_idempotent(first, second):
    now = applied(parse(b"running\t\n"), LAYER.plan(parse(b"running\t\n"), first))
    assert LAYER.plan(now, first) == []
    then = applied(now, LAYER.plan(now, second))
    assert LAYER.plan(then, second) == []
    back = applied(then, LAYER.plan(then, {}))
    assert back == {"library": "glibc"}


def test_a_server_that_contains_an_allocator_gets_no_second_one():
    """It has no file in the process's maps, so that only the program shows it."""
    layer = Alloc(LAYER.server, FOUND, "jemalloc")
    parsed = layer.observe().parse
    running = parsed(b"running\t\n")
    assert running == {"library": "jemalloc", "linked": "jemalloc"}
    for now in (running, parsed(b""), {}):
        assert "LD_PRELOAD" not in str(layer.plan(now, {"library": "jemalloc", "tunables": "a:b"}))
        for other in ("tcmalloc", "glibc"):
            with pytest.raises(SpecError, match="linked to jemalloc"):
                layer.plan(now, {"library": other})
    assert layer.plan(running, {"library": "jemalloc"}) == []
    shown = b"own\tMALLOC_CONF=a:b\nrunning\t\nenviron\tMALLOC_CONF=a:b\n"
    assert parsed(shown)["tunables"] == "a:b"


@given(st.binary())
def test_any_output_is_read(raw):
    assert parse(raw)["library"]


def test_the_linker_s_cache_names_libraries_of_our_architecture():
    raw = b"""4 libs found in cache `/etc/ld.so.cache'
\tlibjemalloc.so.2 (libc6) => /lib/i386-linux-gnu/libjemalloc.so.2
\tlibjemalloc.so.2 (libc6,x86-64) => /lib/x86_64-linux-gnu/libjemalloc.so.2
\tlibtcmalloc_minimal.so.4 (libc6,x86-64) => /lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4
\tlibmimalloc.so.2.0 (libc6,x86-64) => /lib/x86_64-linux-gnu/libmimalloc.so.2.0
\tlibc.so.6 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/x86_64-linux-gnu/libc.so.6
"""
    folder = "/lib/x86_64-linux-gnu"
    assert libraries(raw) == {
        "jemalloc": f"{folder}/libjemalloc.so.2",
        "tcmalloc": f"{folder}/libtcmalloc_minimal.so.4",
        "mimalloc": f"{folder}/libmimalloc.so.2.0",
    }


def test_a_host_without_allocators_has_none():
    assert libraries(b"") == {}
