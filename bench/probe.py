"""The sampler beside its peers, in one table: cost, missed ticks, effect on the work, size."""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import probe_cost
import probe_effect
import probe_missed
import probe_table as table
from mydyno.model import MydynoError
from mydyno.sample.sampler import NOT_BUILT, probe_binary
from mydyno.server import Instance
from probe_process import Fault
from probe_server import load, private
from probe_tools import Setup, absence, probe, tools, version

PARTS = ("cost", "missed", "effect")
SCRIPT = "oltp_read_write"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="a tool and round (60)")
    parser.add_argument("--rounds", type=int, default=5, help="each tool takes its turn (5)")
    parser.add_argument("--busy-minutes", type=float, default=50, help="missed ticks (50)")
    parser.add_argument("--hour-minutes", type=float, default=60, help="effect on the work (60)")
    parser.add_argument("--block-seconds", type=float, default=20, help="with or without (20)")
    parser.add_argument("--threads", type=int, help="connections of that load (2 a CPU)")
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part")
    parser.add_argument("--tool", action="append", help="only tools whose name holds this")
    parser.add_argument("--binary", type=Path, help="the sampler (the one that is installed)")
    parser.add_argument("--server", default="auto", help="a basedir (the server on PATH)")
    parser.add_argument("--out", type=Path, help="the table goes into this file too")
    return parser.parse_args()


def cost(ask: argparse.Namespace, setup: Setup, folder: Path) -> list[probe_cost.Row]:
    """Return the rows of all tools, measured in turns whose order is drawn again each round."""
    wanted = [
        tool
        for tool in tools()
        if not ask.tool or tool.hz == 0 or any(part in tool.name for part in ask.tool)
    ]
    absent = {tool.name: absence(tool, setup) for tool in wanted}
    costs: dict[str, list[probe_cost.Cost]] = {tool.name: [] for tool in wanted}
    draw = random.Random(ask.rounds)
    for number in range(ask.rounds):
        for tool in draw.sample(wanted, len(wanted)):
            if not absent[tool.name]:
                show(f"round {number + 1} of {ask.rounds}: {tool.name}")
                with scratch(folder) as own:
                    costs[tool.name].append(probe_cost.measure(tool, setup, own, ask.seconds))
    return [
        probe_cost.Row(tool, costs[tool.name], version(tool), absent[tool.name]) for tool in wanted
    ]


def missed(
    ask: argparse.Namespace, setup: Setup, instance: Instance, folder: Path
) -> list[probe_missed.Missed]:
    """Return what our sampler held to at 10 Hz and at 1 Hz with every processor taken."""
    show(f"missed ticks: {ask.busy_minutes:g} minutes with all processors busy")
    pair = [probe("10 Hz", "100ms", server=True), probe("1 Hz", "1s", server=True)]
    with load(instance, folder, SCRIPT, 2 * (os.cpu_count() or 1)) as running:
        watched = setup.and_load(running.pid)
        return probe_missed.measure(pair, watched, folder, ask.busy_minutes * 60)


def effect(
    ask: argparse.Namespace, setup: Setup, instance: Instance, folder: Path
) -> probe_effect.Effect:
    """Return what sampling as in a trial does to sysbench's throughput."""
    show(f"effect on {SCRIPT}: {ask.hour_minutes:g} minutes, with and without in turns")
    tool = probe("mydyno-probe", "1s", server=True, states=True)
    plan = probe_effect.Plan(ask.hour_minutes, ask.block_seconds, ask.rounds)
    with load(instance, folder, SCRIPT, ask.threads) as running:
        watched = setup.and_load(running.pid)
        return probe_effect.measure(tool, watched, running, folder, plan)


def installed() -> Path:
    """Return the sampler that mydyno itself would start."""
    found = probe_binary()
    if not found:
        raise Fault(NOT_BUILT)
    return Path(found)


def show(text: str) -> None:
    """Print the progress to stderr; the table goes to stdout."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Yield a fresh folder that is gone when the block ends."""
    own = Path(tempfile.mkdtemp(dir=folder))
    try:
        yield own
    finally:
        shutil.rmtree(own)


@contextmanager
def place() -> Iterator[Path]:
    """Yield a folder for everything, which the server's own user can pass through."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-bench-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parts(ask: argparse.Namespace, folder: Path) -> Iterator[str]:
    """Yield the table part by part, each when it is measured."""
    wanted = ask.only or PARTS
    with private(folder, ask.server) as instance:
        watched = {"mysqld": instance.pid, "bench": os.getpid()}
        setup = Setup(ask.binary, instance.place.admin, instance.pid, watched)
        yield table.head(ask, instance.version())
        if "cost" in wanted:
            yield table.costs(cost(ask, setup, folder))
        if "missed" in wanted:
            yield table.missed(missed(ask, setup, instance, folder))
        if "effect" in wanted:
            yield table.effect(effect(ask, setup, instance, folder), ask)


def stop(_number: int, _frame: FrameType | None) -> None:
    """End in order, and let nothing interrupt that."""
    catch(signal.SIG_IGN)
    raise KeyboardInterrupt


def catch(handler: signal.Handlers | Callable[[int, FrameType | None], None]) -> None:
    """Give SIGINT and SIGTERM this handler, also where a shell had them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def main() -> int:
    """Measure what is asked for and print it; 3 when it cannot be measured, 130 on Ctrl-C."""
    ask = options()
    catch(stop)
    text: list[str] = []
    try:
        ask.binary = ask.binary or installed()
        ask.threads = ask.threads or 2 * (os.cpu_count() or 1)
        with place() as folder:
            for part in parts(ask, folder):
                print(part, flush=True)
                text.append(part)
    except (Fault, MydynoError) as error:
        show(f"bench-probe: {error}")
        return 3
    except KeyboardInterrupt:
        show("bench-probe: stopped")
        return 130
    if ask.out:
        ask.out.write_text("\n".join(text) + "\n")
    return 0


sys.exit(main())
