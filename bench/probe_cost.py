"""What each sampler costs: CPU time, memory, bytes on disk, and CPU time in the server."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from probe_process import (
    cpu_ns,
    end,
    peak_bytes,
    refuse_dead,
    size,
    sleep_until,
    started,
    tree_cpu_ns,
)
from probe_scrape import scraping
from probe_tools import Setup, Tool

SETTLE_S = 3.0  # start-up, and the first sample, are not what a running sampler costs
HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Cost:
    """One run of one tool; shares are of one core."""

    share: float
    server_share: float
    peak: int
    hour_bytes: float
    values: float


@dataclass(frozen=True, slots=True)
class Row:
    """All runs of one tool."""

    tool: Tool
    costs: list[Cost]
    version: str = ""
    absent: str = ""

    def middle(self, name: str) -> float:
        """Return the median over the runs."""
        return median(getattr(cost, name) for cost in self.costs)

    def spread(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest run."""
        seen = [getattr(cost, name) for cost in self.costs]
        return min(seen), max(seen)


def measure(tool: Tool, setup: Setup, folder: Path, seconds: float) -> Cost:
    """Run a tool for a while and return what it cost in its steady state."""
    file, log = folder / "sampled", folder / "log"
    with started(tool.argv(setup, file), log) as process, _scraped(tool) as answers:
        sleep_until(time.monotonic() + SETTLE_S)
        refuse_dead(process, tool.name, log)
        begin, used, served, had = _reading(process.pid, setup, file)
        sleep_until(begin + seconds)
        refuse_dead(process, tool.name, log)
        now, used_then, served_then, has = _reading(process.pid, setup, file)
        peak = peak_bytes(process.pid)
        values = answers()
        end(process)
        took = now - begin
        return Cost(
            share=(used_then - used) / 1e9 / took,
            server_share=(served_then - served) / 1e9 / took,
            peak=peak,
            hour_bytes=had + (has - had) / took * HOUR_S if tool.writes else 0.0,
            values=values or tool.values(file, log),
        )


def _reading(pid: int, setup: Setup, file: Path) -> tuple[float, int, int, int]:
    return time.monotonic(), tree_cpu_ns(pid), cpu_ns(setup.server), size(file)


@contextmanager
def _scraped(tool: Tool) -> Iterator:
    if not tool.port:
        yield lambda: 0
        return
    with scraping(tool.port) as scraper:
        yield scraper.values


def idle_share(rows: list[Row]) -> float:
    """Return the server's own share of a core when nobody asks it anything."""
    return rows[0].middle("server_share")
