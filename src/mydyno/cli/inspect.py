"""`mydyno inspect`: facts of a host, its servers and tools, what is missing; its load, live."""

import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mydyno.cli.machine import machine
from mydyno.cli.terminal import (
    HostOption,
    Json,
    LiveServer,
    own,
    print_json,
    print_message,
    print_result,
    visible,
    width,
)
from mydyno.host import LOCAL, Host, Remote, halt, reach, remote_work_folder, uploaded_program
from mydyno.lab import available
from mydyno.model import Action, HostError, SpecError
from mydyno.report import units
from mydyno.report.machine import render_machine_text
from mydyno.sample import NOT_BUILT, facts, probe_binary
from mydyno.sample.live import Moment, Values, moments
from mydyno.server import find
from mydyno.testbed.lock import open_campaigns

_TOOLS = ("sysbench", "fio", "mkfs.xfs", "mkfs.btrfs", "setpriv", "losetup", "findmnt")


Watch = Annotated[bool, typer.Option("--live", help="Show its load, each second.")]
Count = Annotated[int | None, typer.Option(help="With --live: end after so many seconds.", min=1)]


File = Annotated[
    Path | None,
    typer.Argument(help="A file of mydyno-probe sample, instead of a host.", metavar="FILE"),
]


def inspect(
    file: File = None,
    *,
    host: HostOption = LOCAL,
    live: Watch = False,
    count: Count = None,
    server: LiveServer = None,
    json: Json = False,
) -> None:
    """Show a host: hardware, kernel, servers and tools."""
    if file is not None:
        if live or count or server or host != LOCAL:
            raise SpecError(f"{file}: a file is shown without other options; leave them out")
        found, curves = machine(file)
        print_result(found, lambda: render_machine_text(found, curves, width()), json=json)
        return None
    if live:
        return _watch(reach(host), count=count, server=server, json=json)
    if count or server:
        raise SpecError("--count and --server-defaults need --live; add it")
    there = reach(host)
    for line in open_campaigns(there, host):
        print_message(f"warning: {line}")
    return _inventory(there, json=json)


class FoundServer(msgspec.Struct, frozen=True):
    """The server that ``server = "auto"`` takes; `version` is ``[10, 11, 6]``."""

    program: str
    flavour: str
    version: tuple[int, ...]
    text: str


class Inspection(msgspec.Struct, frozen=True):
    """What a host is and has; `facts` holds what else was read of it, by name.

    `server_problem` and `lab_problem` are why it has no server and can make no lab disk, empty
    where it has and can.  `tools` holds the path of each tool, None where it is missing.
    """

    memory_bytes: int
    cores: int
    schedulers: tuple[str, ...]
    facts: dict[str, str]
    server: FoundServer | None
    server_problem: str
    lab_problem: str
    tools: dict[str, str | None]


def _inventory(host: Host, *, json: bool) -> None:
    known = facts(host)
    server, problem = _server(host)
    found = Inspection(
        memory_bytes=known.memory_bytes,
        cores=known.cores,
        schedulers=known.schedulers,
        facts=dict(known.details),
        server=server,
        server_problem=problem,
        lab_problem=available(host),
        tools={tool: _where(host, tool) for tool in _TOOLS},
    )
    print_result(found, lambda: _text_of(found), json=json)


def _text_of(found: Inspection) -> str:
    server = f"{found.server.text} ({found.server.program})" if found.server else ""
    sections = {
        "host": found.facts,
        "disks": {"I/O schedulers": ", ".join(found.schedulers) or "none found"},
        "server": {"found": server or found.server_problem},
        "lab disks": {"loop": found.lab_problem or "available"},
        "tools": {tool: where or "missing" for tool, where in found.tools.items()},
    }
    return "".join(
        f"{section}\n" + "".join(f"  {name:<24} {value}\n" for name, value in rows.items())
        for section, rows in sections.items()
    )


def _server(host: Host) -> tuple[FoundServer | None, str]:
    try:
        build = find(host, "auto")
    except SpecError as error:
        return None, str(error)
    return FoundServer(str(build.mysqld), build.flavour, build.version, build.description), ""


def _where(host: Host, tool: str) -> str | None:
    folders = ("usr/local/bin", "usr/bin", "usr/sbin", "sbin")
    done = host.run(Action(("find", *(f"/{f}/{tool}" for f in folders), "-maxdepth", "0")))
    return next(iter(done.stdout.decode().split()), None)


_SECTIONS = {
    "processors": {
        "cpu.user": "cores",
        "cpu.system": "cores",
        "cpu.irq": "cores",
        "cpu.iowait": "cores",
        "cpu.steal": "cores",
        "cpu.idle": "cores",
        "cpu.running": "",
        "cpu.context_switches": "/s",
    },
    "waiting": {"psi.cpu": "share", "psi.io": "share", "psi.memory": "share"},
    "memory": {"memory.total": "B", "memory.available": "B", "memory.dirty": "B"},
    "server": {
        "queries": "/s",
        "threads_running": "",
        "innodb.hit_ratio": "share",
        "innodb.dirty_share": "share",
        "innodb.checkpoint_age": "B",
        "innodb.redo_rate": "B/s",
        "innodb.reads": "/s",
        "innodb.writes": "/s",
        "innodb.row_lock_waits": "/s",
    },
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
_PATIENCE = 4  # ticks by which a server has answered
_ALONE = "; the host is sampled without it"  # as mydyno-probe reports that it has not
_FIRST, _COLUMN = 10, 11  # characters of a table's first column, and of the others


def _watch(host: Host, *, count: int | None, server: Path | None, json: bool) -> None:
    """Show each second until Ctrl-C, or `count` of them; `server` is an option file there."""
    with _ticks(host, server, count) as ticks:
        shown = islice(ticks, count)
        try:
            if json:
                for moment in shown:
                    print_json(moment)
            elif sys.stdout.isatty():
                _screen(shown)
            else:
                _lines(shown)
        except KeyboardInterrupt:
            return  # the user has ended it


@contextmanager
def _ticks(host: Host, server: Path | None, count: int | None) -> Iterator[Iterator[Moment]]:
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
        ticks = moments(out, lambda: running.returncode() is None, partial(_grown, host, out))
        try:
            yield _answered(ticks, count or _PATIENCE) if server else ticks
        except HostError as error:  # the sampler's message is more precise
            printed = host.run(Action(("cat", str(errors)))).stdout.decode(errors="replace")
            step = f"; check socket, user and password in {server}" if server else ""
            reason = printed.strip().removesuffix(_ALONE) or str(error)
            raise HostError(f"{reason}{step}") from error
        finally:
            halt(running, grace_s=2.0)


def _answered(ticks: Iterator[Moment], most: int) -> Iterator[Moment]:
    """Yield the ticks; raise `HostError` where the server has not answered by one of the first."""
    answered = False
    for number, moment in enumerate(ticks, 1):
        answered = answered or "threads_running" in moment.values
        if not answered and number >= min(most, _PATIENCE):
            raise HostError("server: no answer")
        yield moment


def _grown(host: Host, out: Path, at: int) -> bytes:
    """Return what the sampler has written since `at`."""
    return host.run(Action(("tail", "-c", f"+{at + 1}", str(out)))).stdout


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
