"""A sampler as one writes it with psutil: once a second, host-wide and of the processes named."""

import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType

import psutil


def leaves(value: object) -> int:
    """Return how many numbers a value of psutil's holds."""
    if isinstance(value, dict):
        return sum(map(leaves, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(leaves, value))
    return 1


def host() -> Iterator[object]:
    yield psutil.cpu_times(percpu=True)
    yield psutil.cpu_stats()
    yield psutil.getloadavg()
    yield psutil.virtual_memory()
    yield psutil.swap_memory()
    yield psutil.disk_io_counters(perdisk=True)
    yield psutil.net_io_counters(pernic=True)


def process(watched: psutil.Process) -> Iterator[object]:
    with watched.oneshot():
        yield watched.cpu_times()
        yield watched.memory_info()
        yield watched.num_threads()
        yield watched.num_ctx_switches()
        yield watched.io_counters()


def sample(processes: list[psutil.Process]) -> int:
    """Take one sample and return how many numbers it has."""
    values = list(host())
    for watched in processes:
        values += process(watched)
    return leaves(values)


def main() -> None:
    """Sample until SIGTERM; print how many numbers one sample has."""
    processes = [psutil.Process(int(pid)) for pid in sys.argv[1:]]
    taken = 0

    def stop(_number: int, _frame: FrameType | None) -> None:
        print(taken, flush=True)
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    deadline = time.monotonic()
    while True:
        taken = sample(processes)
        deadline += 1.0
        time.sleep(max(0.0, deadline - time.monotonic()))


main()
