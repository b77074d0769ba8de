"""Live campaigns on a real server whose load is dosed: what is right is known by construction."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from real_traces import HERE, MYDYNO

# A thread's own events are longer by these shares, so that it does 1 / (1 + share) of the work.
SHARES = {"base": 0.05, "plus": 0.0, "minus": 1.05 / 0.95 - 1}
TRUTH = {"plus": 1.05, "minus": 0.95}
RIGHT = {"plus": "adopt", "minus": "reject"}


@dataclass(frozen=True, slots=True)
class Live:
    """The result of one campaign for one dose: verdict, ratio with its interval, and the hours."""

    campaign: int
    dose: str
    verdict: str
    interval: tuple[float, float, float] | None
    hours: float


def campaigns(servers: Sequence[str], count: int, runs: Path) -> list[Live]:
    """Run the campaigns, the servers in turns, or resume them; return their results."""
    found: list[Live] = []
    for number, server in zip(range(1, count + 1), cycle(servers), strict=False):
        name = re.sub(r"\W+", "-", Path(server).name)
        folder = runs / f"live-{name}-{number:02d}"
        spec = runs / f"live-{number:02d}.toml"
        spec.write_text(_spec(number))
        argv = [MYDYNO, "run", str(spec), "--set", f"stack.server={server}", "-o", str(folder)]
        sys.stderr.write(f"campaign {number} of {count}\n")
        run = subprocess.run([*argv, "--json"], stdout=subprocess.PIPE, check=False)
        if run.returncode:
            sys.exit(f"{folder}: mydyno ended with {run.returncode}; run again to go on")
        found += _rows(number, json.loads(run.stdout))
    return found


def _spec(seed: int) -> str:
    text = (HERE / "live.toml").read_text()
    for name, share in SHARES.items():
        table = f'"load/env.LUA_PATH" = "{HERE}/?.lua;;"\n"load/env.MYDYNO_DOSE" = "{share:.6f}"'
        text = text.replace(f"[treatments.{name}]", f"[treatments.{name}]\n{table}")
    return text.replace("seed = 0", f"seed = {seed}")


def _rows(number: int, compared: dict[str, object]) -> list[Live]:
    rows = {row["name"]: row for row in compared["treatments"]}  # type: ignore[attr-defined]
    hours = float(compared["machine_time_s"]) / 3600  # type: ignore[arg-type]
    found = []
    for name in TRUTH:
        effect = rows[name]["effect"]
        interval = (effect["ratio"], effect["low"], effect["high"]) if effect else None
        found.append(Live(number, name, rows[name]["verdict"], interval, hours))
    return found
