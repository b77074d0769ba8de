"""Traces of a real server on which nothing differs: recorded by mydyno, saved as one small file."""

import json
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mydyno.cli.run_directory import reopen, result

HERE = Path(__file__).parent / "real"
MYDYNO = str(Path(sys.executable).with_name("mydyno"))


@dataclass(frozen=True, slots=True)
class Traces:
    """Starts of one server, each the throughput of every second; `idle_s` went before each load."""

    server: str
    machine: str
    recorded: str
    idle_s: float
    starts: Sequence[Sequence[float]]

    @property
    def hours(self) -> float:
        """Return how long the load ran."""
        return sum(map(len, self.starts)) / 3600


def record(server: str, runs: Path, traces: Path) -> None:
    """Run the campaign of `traces.toml`, or resume it, and save what its loads reported."""
    name = re.sub(r"\W+", "-", Path(server).name)
    folder = runs / f"traces-{name}"
    spec = str(HERE / "traces.toml")
    argv = [MYDYNO, "run", spec, "--set", f"stack.server={server}", "-o", str(folder)]
    code = subprocess.run(argv, check=False, stdout=subprocess.DEVNULL).returncode
    if code:
        sys.exit(f"{folder}: mydyno ended with {code}; run the same command again to resume")
    (traces / f"{name}.json").write_text(json.dumps(asdict(of_run(folder))) + "\n")


def of_run(folder: Path) -> Traces:
    """Return the traces of a run directory; trials that were disturbed are left out."""
    _, about = reopen(folder)
    found = result(folder)
    series = {
        trial.id: [round(v, 1) for v in curve.values]
        for trial in found.trials
        for curve in trial.curves
        if curve.name == found.comparison.response
    }
    idle_s = (found.comparison.machine_time_s - sum(map(len, series.values()))) / max(
        1, len(series)
    )
    starts = [series[t.id] for t in found.trials if t.status == "ok" and t.id in series]
    build = re.sub(r"^\S*/", "", about.build)  # wherever it lies
    return Traces(build, _machine(found.facts), found.started, round(idle_s, 1), starts)


def _machine(facts: Mapping[str, Mapping[str, str]]) -> str:
    known = {k: v for group in facts.values() for k, v in group.items()}
    return ", ".join(known[k] for k in ("processor", "memory", "kernel") if k in known) or (
        platform.platform()
    )


def recorded(folder: Path) -> list[Traces]:
    """Return the traces that were recorded before."""
    return [Traces(**json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
