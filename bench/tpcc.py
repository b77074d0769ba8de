"""TPC-C under sysbench beside go-tpc: rows, load, consistency and rates on the same server."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import tpcc_ours as ours
import tpcc_peer as peer
from mydyno.loads import Target
from mydyno.model import MydynoError
from mydyno.server import Instance
from probe_process import Fault
from probe_table import model
from tpcc_server import private
from tpcc_table import Column, rendered

_CHECK_S = 600.0  # one of its queries is quadratic in the orders of a district
OURS, THEIRS = "by our 12 conditions", "by go-tpc check"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warehouses", type=int, default=4, help="of each tool (4)")
    parser.add_argument("--threads", type=int, default=4, help="of the load (4)")
    parser.add_argument("--seconds", type=int, default=60, help="each run (60)")
    parser.add_argument("--rounds", type=int, default=5, help="each tool takes its turn (5)")
    parser.add_argument("--server", default="auto", help="a basedir (the server on PATH)")
    parser.add_argument("--out", type=Path, help="the table goes into this file too")
    return parser.parse_args()


def head(ask: argparse.Namespace, version: str) -> str:
    """Return what machine this is and what was asked of it."""
    return (
        f"machine  {model()}, {os.cpu_count()} cores, kernel {platform.release()}, "
        f"{time.strftime('%Y-%m-%d')}; load average {os.getloadavg()[0]:.1f}\n"
        f"server   {version}, private, loopback TCP, 1 GiB of buffer pool, commits not synced\n"
        f"asked    {ask.warehouses} warehouses, {ask.threads} threads; rates of {ask.rounds} runs "
        f"of {ask.seconds} s each, the tools in turns\n"
    )


def load_ours(ask: argparse.Namespace, instance: Instance, target: Target) -> Column:
    meter = ours.Meter(instance)
    steps = ours.load(ours.cell(ask.warehouses, ask.threads), target, instance)
    column = Column(load=meter.cost(), steps=steps)
    column.counts = ours.counts(instance, "sbtest", "1")
    return column


def load_theirs(ask: argparse.Namespace, instance: Instance) -> Column:
    column = Column()
    if not peer.found():
        show(f"{peer.BINARY} is not there: its column stays empty; packaging/go-tpc.sh fetches it")
        return column
    peer.admit(instance)
    size = (f"--warehouses={ask.warehouses}", f"-T={ask.threads}")
    meter = ours.Meter(instance)
    peer.tpcc(instance, "prepare", peer.SCHEMA, "--no-check", *size)
    column.load = meter.cost()
    column.counts = ours.counts(instance, peer.SCHEMA, "")
    return column


def turns(
    ask: argparse.Namespace, instance: Instance, target: Target, columns: tuple[Column, Column]
) -> None:
    """Run both in turns, so that a drift of the machine falls on both."""
    size = (f"--warehouses={ask.warehouses}", f"-T={ask.threads}", f"--time={ask.seconds}s")
    for number in range(1, ask.rounds + 1):
        show(f"round {number} of {ask.rounds}")
        cell = ours.cell(ask.warehouses, ask.threads)
        columns[0].rates.append(ours.rates(cell, target, ask.seconds, number))
        if columns[1].load:
            output = peer.tpcc(instance, "run", peer.SCHEMA, *size)
            columns[1].rates.append(peer.rates(output))


def check(
    ask: argparse.Namespace, instance: Instance, target: Target, columns: tuple[Column, Column]
) -> None:
    """Hold each tool's data against both tools' conditions."""
    cell = ours.cell(ask.warehouses, ask.threads)
    columns[0].checks[OURS] = ours.checked(cell, target)
    if columns[1].load:
        size = (f"--warehouses={ask.warehouses}", "--check-all")
        peer.mirror(instance, "gotpc_mirror")
        columns[1].checks[OURS] = ours.checked(cell, replace(target, database="gotpc_mirror"))
        for column, schema in zip(columns, (peer.VIEWS, peer.SCHEMA), strict=True):
            column.checks[THEIRS] = their_check(instance, schema, size)


def their_check(instance: Instance, schema: str, size: tuple[str, ...]) -> str:
    """Return the result of go-tpc's own check of a schema."""
    try:
        peer.tpcc(instance, "check", schema, *size, patience_s=_CHECK_S)
    except Fault as error:
        return str(error)
    except subprocess.TimeoutExpired:
        return f"no answer in {_CHECK_S:.0f} s"
    return "hold"


def show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def place() -> Iterator[Path]:
    """Yield a folder for everything, which the server's own user can pass through."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measured(ask: argparse.Namespace) -> str:
    with place() as folder, private(folder, ask.server) as (instance, target):
        text = head(ask, instance.version())
        columns = load_ours(ask, instance, target), load_theirs(ask, instance)
        turns(ask, instance, target, columns)
        check(ask, instance, target, columns)
        return f"{text}\n{rendered(ask.warehouses, *columns)}"


def main() -> int:
    """Measure and print; 3 when it cannot be measured."""
    ask = options()
    try:
        text = measured(ask)
    except (Fault, MydynoError) as error:
        show(f"bench-tpcc: {error}")
        return 3
    print(text)
    if ask.out:
        ask.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
