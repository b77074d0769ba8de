"""The samplers that are compared: how each is started, and how many values it takes."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from mydyno.sample.sampler import STATES
from probe_process import Fault
from probe_read import last_values

SADC = ("/usr/lib/sysstat/sadc", "/usr/lib/sysstat/sadc.sysstat", "/usr/lib64/sa/sadc")
NODE_PORT, MYSQLD_PORT = 19100, 19104
_PSUTIL = Path(__file__).with_name("probe_psutil.py")
_HEADER = 6  # words before the values of a line of atop's parseable output


@dataclass(frozen=True, slots=True)
class Setup:
    """What all tools look at: the private server, and the processes to watch by role."""

    binary: Path
    options: Path
    server: int
    watched: dict[str, int]

    def and_load(self, pid: int) -> "Setup":
        """Return the same with the load watched too."""
        return replace(self, watched=self.watched | {"load": pid})


@dataclass(frozen=True, slots=True)
class Tool:
    """One sampler; `port` is scraped, `file` written into, `asks`: it queries the server."""

    name: str
    argv: Callable[[Setup, Path], list[str]]
    values: Callable[[Path, Path], float] = field(default=lambda _file, _log: 0)
    hz: float = 1.0
    port: int = 0
    asks: bool = False
    writes: bool = False
    version: tuple[str, ...] = ()


def probe(name: str, interval: str, *, server: bool = False, states: bool = False) -> Tool:
    """Return our sampler, with or without the server and looks at the threads' states."""

    def argv(setup: Setup, file: Path) -> list[str]:
        watched = [f"--process={role}={pid}" for role, pid in setup.watched.items()]
        asked = [f"--server-defaults={setup.options}"] if server else []
        given = ["--out", str(file), "--interval", interval]
        given += ["--states", STATES] if states else []
        return [str(setup.binary), "sample", *given, *watched, *asked]

    hz = 1.0 if interval == "1s" else 10.0
    return Tool(name, argv, lambda file, _log: last_values(file), hz, asks=server, writes=True)


def tools() -> list[Tool]:
    """Return all samplers, ours first; the first of all is none, for the server's own idling."""
    return [
        Tool("(none)", lambda _setup, _file: ["sleep", "infinity"], hz=0, asks=True),
        probe("mydyno-probe", "1s"),
        probe("mydyno-probe, server too", "1s", server=True),
        probe("mydyno-probe, 10 Hz", "100ms"),
        probe("mydyno-probe, 10 Hz, server 1 Hz", "100ms", server=True),
        Tool("sadc -S XALL", _sadc, _sadc_values, writes=True, version=(_first(SADC), "-V")),
        Tool("atop -w", _atop, _atop_values, writes=True, version=("atop", "-V")),
        _exporter("node_exporter", "prometheus-node-exporter", NODE_PORT),
        _exporter("mysqld_exporter", "prometheus-mysqld-exporter", MYSQLD_PORT, asks=True),
        Tool("psutil", lambda _setup, _file: _psutil_loop([]), _printed),
        Tool(
            "psutil, 2 processes too",
            lambda setup, _file: _psutil_loop(list(setup.watched.values())),
            _printed,
        ),
    ]


def absence(tool: Tool, setup: Setup) -> str:
    """Return why a tool cannot run here, nothing if it can."""
    program = tool.argv(setup, Path("x"))
    if not shutil.which(program[0]):
        return f"{program[0]} is not installed"
    if str(_PSUTIL) in program and not importlib.util.find_spec("psutil"):
        return "psutil is not installed"
    return ""


def version(tool: Tool) -> str:
    """Return the first words of the tool's own version line."""
    if not tool.version:
        return ""
    done = subprocess.run(tool.version, capture_output=True, check=False, timeout=10)
    words = (done.stdout or done.stderr).decode(errors="replace").split("\n")[0]
    return words.split("(")[0].split(" - ")[0].strip(" ,").replace("Version:", tool.name[:4])


def _first(paths: tuple[str, ...]) -> str:
    return next((path for path in paths if Path(path).exists()), "sadc")


def _sadc(_setup: Setup, file: Path) -> list[str]:
    return [_first(SADC), "-S", "XALL", "1", str(file)]


def _atop(_setup: Setup, file: Path) -> list[str]:
    return ["atop", "-w", str(file), "1"]


def _exporter(name: str, program: str, port: int, *, asks: bool = False) -> Tool:
    def argv(setup: Setup, _file: Path) -> list[str]:
        given = [program, f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
        return [*given, f"--config.my-cnf={setup.options}"] if asks else given

    return Tool(name, argv, port=port, asks=asks, version=(program, "--version"))


def _psutil_loop(pids: list[int]) -> list[str]:
    return [sys.executable, str(_PSUTIL), *map(str, pids)]


def _printed(_file: Path, log: Path) -> float:
    return float(log.read_text().split()[-1])


def _sadc_values(file: Path, _log: Path) -> float:
    """Count the values of one record, as sadf writes them one a line."""
    lines = _output(["sadf", "-p", "-U", str(file), "--", "-A"]).splitlines()
    return len(lines) / len({line.split("\t")[2] for line in lines})


def _atop_values(file: Path, _log: Path) -> float:
    """Count the fields of one sample of atop's parseable output; the first is since boot."""
    last = _output(["atop", "-r", str(file), "-P", "ALL"]).split("SEP\n")[-2]
    return sum(len(line.split()) - _HEADER for line in last.splitlines())


def _output(argv: list[str]) -> str:
    done = subprocess.run(argv, capture_output=True, check=False, timeout=120)
    if done.returncode:
        raise Fault(f"{argv[0]}: {done.stderr.decode(errors='replace')[-400:]}")
    return done.stdout.decode(errors="replace")
