"""Memory that `mydyno audit` promises at a level, against the peak that the server then reaches.

`python bench/audit_memory.py`: five servers, two levels each (16 and 200 connections that read and
sort), data larger than the buffer pool.  MySQLTuner's "maximum possible memory usage" beside it.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

from audit_planted import MYDYNO, SERVERS, running
from probe_server import sysbench

OPTIONS = "innodb_buffer_pool_size = 128M\nmax_connections = 400\nsort_buffer_size = 1M\n"
LEVELS = {16: (), 200: ("--rate=60",)}
FILL_S, WATCH_S, HOLDS = 25, 10, 0.15


def peak(pid: int) -> float:
    """Return the most that a process had resident, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return 1024.0 * float(found[1]) if found else 0.0


def case(server: str, threads: int) -> dict[str, object]:
    """Return what was promised under a load, and the peak at its end."""
    with running(server, OPTIONS) as (instance, folder):
        command = sysbench(instance, folder, "oltp_read_only", "--tables=8", "--table_size=100000")
        filled = [*command, "--threads=8", "prepare"]
        subprocess.run(filled, check=True, capture_output=True)
        options = [f"--threads={threads}", f"--time={FILL_S + WATCH_S + 5}", *LEVELS[threads]]
        load = subprocess.Popen([*command, *options, "run"], stdout=subprocess.DEVNULL)
        try:
            time.sleep(FILL_S)
            defaults = str(instance.place.admin)
            asked = [MYDYNO, "audit", "--server", defaults, "--watch", f"{WATCH_S}s", "--json"]
            done = subprocess.run(asked, capture_output=True, check=False)
            tuner = subprocess.run(
                ["mysqltuner", "--defaults-file", defaults, "--nocolor"],
                capture_output=True,
                check=False,
            )
            load.wait()
        finally:
            load.kill()
            load.wait()
        reached = peak(int(instance.place.pid_file.read_text()))
    memory = json.loads(done.stdout)["memory"]
    worst = re.search(
        r"Maximum possible memory usage: (\S+)", tuner.stdout.decode(errors="replace")
    )
    return {
        "server": server,
        "connections": threads,
        "promised": memory["promised"],
        "peak": reached,
        "ratio": round(memory["promised"] / reached, 3),
        "worst": memory["worst"],
        "tuner": worst[1] if worst else "",
    }


def main() -> None:
    """Measure all cases and print how many are within 15 %."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--only", default="")
    chosen = given.parse_args()
    rows = []
    for server in chosen.only.split(",") if chosen.only else SERVERS:
        for threads in LEVELS:
            rows.append(case(server, threads))
            print(json.dumps(rows[-1]), flush=True)
    within = sum(abs(float(str(row["ratio"])) - 1) <= HOLDS for row in rows)
    print(f"{within} of {len(rows)} within {HOLDS:.0%}")


if __name__ == "__main__":
    sys.exit(main())
