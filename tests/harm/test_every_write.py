"""A fault at every system call that writes: after `rollback` the host is as it was.

Each case runs a campaign, or the rollback of a killed one, under `inject.py`, which makes one call
fail or kills mydyno there, and proves that the call was reached.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harm import snapshot
from harm.campaigns import ENVIRONMENT, SETTINGS, CampaignDisk, campaign_disk, use_once

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="reads registers of x86-64"),
]
FAULTS = ("kill", "ENOSPC", "EIO", "EINTR")
INJECT = Path(__file__).with_name("inject.py")
FEWEST, LEAST_REACHED = 1000, 0.95
PLANS: dict[str, dict[str, object]] = {
    "all": dict(SETTINGS),
    "pairs": {
        "kernel.sysctl.vm.dirty_background_bytes": 134217728,
        "kernel.sysctl.vm.overcommit_kbytes": 33554432,
        "kernel.sysctl.vm.vfs_cache_pressure": 80,
        "kernel.sysctl.net.core.somaxconn": 1234,
        "block.scheduler": "kyber",
        "block.read_ahead_kb": 64,
        "fs.mount": "nodev,lazytime,noauto_da_alloc",
    },
}
CHUNKS, ROLLBACK_CHUNKS = 16, 8


@dataclass
class Report:
    """What came of a command under the injector."""

    calls: list[str]
    hit: str
    code: int
    stderr: str


def injected(there: CampaignDisk, fault: str, at: int, argv: list[str]) -> Report:
    """Return what came of a command whose counted call number `at` had this fault."""
    report = there.folder / "injected.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-S", "-E", str(INJECT), fault, str(at), str(report), *argv]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=120
    )
    counts = json.loads(report.read_text())
    report.unlink()
    return Report(counts["calls"], counts["hit"], counts["code"], done.stderr)


def restored(there: CampaignDisk, before: snapshot.Snapshot) -> list[str]:
    """Return what is wrong after `rollback`: its failure, a traceback, each difference."""
    done = there.mydyno("rollback", there.out)
    end = time.monotonic() + 5  # a sampler sees within a second that its owner is gone
    wrong = snapshot.difference(before, after := there.snapshot())
    while wrong and time.monotonic() < end:
        time.sleep(0.2)
        wrong = snapshot.difference(before, after := there.snapshot())
    if "Traceback" in done.stderr:
        wrong.append(f"rollback: {done.stderr[-800:]}")
    shutil.rmtree(there.out, ignore_errors=True)
    before.clear()
    before.update(after)  # what one point leaves is not found again at every later one
    return wrong


def one_case(
    there: CampaignDisk, before: snapshot.Snapshot, fault: str, at: int
) -> list[str] | None:
    """Return what is wrong after a run with a fault and its rollback; None if never reached."""
    found = injected(there, fault, at, there.run_command())
    wrong = restored(there, before)
    if not found.hit:
        return None
    if fault == "kill" and found.code != -9:
        wrong.append(f"not killed: {found.code}")
    if "Traceback" in found.stderr:
        wrong.append(f"run: {found.stderr[-800:]}")
    return [f"{fault} at {at}, {found.hit}: {line}" for line in wrong]


def rollback_case(
    there: CampaignDisk, before: snapshot.Snapshot, case: tuple[str, int, int]
) -> list[str] | None:
    """Return what is wrong after a rollback with a fault and another one without, or None."""
    fault, at, killed = case
    first = injected(there, "kill", killed, there.run_command())
    assert first.code == -9
    found = injected(there, fault, at, there.command("rollback", there.out))
    wrong = restored(there, before)
    if not found.hit:
        return None
    if "Traceback" in found.stderr:
        wrong.append(f"rollback with the fault: {found.stderr[-800:]}")
    return [f"rollback, {fault} at {at}, {found.hit}: {line}" for line in wrong]


def counted(there: CampaignDisk) -> list[str]:
    """Return the calls of a run without a fault."""
    found = injected(there, "none", 0, there.run_command())
    assert found.code == 0, found.stderr
    shutil.rmtree(there.out)
    return found.calls


def deepest(calls: list[str]) -> int:
    """Return the number of a call while the treatment is in force."""
    return max(i for i, call in enumerate(calls, 1) if call.endswith("/0000/load.out"))


def unwritten(there: CampaignDisk) -> snapshot.Snapshot:
    """Return the picture of a host on which mydyno ran once."""
    counted(there)
    return there.snapshot()


def points(calls: list[str]) -> list[tuple[str, int]]:
    """Return each fault at each call, of equal calls in a row at the first and the last."""
    around = zip(["", *calls], calls, [*calls[1:], ""], strict=False)
    counts = [at for at, (last, this, then) in enumerate(around, 1) if not last == this == then]
    return [(fault, at) for at in counts for fault in FAULTS]


def rollback_points(there: CampaignDisk, killed: int) -> list[tuple[str, int]]:
    """Return every fault at every writing call of the rollback of a run killed at that call."""
    assert injected(there, "kill", killed, there.run_command()).code == -9
    found = injected(there, "none", 0, there.command("rollback", there.out))
    assert found.code == 0, found.stderr
    shutil.rmtree(there.out)
    return points(found.calls)


def hold(found: Iterable[list[str] | None], show: Callable[[str], object]) -> None:
    """Fail where a point is wrong, or where too few were reached: runs differ by a call or two."""
    results = []
    for lines in found:
        results.append(lines)
        if lines:
            show("\n".join(lines))
    reached = [lines for lines in results if lines is not None]
    wrong = [line for lines in reached for line in lines]
    show(f"{len(results)} points, {len(reached)} reached, {sum(map(bool, reached))} not restored")
    assert not wrong, "\n".join(wrong)
    assert len(reached) >= len(results) * LEAST_REACHED


@pytest.fixture
def show(
    capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> Callable[[str], None]:
    def show(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{request.node.name}: {text}\n")

    return show


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("plan", PLANS)
def test_a_fault_at_every_write_of_a_run(
    plan: str, chunk: int, show: Callable[[str], None]
) -> None:
    with campaign_disk() as there:
        there.spec(PLANS[plan])
        before = unwritten(there)
        mine = points(counted(there))[chunk::CHUNKS]
        hold((one_case(there, before, fault, at) for fault, at in mine), show)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(ROLLBACK_CHUNKS))
@pytest.mark.parametrize("plan", PLANS)
def test_a_fault_at_every_write_of_a_rollback(
    plan: str, chunk: int, show: Callable[[str], None]
) -> None:
    with campaign_disk() as there:
        there.spec(PLANS[plan])
        before = unwritten(there)
        killed = deepest(counted(there))
        mine = rollback_points(there, killed)[chunk::ROLLBACK_CHUNKS]
        hold((rollback_case(there, before, (*point, killed)) for point in mine), show)


def test_there_are_a_thousand_points_and_a_sample_of_them_holds(
    show: Callable[[str], None],
) -> None:
    """Faults at two calls of a run and at two of a rollback, of all that the slow tests do."""
    total = 0
    for settings in PLANS.values():
        with campaign_disk() as there:
            use_once()
            there.spec(settings)
            calls = counted(there)
            before = there.snapshot()
            killed = deepest(calls)
            every = points(calls)
            back = rollback_points(there, killed)
            total += len(every) + len(back)
            found = [
                one_case(there, before, *every[(2 * place + 1) * len(every) // 4 + place])
                for place in range(2)
            ]
            found += [
                rollback_case(
                    there, before, (*back[(2 * place + 1) * len(back) // 4 + place], killed)
                )
                for place in range(2)
            ]
            hold(found, show)
    show(f"{total} points in all")
    assert total >= FEWEST
