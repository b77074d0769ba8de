"""Allocators: found in the linker's cache, planned once, and read from any output."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

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
