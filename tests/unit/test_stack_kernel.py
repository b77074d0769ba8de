"""Kernel settings: plans are idempotent, names are files, this machine's are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.host import Local, ask
from mydyno.model import SpecError
from mydyno.stack.kernel import Kernel, path

NOW = {
    "sysctl.vm.swappiness": "60",
    "sysctl.vm.dirty_bytes": "0",
    "sysctl.vm.dirty_ratio": "20",
    "thp": "madvise",
}
LAYER = Kernel(tuple(NOW))
WANTS = st.fixed_dictionaries(
    {},
    optional={
        "sysctl.vm.swappiness": st.integers(0, 200).map(str),
        "thp": st.sampled_from(["always", "madvise", "never"]),
    },
)
DIRTY = st.just({}) | st.sampled_from(
    [{"sysctl.vm.dirty_bytes": "65536"}, {"sysctl.vm.dirty_ratio": "7"}]
)


@given(WANTS, DIRTY)
def test_plans_are_idempotent_and_their_inverse_is_a_plan(want, dirty):
    wanted = {**want, **dirty}
    changes = LAYER.plan(NOW, wanted)
    then = {**NOW, **{change.key: change.after for change in changes}}
    assert LAYER.plan(then, wanted) == []
    first = {change.key: change.before for change in changes}
    back = {**then, **{change.key: change.after for change in LAYER.plan(then, first)}}
    assert back == NOW
    assert all("=0" not in change.action.argv[-1] for change in changes if "dirty" in change.key)


@pytest.mark.parametrize(
    ("key", "file"),
    [
        ("sysctl.vm.swappiness", "/proc/sys/vm/swappiness"),
        ("sysctl.net.ipv4.conf.eth0/1.rp_filter", "/proc/sys/net/ipv4/conf/eth0.1/rp_filter"),
        ("thp", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ],
)
def test_a_key_is_a_file(key, file):
    assert path(key) == file


@pytest.mark.parametrize(
    "key", ["sysctl.", "sysctl./etc/passwd", "sysctl.a b", "module.x", "scheduler"]
)
def test_a_key_that_is_none_is_refused(key):
    with pytest.raises(SpecError):
        path(key)


def test_this_machine_s_values_are_read_and_a_missing_name_is_left_out():
    layer = Kernel(("sysctl.vm.swappiness", "sysctl.no.such.name", "sysctl.vm.dirty_bytes"))
    seen = ask(Local(), layer.observe())
    assert seen["sysctl.vm.swappiness"].isdigit()
    assert {"sysctl.vm.dirty_bytes", "sysctl.vm.dirty_ratio"} <= seen.keys()
    assert "sysctl.no.such.name" not in seen
