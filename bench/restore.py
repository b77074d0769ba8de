"""Snapshots restored, beside `cp -a`, on filesystems made for it: one table."""

import argparse
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Local
from mydyno.lab import LabSpec, Latency, create
from mydyno.snapshot import DirectoryStore, settle

HOST = Local()
GIB, MIB = 1 << 30, 1 << 20
GOAL_S = 1.0  # 10 GiB by reflink
LARGE, SMALL = 8, 200  # files: tables, and what else a server keeps
SLOW_S = 0.001  # of each read on the slow disk, as a cloud's has it


@dataclass(frozen=True, slots=True)
class Case:
    """A filesystem on a device: `slow` means a lab disk whose reads take a millisecond."""

    kind: str
    mkfs: tuple[str, ...]
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{self.kind}, 1 ms a read" if self.slow else self.kind


CASES = (
    Case("xfs", ("mkfs.xfs", "-q", "-m", "reflink=1")),
    Case("btrfs", ("mkfs.btrfs", "-q")),
    Case("ext4", ("mkfs.ext4", "-q")),
    Case("ext4", ("mkfs.ext4", "-q"), slow=True),
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=10, help="size of the data set (10)")
    parser.add_argument("--rounds", type=int, default=3, help="restorations of each kind (3)")
    parser.add_argument("--only", action="append", help="only cases whose name holds this")
    parser.add_argument("--way", action="append", help="only ways whose name holds this")
    parser.add_argument("--folder", type=Path, help="where the images are made (the temporary one)")
    parser.add_argument("--out", type=Path, help="the table goes into this file too")
    return parser.parse_args()


def main() -> int:
    ask = options()
    if os.geteuid():
        print("bench-restore mounts filesystems: run it as root", file=sys.stderr)
        return 2
    parts = [head(ask)]
    print(parts[0], end="")
    for case in CASES:
        if not ask.only or any(part in case.name for part in ask.only):
            parts.append(measured(case, ask))
            print(parts[-1], end="", flush=True)
    if ask.out:
        ask.out.write_text("".join(parts), encoding="utf-8")
    return 0


def measured(case: Case, ask: argparse.Namespace) -> str:
    """Return the lines of one filesystem."""
    size = int((min(ask.gib, 2) if case.slow else ask.gib) * GIB)
    if not shutil.which(case.mkfs[0]):
        return f"{case.name:20} {case.mkfs[0]} is not installed\n"
    with filesystem(case, size, ask.folder) as where:
        print(f"{case.name}: filling {size / GIB:g} GiB", file=sys.stderr)
        store = DirectoryStore(HOST, where / "home", where / "live")
        store.open()
        fill(store.place.live, size)
        store.freeze()
        snapshot = where / "home" / "golden"
        copy = where / "copy"
        ways: dict[str, Callable[[], None]] = {
            store.place.method: lambda: restored(store),
            "cp -a": lambda: copied(snapshot, copy),
        }
        if store.reflinks:
            plain = DirectoryStore(HOST, where / "home", where / "plain", reflinks=False)
            ways[plain.place.method] = lambda: restored(plain)
        ways = {w: f for w, f in ways.items() if not ask.way or any(p in w for p in ask.way)}
        times = in_turns(ways, (snapshot, copy), ask.rounds)
    plain = times.get("cp -a", [])
    return "".join(line(case, size, way, taken, plain) for way, taken in times.items())


def in_turns(
    ways: dict[str, Callable[[], None]], folders: tuple[Path, Path], rounds: int
) -> dict[str, list[float]]:
    """Return the seconds of each way, each round in another order, the snapshot uncached."""
    snapshot, copy = folders
    times: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(rounds):
        order = list(ways)
        random.Random(turn).shuffle(order)
        for way in order:
            shutil.rmtree(copy, ignore_errors=True)
            forget(snapshot)
            began_s = time.monotonic()
            ways[way]()
            times[way].append(time.monotonic() - began_s)
    return times


def restored(store: DirectoryStore) -> None:
    store.restore("")
    settle(HOST, store)


def copied(snapshot: Path, copy: Path) -> None:
    run("cp", "-a", "--reflink=never", "-T", snapshot, copy)
    run("sync", "-f", copy)


def fill(folder: Path, size: int) -> None:
    """Write a data set: a few large files, many small ones, a sparse one."""
    block = random.Random(1).randbytes(16 * MIB)
    for number in range(LARGE):
        with (folder / f"table{number}.ibd").open("wb") as file:
            for _ in range(size // LARGE // len(block)):
                file.write(block)
    for number in range(SMALL):
        (folder / f"small{number}.frm").write_bytes(block[: 8192 + number])
    with (folder / "sparse.ibd").open("wb") as file:
        file.truncate(256 * MIB)


def forget(folder: Path) -> None:
    """Drop a folder's files from the page cache, so that each way reads them from the disk."""
    run("sync", "-f", folder)
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@contextmanager
def filesystem(case: Case, size: int, folder: Path | None) -> Iterator[Path]:
    """Mount a fresh filesystem with room for three copies; unmount and remove it at the end."""
    room = max(3 * size + GIB, 2 * GIB) // (4 * MIB) * (4 * MIB)
    with tempfile.TemporaryDirectory(prefix="mydyno-bench-", dir=folder) as name:
        where = Path(name) / "mnt"
        where.mkdir()
        with device(case, room, Path(name)) as disk:
            run(*case.mkfs, disk)
            run("mount", disk, where)
            try:
                yield where
            finally:
                run("umount", where)


@contextmanager
def device(case: Case, room: int, folder: Path) -> Iterator[str]:
    if case.slow:
        spec = LabSpec("bench-restore", room, latency=Latency(SLOW_S, 0.0, 0.0))
        lab = create(HOST, spec, folder / "lab")
        try:
            lab.cap(on=True)
            yield lab.device
        finally:
            lab.remove()
        return
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(room)
    disk = run("losetup", "--find", "--show", "--direct-io=on", image).strip()
    try:
        yield disk
    finally:
        run("losetup", "--detach", disk)


def head(ask: argparse.Namespace) -> str:
    cpu = ""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
        cpu = next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), "")
    return (
        f"machine  {cpu}, {os.cpu_count()} cores, kernel {platform.release()}, "
        f"{time.strftime('%Y-%m-%d')}\n"
        f"data     {LARGE} large files, {SMALL} small ones, one of 256 MiB that is a hole\n"
        "time     until all is on the disk (sync -f), checks included, the snapshot not cached;"
        f"\n         median [least..most] of {ask.rounds}, in turns\n\n"
        f"{'filesystem':20} {'GiB':>4} {'way':16} {'seconds':>22} {'MB/s':>7} {'x cp -a':>8}\n"
    )


def line(case: Case, size: int, way: str, taken: list[float], plain: list[float]) -> str:
    middle = statistics.median(taken)
    seconds = f"{middle:.2f} [{min(taken):.2f}..{max(taken):.2f}]"
    times = f"{statistics.median(plain) / middle:.2f}" if plain else ""
    goal = ""
    if way == "reflink":
        verdict = "met" if middle <= GOAL_S else "MISSED"
        goal = f"  goal: {GOAL_S:g} s for 10 GiB: {verdict}" if size >= 10 * GIB else ""
    rate = size / middle / 1e6
    return (
        f"{case.name:20} {size / GIB:>4.3g} {way:16} {seconds:>22} {rate:>7.0f} {times:>8}{goal}\n"
    )


def run(*argv: object) -> str:
    done = subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
