"""`mydyno inspect --live`: load of a host, each second, on a terminal or as lines."""

import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mydyno.cli.terminal import own, visible
from mydyno.host import Host, Remote, remote_work_folder, uploaded_program
from mydyno.model import Action, HostError, SpecError
from mydyno.report import units
from mydyno.sample import NOT_BUILT, probe_binary
from mydyno.sample.live import Moment, Values, moments

_PROCESSORS = {
    "cpu.user": "cores",
    "cpu.system": "cores",
    "cpu.irq": "cores",
    "cpu.iowait": "cores",
    "cpu.steal": "cores",
    "cpu.idle": "cores",
    "cpu.running": "",
    "cpu.context_switches": "/s",
}
_PRESSURE = {"psi.cpu": "share", "psi.io": "share", "psi.memory": "share"}
_MEMORY = {"memory.total": "B", "memory.available": "B", "memory.dirty": "B"}
_SERVER = {
    "queries": "/s",
    "threads_running": "",
    "innodb.hit_ratio": "share",
    "innodb.dirty_share": "share",
    "innodb.checkpoint_age": "B",
    "innodb.redo_rate": "B/s",
    "innodb.reads": "/s",
    "innodb.writes": "/s",
    "innodb.row_lock_waits": "/s",
}
_SECTIONS = {
    "processors": _PROCESSORS,
    "waiting": _PRESSURE,
    "memory": _MEMORY,
    "server": _SERVER,
}
_DISK = {
    "reads": "/s",
    "writes": "/s",
    "flushes": "/s",
    "read_bytes": "B/s",
    "write_bytes": "B/s",
    "read_latency": "s",
    "write_latency": "s",
    "flush_latency": "s",
    "queue": "",
}
_INTERFACE = {"rx_bytes": "B/s", "tx_bytes": "B/s"}
_FIRST, _COLUMN = 10, 11  # characters of a table's first column, and of the others


def live(host: Host, *, count: int | None, server: Path | None, json: bool) -> None:
    """Show each second until Ctrl-C, or `count` of them; `server` is an option file there."""
    with _ticks(host, server) as ticks:
        shown = _counted(ticks, count)
        try:
            if json:
                _objects(shown)
            elif sys.stdout.isatty():
                _screen(shown)
            else:
                _lines(shown)
        except KeyboardInterrupt:
            return  # the user has ended it


@contextmanager
def _ticks(host: Host, server: Path | None) -> Iterator[Iterator[Moment]]:
    binary = probe_binary()
    if not binary:
        raise HostError(NOT_BUILT)
    if server is not None and host.run(Action(("test", "-f", str(server)))).returncode:
        raise SpecError(f"{server}: no such file; name a client option file with [client]")
    with (
        tempfile.TemporaryDirectory(prefix="mydyno-live-") as here,
        remote_work_folder(host, Path(here)) as folder,
    ):
        out, errors = folder / "probe.bin", folder / "probe.err"
        asked = ["--server-defaults", str(server)] if server else []
        asked += [] if isinstance(host, Remote) else ["--owner", str(os.getpid())]
        argv = (uploaded_program(host, binary), "sample", "--out", str(out), *asked)
        running = host.start(Action(argv), stderr=errors)
        try:
            yield moments(out, lambda: running.returncode() is None, partial(_grown, host, out))
        except HostError as error:  # the sampler's message is more precise
            printed = host.run(Action(("cat", str(errors)))).stdout.decode(errors="replace")
            raise HostError(printed.strip() or str(error)) from error
        finally:
            running.stop(grace_s=2.0)
            for _ in running.lines():
                pass  # it prints nothing; reading to the end closes the pipe


def _grown(host: Host, out: Path, at: int) -> bytes:
    """Return what the sampler has written since `at`."""
    return host.run(Action(("tail", "-c", f"+{at + 1}", str(out)))).stdout


def _counted(ticks: Iterator[Moment], count: int | None) -> Iterator[Moment]:
    for number, moment in enumerate(ticks, 1):
        yield moment
        if number == count:
            return


def _objects(shown: Iterator[Moment]) -> None:
    for moment in shown:
        sys.stdout.write(msgspec.json.encode(moment).decode() + "\n")
        sys.stdout.flush()


def _lines(shown: Iterator[Moment]) -> None:
    for moment in shown:
        line = [_clock(moment)]
        for heading, units_of, rows in _sections(moment):
            for row, values in rows.items():
                words = [f"{_label(n)} {_text(values[n], u)}" for n, u in units_of.items()]
                line.append(f"{row or heading}: {', '.join(words)}")
        sys.stdout.write("  ".join(line) + "\n")
        sys.stdout.flush()


def _screen(shown: Iterator[Moment]) -> None:
    console = Console(file=own(sys.stdout))
    with Live(console=console, screen=False, auto_refresh=False) as view:
        for moment in shown:
            view.update(_page(moment, console.width), refresh=True)


def _page(moment: Moment, width: int) -> Group:
    """Return all tables; one that is too wide is split into several."""
    fit = max(1, (width - _FIRST) // _COLUMN)
    tables = [
        _table(heading, dict(list(units_of.items())[at : at + fit]), rows)
        for heading, units_of, rows in _sections(moment)
        for at in range(0, len(units_of), fit)
    ]
    return Group(Text(_clock(moment)), *tables)


def _table(heading: str, units_of: Mapping[str, str], rows: Mapping[str, Values]) -> Table:
    table = Table(box=None, padding=0)
    table.add_column(heading, width=_FIRST)
    for name in units_of:
        table.add_column(_label(name), justify="right", width=_COLUMN, overflow="fold")
    for row, values in rows.items():
        table.add_row(
            Text(visible(row)), *(_text(values[name], unit) for name, unit in units_of.items())
        )
    return table


def _sections(moment: Moment) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, Values]]]:
    """Yield heading, the names that have a value with their units, and the rows of each table."""
    for heading, units_of in _SECTIONS.items():
        known = {name: unit for name, unit in units_of.items() if name in moment.values}
        if known:
            yield heading, known, {"": moment.values}
    for heading, units_of, found in (
        ("disk", _DISK, moment.disks),
        ("interface", _INTERFACE, moment.interfaces),
    ):
        if found:
            missing = dict.fromkeys(units_of, math.nan)
            yield heading, units_of, {row: missing | dict(values) for row, values in found.items()}


def _clock(moment: Moment) -> str:
    return time.strftime("%H:%M:%S", time.localtime(moment.wall_s))


def _label(name: str) -> str:
    return name.rpartition(".")[2].replace("_", " ")


def _text(value: float, unit: str) -> str:
    if math.isnan(value):
        return units.NOTHING
    return f"{value:.2f}" if unit == "cores" else units.quantity(value, unit)
