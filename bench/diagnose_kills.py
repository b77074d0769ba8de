"""Kills a diagnosis at random instants and counts what is left: doses, processes, caps, links.

`python bench/diagnose_kills.py --kills 200`; each takes half a minute.  A killed diagnosis is run
again, which goes on; every fifth is rolled back instead, and must leave nothing at all.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mydyno.lab import listing

MYDYNO = str(Path(sys.executable).with_name("mydyno"))
SPEC = """
[stack]
server = "auto"
device = { lab = "loop", size = "1G", class = "aws-gp3" }
[treatments.SMALL]
"mysqld.innodb_buffer_pool_size" = "32M"
"net.address" = "lab"
"net.transport" = "tcp"
"link.rate" = "200mbit"
[workloads.ro]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 2
table_size = 20000
threads = [4]
"""
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


def main() -> None:
    """Kill, look, go on; print what was left."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--kills", type=int, default=200)
    given = asked.parse_args()
    chance, left, phases = random.Random(17), [], {"dose": 0, "other": 0}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        spec, run = Path(made) / "kill.toml", Path(made) / "run"
        spec.write_text(SPEC)
        for number in range(1, given.kills + 1):
            argv = [MYDYNO, "diagnose", str(spec), "-o", str(run), "--budget", "60m"]
            with subprocess.Popen(argv, stdout=-3, stderr=-3) as running:
                time.sleep(chance.uniform(4, 45))
                doses = list(Path("/var/tmp").glob("mydyno-*/spin/state"))  # noqa: S108 - where ours are
                doses += list(run.glob("work/spin/state"))
                dosed = any("0.8" in p.read_text() for p in doses if p.exists())
                os.kill(running.pid, signal.SIGKILL)
            phases["dose" if dosed else "other"] += 1
            left += left_after(_ENDS_S)
            if number % 5 == 0 or number == given.kills:
                done = subprocess.run(
                    [MYDYNO, "rollback", str(run)], capture_output=True, check=False
                )
                left += [done.stderr.decode()] if done.returncode else []
                left += [str(lab.home) for lab in listing() if made in str(lab.home)]
                links = subprocess.run(
                    ["ip", "-br", "link"], capture_output=True, check=True
                ).stdout
                left += [line for line in links.decode().splitlines() if line.startswith("mydyno")]
                subprocess.run(["rm", "-rf", str(run)], check=True)
            print(f"{number} kills, {phases}, left: {left}", flush=True)


if __name__ == "__main__":
    main()
