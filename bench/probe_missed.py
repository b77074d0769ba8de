"""Ticks that the sampler misses, and how late it is, when every processor is taken."""

import os
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from probe_cost import SETTLE_S
from probe_process import end, refuse_dead, size, sleep_until, started, tree_cpu_ns
from probe_read import Ticks, ticks
from probe_tools import Setup, Tool

_SPIN = [sys.executable, "-c", "while True: pass"]


@dataclass(frozen=True, slots=True)
class Missed:
    """What one sampler missed while the processors were busy."""

    tool: Tool
    ticks: Ticks
    share: float
    hour_bytes: float

    @property
    def values(self) -> int:
        """Return how many values its last tick had."""
        return self.ticks.values


def measure(pair: list[Tool], setup: Setup, folder: Path, seconds: float) -> list[Missed]:
    """Run samplers together for a while beside one spinning process a processor."""
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            stack.enter_context(started(_SPIN, folder / "spin.log"))
        files = [folder / f"busy{number}" for number, _ in enumerate(pair)]
        begin = time.monotonic()
        running = [
            stack.enter_context(started(tool.argv(setup, file), file.with_suffix(".log")))
            for tool, file in zip(pair, files, strict=True)
        ]
        sleep_until(begin + SETTLE_S)
        had = [size(file) for file in files]
        sleep_until(begin + seconds)
        for tool, file, process in zip(pair, files, running, strict=True):
            refuse_dead(process, tool.name, file.with_suffix(".log"))
        used = [tree_cpu_ns(process.pid) / 1e9 / seconds for process in running]
        for process in running:
            end(process)
        hours = [
            first + (size(file) - first) / (seconds - SETTLE_S) * 3600.0
            for first, file in zip(had, files, strict=True)
        ]
    return [
        Missed(tool, ticks(file), share, hour)
        for tool, file, share, hour in zip(pair, files, used, hours, strict=True)
    ]
