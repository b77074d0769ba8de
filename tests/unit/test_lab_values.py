"""What a lab may be, and how its daemon is called."""

from itertools import pairwise
from pathlib import Path

import pytest

from mydyno.lab.binary import serve
from mydyno.lab.paths import Paths
from mydyno.lab.values import Caps, LabSpec, Latency, check, level_text
from mydyno.model import SpecError

MIB = 1 << 20


@pytest.mark.parametrize(
    "spec",
    [
        LabSpec("", MIB),
        LabSpec("a/b", MIB),
        LabSpec(".hidden", MIB),
        LabSpec("x" * 65, MIB),
        LabSpec("a", 0),
        LabSpec("a", 5000),
        LabSpec("a", MIB, credits=1.5),
        LabSpec("a", MIB, credits="half"),
    ],
)
def test_an_impossible_lab_is_refused(spec):
    with pytest.raises(SpecError):
        check(spec)


@pytest.mark.parametrize("level", ["empty", "full", 0, 0.25, 1, "0.5"])
def test_a_credit_level_keeps_its_meaning(level):
    assert level_text(level) == str(level)


def test_rates_and_times_reach_the_daemon_in_its_units():
    caps = Caps(iops=100, bytes_per_s=2.5e6, burst_s=2)
    spec = LabSpec("a", MIB, caps=caps, latency=Latency(read_s=0.0005, flush_s=0.002))
    argv = serve(spec, Paths(Path("/h")), owner_pid=7, frozen=True).argv
    given = dict(pairwise(argv))
    assert given["--iops"] == "100"
    assert given["--mbps"] == "2.5"
    assert given["--burst-seconds"] == "2"
    assert given["--read-latency-us"] == "500"
    assert given["--flush-latency-us"] == "2000"
    assert given["--owner-pid"] == "7"
    assert given["--base"] == "/h/base.img"
    assert "--frozen" in argv
    assert "--uncapped" not in argv
    assert "--burst-iops" not in argv


def test_a_lab_without_caps_says_so():
    argv = serve(LabSpec("a", MIB), Paths(Path("/h")), owner_pid=None, frozen=False).argv
    assert "--uncapped" in argv
    assert "--owner-pid" not in argv
    assert "--class" not in argv
