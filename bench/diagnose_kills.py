"""Kills a diagnosis at random instants and counts what is left: doses, processes, caps, links.

`python bench/diagnose_kills.py --kills 100 --load disk`; each takes half a minute.  A killed
diagnosis is run again, which goes on; every tenth is rolled back, and must leave nothing at all.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mydyno.host import Local
from mydyno.lab import listing

MYDYNO = str(Path(sys.executable).with_name("mydyno"))
SPEC = """
[stack]
server = "auto"
device = {{ lab = "loop", size = "1G", class = "aws-gp3" }}
[treatments.SMALL]
"mysqld.innodb_buffer_pool_size" = "32M"
{settings}
[workloads.load]
tool = "sysbench-oltp"
script = "{script}"
tables = 2
table_size = {rows}
threads = [4]
"""
LINK = '"net.address" = "lab"\n"net.transport" = "tcp"\n"link.rate" = "200mbit"'
QUOTA = '"cgroup.cpu" = "60%"'
LOADS = {  # the spec, and the doses that it is diagnosed by
    "link": (SPEC.format(settings=LINK, script="oltp_read_only", rows=20_000), ""),
    "disk": (
        SPEC.format(settings="", script="oltp_read_write", rows=200_000),
        "disk.rate,disk.read_latency,disk.flush_latency",
    ),
    "quota": (SPEC.format(settings=QUOTA, script="oltp_read_only", rows=20_000), "cgroup.cpu"),
}
_ENDS_S = 5.0


def ours(words: tuple[bytes, ...]) -> list[str]:
    """Return the processes that have one of these words in their command line."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            argv = (place / "cmdline").read_bytes()
        except OSError:
            continue
        if any(word in argv for word in words):
            found.append(argv.replace(b"\0", b" ").decode(errors="replace")[:120])
    return found


def left_after(seconds: float) -> list[str]:
    """Return which spinners and samplers outlive their owner by so long."""
    end_s = time.monotonic() + seconds
    while found := ours((b"mydyno-disk\0spin", b"mydyno-probe\0sample")):
        if time.monotonic() > end_s:
            return found
        time.sleep(0.05)
    return []


def treatment(run: Path) -> str:
    """Return the treatment of the trial that is under way, or ``""``."""
    try:
        lines = (run / "journal.jsonl").read_bytes().split(b"\n")
    except OSError:
        return ""
    name = ""
    for line in lines:
        if line.endswith(b"}"):
            event = json.loads(line)["event"]
            if event["type"] in {"started", "finished"}:
                trial = event.get("trial") or event["outcome"]["trial"]
                name = trial["treatment"] if event["type"] == "started" else ""
    return name


def under_way(run: Path, running: "subprocess.Popen[bytes]", done: int, *, dosed: bool) -> None:
    """Wait until this start of it has begun a trial, or with `dosed` one under a dose."""
    end_s = time.monotonic() + 300
    while running.poll() is None and time.monotonic() < end_s:
        name = treatment(run)
        if name and journal(run) > done and (not dosed or " " in name):
            return
        time.sleep(0.05)


def journal(run: Path) -> int:
    """Return the length of the run's journal."""
    path = run / "journal.jsonl"
    return path.stat().st_size if path.exists() else 0


def main() -> None:
    """Kill, look, go on; print what was left."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=200)
    asked.add_argument("--load", choices=LOADS, default="link")
    asked.add_argument("--seed", type=int, default=17)
    given = asked.parse_args()
    chance, left, phases = random.Random(given.seed), list[str](), dict[str, int]()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        spec, run = Path(made) / "kill.toml", Path(made) / "run"
        log = Path(f"{made}.out")  # stays, as it is shown where a diagnosis fails
        text, doses = LOADS[given.load]
        spec.write_text(text)
        for number in range(1, given.kills + 1):
            argv = [MYDYNO, "diagnose", str(spec), "-o", str(run), "--budget", "60m"]
            argv += ["--only", doses] if doses else []
            before = journal(run)
            with log.open("w") as out, subprocess.Popen(argv, stdout=out, stderr=out) as running:
                if number % 4:  # a quarter of the kills falls into preparing or resuming
                    under_way(run, running, before, dosed=number % 4 > 1)
                time.sleep(chance.uniform(0.1, 25 if number % 4 < 2 else 8))
                phase = treatment(run) or "between trials"
                if running.poll() is not None:
                    raise SystemExit(f"it ended by itself with {running.returncode}: see {log}")
                os.kill(running.pid, signal.SIGKILL)
            phases[phase] = phases.get(phase, 0) + 1
            left += left_after(_ENDS_S)
            if number % 10 == 0 or number == given.kills:
                left += rolled_back(run, made)
            print(f"{number} kills, {phases}, left: {left}", flush=True)
        log.unlink()


def rolled_back(run: Path, made: str) -> list[str]:
    """Roll back, and return what is left then: lab disks, links, the state of a dose."""
    done = subprocess.run([MYDYNO, "rollback", str(run)], capture_output=True, check=False)
    left = [done.stderr.decode()] if done.returncode else []
    left += [str(lab.home) for lab in listing(Local()) if made in str(lab.home)]
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, check=True).stdout
    left += [line for line in links.decode().splitlines() if line.startswith("mydyno")]
    left += [str(p) for p in Path("/var/tmp").glob("mydyno-*/spin/state")]  # noqa: S108 - ours
    subprocess.run(["rm", "-rf", str(run)], check=True)
    return left


if __name__ == "__main__":
    main()
