"""Parser for the text output of fio 1 to 3 for one job."""

import re

from mydyno.workloads.foreign.fio_jobs import DIRECTIONS, Direction, Job, percentile_name
from mydyno.workloads.foreign.number import brief, shown, size

DEFINED = re.compile(
    r"^\s*(?P<name>\S.*?): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+)(?:\(\d+\))?, bs=(?P<bs>.*?), "
    r"ioengine=(?P<ioengine>\w+), iodepth=(?P<iodepth>\d+)"
)
JOB = re.compile(
    r"^\s*(?P<name>\S.*?): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): "
    r"err= *(?P<error>\d+).*?: pid=(?P<pid>\d+)"
)
VERSION = re.compile(r"^\s*fio[- ](\d\S*)\s*$")
STATUS = re.compile(r"^\s*Run status group \d+ \(all jobs\)|^\s*Disk stats \(read/write\)")
DETAIL = re.compile(
    r"^\s*(?:\.\.\.$|Starting \d+|Jobs: \d+|[\w-]+: Laying out|READ: |WRITE: |TRIM: |"
    r"\w[\w-]*: ios=|bw \(|bw=|iops +:|lat \(|cpu +:|IO depths|submit +:|complete +:|latency +:|"
    r"errors +:|slat |\||fsync/|sync \(|sync percent|fio: )"
)
_WAY = re.compile(r"^\s*(?P<way>read|write|trim) ?: *(?:io=(?P<io>[\d.]+\w*)|IOPS=)")
_RUNTIME = re.compile(r"runt= *(\d+) ?msec|/ *(\d+) ?msec\)")
_IOPS = re.compile(r"(?:iops=|IOPS=) *([\d.]+[kKMG]?)")
_MOVED = re.compile(r"\(([\d.]+\w+)/\d+ ?msec\)")
_LATENCY = re.compile(
    r"^\s*clat \((?P<unit>[num]sec)\) ?: min= *[\d.]+\w?, max= *(?P<max>[\d.]+[kKMG]?), "
    r"avg= *(?P<mean>[\d.]+[kKMG]?)"
)
_PERCENTILES = re.compile(r"^\s*(?P<kind>\w+) percentiles \((?P<unit>[num]sec)\)")
_PERCENTILE = re.compile(r"([\d.]+)th=\[ *([\d.]+[kKMG]?)\]")
_ISSUED = re.compile(
    r"^\s*issued (?:r/w|rwts?|r/w/d)? *: *total=r?=?(\d+)[/,](?:w=)?(\d+)(?:[/,](?:d=)?(\d+))?"
)
_SYNC = re.compile(r"^\s*fsync/fdatasync")
_RANGE = re.compile(r"[\d.]+[kKMmGg]?i?B?(?:-[\d.]+[kKMmGg]?i?B?)?")
_IN_S = {"nsec": 1e-9, "usec": 1e-6, "msec": 1e-3}


class JobLines:
    """Takes the lines below a job's heading into the job."""

    def __init__(self, found: re.Match[str], number: int) -> None:
        self.job = Job(
            found["name"], int(found["group"]), int(found["jobs"]), int(found["error"]), number
        )
        self._way: Direction | None = None
        self._percentiles_s = 0.0

    def take(self, number: int, line: str) -> bool:
        """Parse a line; return whether it belongs to the job."""
        taken = self._direction(number, line) or self._counts(line) or self._latency(line)
        return taken or self._percentiles(line)

    def _direction(self, number: int, line: str) -> bool:
        """Take the first line of a direction; without a count of requests, its rate gives one."""
        if _SYNC.match(line):
            self._way = None
            return True
        found = _WAY.match(line)
        if not found:
            return False
        self._way = way = self.job.ways.setdefault(found["way"], Direction())
        runtime, iops = _RUNTIME.search(line), _IOPS.search(line)
        moved = found["io"] or (m[1] if (m := _MOVED.search(line)) else "")
        way.line = number
        way.runtime_ms = float(runtime[1] or runtime[2]) if runtime else 0.0
        way.printed = shown(iops[1]) if iops else None
        way.size_bytes = size(moved).value if moved else 0.0
        way.requests = way.printed.value * way.runtime_ms / 1e3 if way.printed else 0.0
        return True

    def _counts(self, line: str) -> bool:
        found = _ISSUED.match(line)
        for name, count in zip(DIRECTIONS, found.groups(), strict=True) if found else ():
            if count and name in self.job.ways:
                self.job.ways[name].requests = float(count)
        return found is not None

    def _latency(self, line: str) -> bool:
        found = _LATENCY.match(line)
        for name in ("mean", "max") if found and self._way else ():
            value = shown(found[name]).value * _IN_S[found["unit"]]  # type: ignore[index]
            self._way.latencies[name] = value  # type: ignore[union-attr]
        return found is not None

    def _percentiles(self, line: str) -> bool:
        if found := _PERCENTILES.match(line):
            self._percentiles_s = _IN_S[found["unit"]] if found["kind"] == "clat" else 0.0
            return True
        if not line.lstrip().startswith("|"):
            return False
        for percent, value in _PERCENTILE.findall(line) if self._way else ():
            name = percentile_name(float(percent))
            if name and self._way and self._percentiles_s:
                self._way.latencies[name] = shown(value).value * self._percentiles_s
        return True


def block(text: str, way: str) -> str:
    """Return the block size of ``4K-4K/4K-4K`` or ``(R) 4096B-4096B, (W) …`` as 4k."""
    ranges = _RANGE.findall(text)
    own = ranges[:2] if "rw" in way else ranges[1:2] if "write" in way else ranges[:1]
    return ",".join(dict.fromkeys(_between(one) for one in own or ranges[:1]))


def _between(text: str) -> str:
    return "-".join(dict.fromkeys(brief(size(end).value) for end in text.split("-")))
