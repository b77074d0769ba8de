"""What a lab may be, and how its daemon is called."""

from itertools import pairwise
from pathlib import Path

import pytest

from mydyno.lab.binary import serve
from mydyno.lab.calibration import cap_rate
from mydyno.lab.values import Caps, LabSpec, Latency, Paths, Stripe, check, level_text, mkfs_options
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
        LabSpec("a", MIB, stripe=Stripe(0)),
        LabSpec("a", 80 * MIB, stripe=Stripe(65, 4096)),
        LabSpec("a", MIB, stripe=Stripe(2, 6000)),
        LabSpec("a", MIB, stripe=Stripe(2, 0)),
        LabSpec("a", MIB, stripe=Stripe(4, MIB)),
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


def test_each_disk_has_files_of_its_own():
    spec = LabSpec("a", MIB, stripe=Stripe(2, 64 << 10), vm="azure-d2s-v3")
    argv = serve(spec, Paths(Path("/h")), owner_pid=None, frozen=False).argv
    given = [pair for pair in pairwise(argv) if pair[0] in {"--base", "--overlay"}]
    assert given == [
        ("--base", "/h/base.img"),
        ("--overlay", "/h/overlay.img"),
        ("--base", "/h/base-1.img"),
        ("--overlay", "/h/overlay-1.img"),
    ]
    assert dict(pairwise(argv))["--chunk"] == "65536"
    assert dict(pairwise(argv))["--vm"] == "azure-d2s-v3"
    assert "--uncapped" not in argv


@pytest.mark.parametrize(
    ("kind", "options", "want"),
    [
        ("xfs", "", "-d su=64k,sw=4"),
        ("xfs", "-m reflink=0", "-d su=64k,sw=4 -m reflink=0"),
        ("xfs", "-d agcount=8", "-d agcount=8,su=64k,sw=4"),
        ("xfs", "-d su=16k,sw=2", "-d su=16k,sw=2"),
        ("ext4", "", "-E stride=16,stripe_width=64"),
        ("ext4", "-E lazy_itable_init=0", "-E lazy_itable_init=0,stride=16,stripe_width=64"),
        ("ext4", "-E stride=4", "-E stride=4"),
        ("btrfs", "-m single", "-m single"),
    ],
)
def test_mkfs_is_told_the_geometry_unless_it_was(kind, options, want):
    assert mkfs_options(kind, options, Stripe(4, 64 << 10)) == want
    assert mkfs_options(kind, options, Stripe(1)) == options


def flat(rate):
    return {"base": rate, "burst": rate, "credits": 0}


def daemon(disks, iops, bytes_per_s, left=0.0, vm=None):
    caps = {"iops": iops, "bytes_per_s": bytes_per_s}
    state = {"disks": [{}] * disks, "caps": caps, "vm": None}
    state["credits"] = {"iops": left, "bytes_per_s": left}
    if vm:
        credits_left = {"iops": 0.0, "bytes_per_s": 0.0}
        state["vm"] = {"caps": {"iops": flat(vm), "bytes_per_s": None}, "credits": credits_left}
    return state


def test_the_tightest_cap_is_the_promise():
    of = daemon(4, flat(1000), flat(50e6))
    assert cap_rate(of, 16384, 1, 2).rate == 4000
    assert cap_rate(of, 1 << 20, 1, 2).rate == pytest.approx(200e6 / (1 << 20))
    assert cap_rate(of, 1 << 20, 1, 2).by == "the disks, bytes"
    assert cap_rate(daemon(4, flat(1000), None, vm=2500), 16384, 1, 2).by == "the VM, IOPS"
    assert cap_rate(daemon(1, None, None), 16384, 1, 2).rate is None


def test_a_promise_is_the_mean_over_the_window_behind_the_ramp():
    cap = {"base": 1000, "burst": 3000, "credits": 9000}
    rates = [cap_rate(daemon(1, cap, None, left), 4096, 1, 2).rate for left in (0, 2000, 4000, 9e9)]
    assert rates == [1000, 1000, 2000, 3000]


def test_a_lab_without_caps_says_so():
    argv = serve(LabSpec("a", MIB), Paths(Path("/h")), owner_pid=None, frozen=False).argv
    assert "--uncapped" in argv
    assert "--owner-pid" not in argv
    assert "--class" not in argv
