"""What breaks around a campaign leaves no host changed: full disks, signals, damaged files.

`rollback` restores all that is still there and names the rest.
"""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from harm import snapshot
from harm.campaigns import ENDLESS, ENVIRONMENT, STATE, CampaignDisk, campaign_disk, use_once

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
SWAPPINESS = Path("/proc/sys/vm/swappiness")
SETTINGS = {
    "kernel.sysctl.vm.swappiness": 43,
    "kernel.sysctl.vm.dirty_bytes": 268435456,
    "kernel.thp": "never",
    "block.scheduler": "kyber",
    "block.read_ahead_kb": 64,
}
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
PATIENCE_S = 300.0


@contextmanager
def campaign(there: CampaignDisk, *prefix: str) -> "Iterator[subprocess.Popen[str]]":
    """Yield a campaign whose treatment is in force, its load under way."""
    there.begun.unlink(missing_ok=True)
    there.spec(SETTINGS, load=ENDLESS)
    argv = [*prefix, *there.run_command()]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            until(lambda: there.begun.exists() and SWAPPINESS.read_text() == "43\n", process)
            yield process
        finally:
            process.kill()
            process.communicate()


def until(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait until a process has come so far; fail where it ends or stays before."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def killed(there: CampaignDisk) -> None:
    with campaign(there) as process:
        process.kill()


def used(there: CampaignDisk) -> snapshot.Snapshot:
    """Return the picture of the host after mydyno was used once."""
    use_once()
    there.spec({})
    before = there.snapshot()
    there.begun.unlink(missing_ok=True)
    return before


def same(there: CampaignDisk, before: snapshot.Snapshot) -> None:
    """Raise unless the host is as it was; what the test itself left is removed first."""
    for path in (there.begun, there.mount / "filler"):
        path.unlink(missing_ok=True)
    there.spec({})
    end = time.monotonic() + 5  # a sampler sees within a second that its owner is gone
    while (left := snapshot.difference(before, there.snapshot())) and time.monotonic() < end:
        time.sleep(0.2)
    assert left == []


def settings_same(there: CampaignDisk, before: snapshot.Snapshot) -> None:
    """Raise unless all settings are as they were; what can be resumed may still lie there."""
    left = snapshot.difference(before, there.snapshot())
    assert [line for line in left if line.startswith(("sysctl", "queue", "setting", "mount"))] == []


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def rolled_back(there: CampaignDisk, *prefix: str) -> str:
    """Return what `rollback` printed; it ends well and without a traceback."""
    argv = [*prefix, *there.command("rollback", there.out)]
    done = subprocess.run(
        argv, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in {0, 3}, done.stderr
    return done.stdout + done.stderr


def fill(folder: Path) -> None:
    """Leave no byte free in a filesystem, for root neither."""
    subprocess.run(["fallocate", "-l", "60G", folder / "filler"], check=False, capture_output=True)
    with (folder / "filler").open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def test_rollback_restores_the_host_with_a_full_run_directory() -> None:
    """Nothing needs to be written there; the first values are recorded already."""
    with campaign_disk() as there:
        before = used(there)
        killed(there)
        fill(there.mount)
        rolled_back(there)
        (there.mount / "filler").unlink()
        same(there, before)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_the_host_is_restored_with_a_full_state_folder(ending: signal.Signals) -> None:
    """A record that cannot be written does not stop the restoring."""
    with campaign_disk() as there:
        # without its records, each notice of this machine's campaigns is a stranger's
        hide = f"mount -t tmpfs -o size=128k,mode=700 x {STATE}; mount -t tmpfs -o mode=755 y /run"
        argv = ["unshare", "-m", "sh", "-c", f"{hide} && exec sleep 600"]
        with subprocess.Popen(argv, text=True) as holder:
            try:
                inside = ("nsenter", "-m", "-t", str(holder.pid), "--")
                name = Path(f"/proc/{holder.pid}/comm")  # from `sleep` on it is part of the picture
                until(lambda: name.read_text() == "sleep\n", holder)
                before = used(there)
                with campaign(there, *inside) as process:
                    fill(Path(f"/proc/{holder.pid}/root{STATE}"))
                    process.send_signal(ending)
                    process.communicate(timeout=PATIENCE_S)
                if ending == signal.SIGKILL:
                    rolled_back(there, *inside)
                same(there, before)
            finally:
                try:
                    fill_gone = Path(f"/proc/{holder.pid}/root{STATE}/filler")
                    fill_gone.unlink(missing_ok=True)
                    rolled_back(there, *inside)
                finally:
                    holder.kill()


@pytest.mark.parametrize("number", SIGNALS, ids=lambda s: s.name)
def test_each_signal_ends_a_campaign_with_its_host_restored(number: signal.Signals) -> None:
    """A terminal that is closed (HUP) ends it as Ctrl-C does; a second signal changes nothing."""
    with campaign_disk() as there:
        before = used(there)
        with campaign(there) as process:
            time.sleep(random.Random(int(number)).uniform(0, 0.3))
            process.send_signal(number)
            time.sleep(0.05)
            process.send_signal(number)
            _, output = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 130, output
        settings_same(there, before)
        rolled_back(there)
        same(there, before)


@pytest.mark.parametrize("moments", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_a_signal_while_the_host_is_restored_waits(moments: int) -> None:
    """Ctrl-C again and again, at moments of the restoring: each time the host is as before."""
    with campaign_disk() as there:
        before = used(there)
        for place in range(0, 12, 12 // moments):
            shutil.rmtree(there.out, ignore_errors=True)
            with campaign(there) as process:
                process.send_signal(signal.SIGINT)
                time.sleep(0.04 * place)
                for _ in range(5):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.03)
                process.communicate(timeout=PATIENCE_S)
            settings_same(there, before)
            rolled_back(there)
            same(there, before)


Harm = Mapping[str, Callable[[Path], object]]  # by the path in a run directory
DAMAGED: Harm = {
    "journal.jsonl": lambda path: append(path, '{"type":"trial","value":NaN}\n1e999\n'),
    "facts/campaign.json": lambda path: path.write_text('{"x": -Infinity'),
    "spec.toml": lambda path: path.write_text('[stack]\nserver = "gone"\nnothing = 1\n'),
}
REMOVED: Harm = {
    "journal.jsonl": Path.unlink,
    "facts/campaign.json": Path.unlink,
    "spec.toml": Path.unlink,
    "trials": shutil.rmtree,
}
HARMS = {
    f"{name} {word}": {name: spoil}
    for word, harm in (("damaged", DAMAGED), ("removed", REMOVED))
    for name, spoil in harm.items()
}


@pytest.mark.parametrize(
    "harm",
    [
        pytest.param(DAMAGED, id="all damaged"),
        pytest.param(REMOVED, id="all removed"),
        *(pytest.param(HARMS[one], id=one, marks=pytest.mark.slow) for one in HARMS),
    ],
)
def test_rollback_needs_nothing_of_the_run_directory(harm: Harm) -> None:
    """All at once, and each alone: what is damaged may hide what is read after it."""
    with campaign_disk() as there:
        before = used(there)
        killed(there)
        for name, spoil in harm.items():
            spoil(there.out / name)
        rolled_back(there)
        same(there, before)


def test_a_disk_that_is_gone_stops_nothing_else() -> None:
    """All that is still there is restored, and the rest is named."""
    with campaign_disk() as there:
        before = used(there)
        killed(there)
        there.down()
        output = rolled_back(there)
        assert "read_ahead_kb" in output or there.disk in output, output
        ours = [str(there.folder), f"/{there.disk}/", there.disk]
        left = snapshot.difference(before, there.snapshot())
        assert [line for line in left if not any(name in line for name in ours)] == []


def test_one_value_set_by_somebody_else_stays_and_the_others_are_restored() -> None:
    with campaign_disk() as there:
        before = used(there)
        killed(there)
        try:
            SWAPPINESS.write_text("44")
            output = rolled_back(there)
            assert "44" in output
            left = snapshot.difference(before, there.snapshot())
            assert [line for line in left if line.startswith(("sysctl", "queue", "setting"))] == [
                f"sysctl:{SWAPPINESS}: {before[f'sysctl:{SWAPPINESS}']!r} -> '44'"
            ]
        finally:
            SWAPPINESS.write_text(before[f"sysctl:{SWAPPINESS}"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_campaign_killed_at_a_random_moment(seed: int) -> None:
    """Held before, and must stay so: 24 random kills of running campaigns."""
    with campaign_disk() as there:
        before = used(there)
        there.spec(SETTINGS)
        argv = there.run_command()
        quiet = subprocess.DEVNULL
        with subprocess.Popen(argv, env=ENVIRONMENT, stdout=quiet, stderr=quiet) as process:
            time.sleep(random.Random(seed).uniform(0.5, 4.0))
            process.kill()
        rolled_back(there)
        shutil.rmtree(there.out, ignore_errors=True)
        same(there, before)
