"""Striped labs: what their caps promise, what fio measures, and that every byte comes back."""

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mydyno.host import Local
from mydyno.lab import LabSpec, Stripe, create
from mydyno.lab.device import IoMeasurement, IoPattern, LabDevice, measure
from mydyno.model import Action

HOST = Local()
DISKS = (1, 2, 4, 8)
SIZE = 2 << 30
CAPPED = (
    ("randread", 4 << 10, 32),
    ("randread", 16 << 10, 32),
    ("randwrite", 4 << 10, 32),
    ("randwrite", 16 << 10, 32),
    ("read", 256 << 10, 16),
    ("write", 256 << 10, 16),
)
FREE = (("randread", 16 << 10, 32), ("randwrite", 16 << 10, 32), ("read", 256 << 10, 16))
VERIFY = (
    *("--rw=randwrite", "--iodepth=32", "--bssplit=4k/40:16k/30:64k/20:256k/5:1m/3:2m/2"),
    *("--verify=crc32c", "--verify_fatal=1", "--verify_state_save=0", "--do_verify=1"),
    *("--size=256m", "--randrepeat=0", "--direct=1", "--ioengine=libaio", "--output-format=json"),
)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--class", dest="disk_class", default="azure-p15")
    asked.add_argument("--seconds", type=int, default=5)
    asked.add_argument("--chunk", type=int, default=64, help="KiB")
    given = asked.parse_args()
    machine = f"{platform.node()}: {os.cpu_count()} cores, Linux {platform.release()}"
    print(f"{machine}, load average {os.getloadavg()[0]:.1f}\n")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        capped(Path(folder), given.disk_class, given.chunk << 10, given.seconds)
        free(Path(folder), given.chunk << 10, given.seconds)
        intact(Path(folder))


def capped(folder: Path, disk_class: str, chunk: int, seconds: int) -> None:
    print(f"Promised and measured: disks of {disk_class}, empty buckets, chunks of {chunk >> 10}K")
    head = ("disks", "load", "promised", "measured", "off by", "decided by")
    print(row(head) + "\n" + row(["---"] * len(head)))
    for disks in DISKS:
        device = up(folder, disks, chunk, disk_class)
        try:
            for shape in CAPPED:
                print_row(disks, best(device, shape, seconds))
        finally:
            device.remove()


def print_row(disks: int, reading: IoMeasurement) -> None:
    promise = reading.expected
    off = reading.rate / (promise.rate or reading.rate) - 1
    load = f"{reading.rw} {reading.block >> 10}K"
    cells = (disks, load, f"{promise.rate:,.0f}/s", f"{reading.rate:,.0f}/s", f"{off:+.1%}")
    print(row([*cells, promise.by]), flush=True)


def best(device: LabDevice, shape: tuple[str, int, int], seconds: int) -> IoMeasurement:
    """The nearest of three: what else runs on a shared machine only takes away."""
    stripe = device.state.spec.stripe
    rw, block, depth = shape
    block = min(block, stripe.chunk) if stripe.disks > 1 else block
    gauge = IoPattern(rw, block, max(1, min(depth, 128 // stripe.disks)))
    found: list[IoMeasurement] = []

    def begin() -> Mapping[str, Any]:
        device.credits()
        return device.stats()

    while len(found) < 3 and not (found and found[-1].deviation < 0.02 and found[-1].expected.rate):
        found.append(measure(HOST, device.device, gauge, stripe, seconds, begin))
    return min(found, key=lambda r: (r.deviation, -r.rate))


def free(folder: Path, chunk: int, seconds: int) -> None:
    print(f"\nWithout caps, beside one disk: what striping costs, chunks of {chunk >> 10}K")
    print(row(["disks", *(f"{rw} {block >> 10}K" for rw, block, _ in FREE)]) + "\n" + row("-" * 4))
    for disks in DISKS:
        device = up(folder, disks, chunk, "")
        try:
            rates = [plain(device, rw, block, depth, seconds) for rw, block, depth in FREE]
        finally:
            device.remove()
        print(row([disks, *(f"{rate:,.0f}/s" for rate in rates)]), flush=True)


def plain(device: LabDevice, rw: str, block: int, depth: int, seconds: int) -> float:
    """One job over the entire device, the best of three."""
    job = ("--name=free", f"--filename={device.device}", f"--rw={rw}", f"--bs={block}")
    how = (f"--iodepth={depth}", "--direct=1", "--ioengine=libaio", "--time_based")
    when = (f"--runtime={seconds}", "--randrepeat=0", "--output-format=json")
    return max(iops(("fio", *job, *how, *when), rw) for _ in range(3))


def iops(argv: tuple[str, ...], rw: str) -> float:
    raw = HOST.run(Action(argv), timeout_s=600).check().stdout
    job = msgspec.json.decode(raw[raw.index(b"{") :])["jobs"][0]
    return float(job["write" if "write" in rw else "read"]["iops"])


def intact(folder: Path) -> None:
    print("\nfio --verify, depth 32, blocks of 4K to 2M: before a freeze, over it, after a drop")
    print(row(["disks", "chunk", "wrong bytes"]) + "\n" + row("---"))
    for disks, chunk in ((1, 512), (2, 4), (3, 12), (4, 64), (8, 512)):
        device = up(folder, disks, chunk << 10, "")
        try:
            verify(device)
            device.freeze()
            verify(device)
            device.drop()
            verify(device)
        finally:
            device.remove()
        print(row([disks, f"{chunk}K", "none"]), flush=True)


def verify(device: LabDevice) -> None:
    job = ("fio", "--name=verify", f"--filename={device.device}", *VERIFY)
    done = HOST.run(Action(job), timeout_s=1200)
    if done.returncode:
        sys.exit(done.stderr.decode())


def up(folder: Path, disks: int, chunk: int, disk_class: str) -> LabDevice:
    spec = LabSpec(f"bench-{os.getpid()}", SIZE, disk_class, stripe=Stripe(disks, chunk))
    return create(HOST, spec, folder / "lab")


def row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


if __name__ == "__main__":
    main()
