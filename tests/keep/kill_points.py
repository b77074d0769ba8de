"""Kill points of a lease: is a host as it was, or as it was confirmed, whatever ends when?

`make test-kills` runs it.  Each case has a guest of its own (`guest.py`): systemd, MariaDB, a tree.
What is killed: the guard at a system call or at a random instant of begin, confirm and revert; the
server; the entire guest, which is then started again.  Afterwards /etc, units, runtime values,
variables and limits are those before the lease, or those of a lease that was confirmed.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from keep.guest import Guest

GUARD = "/usr/local/libexec/mydyno-guard"
DROP_IN = "/run/systemd/system/mariadb.service.d/zzz-mydyno-trial.conf"
OPTIONS = "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf"
UNIT = "/etc/systemd/system/mariadb.service.d/zz-mydyno.conf"
SYSCTL = "/etc/sysctl.d/90-mydyno.conf"
SOMAXCONN = "/proc/sys/net/core/somaxconn"
LEASE_S, LATE_S = 10, 10
CALLS = (
    "write,fsync,fdatasync,rename,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,flock,"
    "ftruncate,clone,clone3,vfork"
)
CLIENT = ["mariadb", "--batch", "--skip-column-names"]


def file(place, text, before=None):
    """Return the change of a file."""
    return {"kind": "file", "place": place, "before": before, "wanted": text}


def lease(kind, number):
    """Return a lease: `hot` without a restart, `cold` with one."""
    trial = [{"kind": "value", "place": SOMAXCONN, "before": "4096", "wanted": "2048"}]
    stored = [file(SYSCTL, "net.core.somaxconn = 2048\n")]
    if kind == "hot":
        trial.append(
            {"kind": "variable", "place": "max_connections", "before": "151", "wanted": "300"}
        )
        stored.append(file(OPTIONS, "[mysqld]\nmax_connections = 300\n"))
    else:
        start = 'Environment="MYSQLD_OPTS=--max_connections=300"'
        trial.append(
            file(
                DROP_IN, f"[Service]\nLimitNOFILE=15000\nEnvironment=MYDYNO_LEASE=kill-1\n{start}\n"
            )
        )
        stored.append(file(OPTIONS, "[mysqld]\nmax_connections = 300\n"))
        stored.append(file(UNIT, "[Service]\nLimitNOFILE=15000\n"))
    return {
        "id": f"kill-{number}",
        "host": "guest",
        "who": "bench",
        "why": "kill points",
        "seconds": LEASE_S,
        "unit": "mariadb.service",
        "client": CLIENT,
        "restart": kind == "cold",
        "trial": trial,
        "stored": stored,
    }


class Case:
    """One kill: a lease of a kind, what is killed, in which act, and when."""

    def __init__(self, kind, act, victim, when):
        self.kind, self.act, self.victim, self.when = kind, act, victim, when
        self.id = "kill-1"

    def __str__(self):
        return f"{self.kind} {self.act} {self.victim} {self.when}"

    def run(self):
        """Return what is wrong afterwards, and how the lease ended."""
        guest = Guest()
        try:
            guest.boot()
            guest.install()
            before = seen(guest)
            prepared(guest, self)
            killed(guest, self)
            return ended(guest, before, self)
        except AssertionError as error:
            return [f"the case itself: {error}"], "none"
        finally:
            guest.remove()


def seen(guest):
    """Return what must be equal: files, values, variables, limits."""
    files = {k: v for k, v in guest.state().items() if "mydyno" not in k or k.startswith("etc/")}
    made = "usr/local/libexec", "usr/local/lib/systemd"  # by `begin`; they go with `forget`
    files = {k: v for k, v in files.items() if not k.startswith(made)}
    pid = guest.inside("pidof", "mariadbd").strip()
    limit = next(
        line
        for line in guest.inside("cat", f"/proc/{pid}/limits").splitlines()
        if "open files" in line
    )
    return {
        "files": files,
        "somaxconn": guest.inside("cat", SOMAXCONN).strip(),
        "max_connections": guest.sql("SELECT @@max_connections"),
        "limit": limit.split()[3],
        "drop-in": guest.try_in("test", "-e", DROP_IN),
    }


def prepared(guest, case):
    """Bring a lease so far that the act to be killed comes next."""
    if case.act != "begin":
        guest.inside(GUARD, "begin", stdin=json.dumps(lease(case.kind, 1)))


def argv_of(case):
    """Return the guard's command of an act."""
    return {
        "begin": [GUARD, "begin"],
        "confirm": [GUARD, "confirm", case.id, "--who", "bench"],
        "revert": [GUARD, "revert", case.id, "--why", "bench", "--takeover"],
    }[case.act]


def killed(guest, case):
    """Run the act, and kill in it."""
    argv = argv_of(case)
    if case.victim == "call":
        inject = f"inject={CALLS}:signal=KILL:when={case.when}"
        argv = ["strace", "-qq", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e", inject, *argv]
    process = subprocess.Popen(
        guest.argv(*argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with contextlib.suppress(BrokenPipeError):  # it was killed before it has read
        process.stdin.write(json.dumps(lease(case.kind, 1)).encode())
        process.stdin.close()
    if case.victim != "call":
        time.sleep(case.when)
        kill(guest, case)
    process.wait()


def kill(guest, case):
    """Kill what the case names; it may have ended already."""
    if case.victim == "guest":
        guest.end()
        guest.boot()
    else:
        name = {"guard": "mydyno-guard", "server": "mariadbd"}[case.victim]
        guest.inside("pkill", "-KILL", "-x", name, check=False)


def ended(guest, before, case):
    """Wait for the end of the lease; return what is wrong, and its state."""
    until_s = time.monotonic() + LEASE_S + LATE_S
    while True:
        state = state_of(guest)
        if state in {"none", "reverted", "kept"} and guest.answers():
            break
        if time.monotonic() > until_s:
            return [f"the lease is {state} after its end"], state
        time.sleep(0.2)
    time.sleep(0.1)  # the last record is before the last words of the log
    now = seen(guest)
    wanted = dict(before)
    if state == "kept":
        return kept_wrong(guest, before, now, case), state
    return [
        f"{key}: {difference(wanted[key], now[key])}" for key in wanted if wanted[key] != now[key]
    ], state


def difference(one, other):
    """Return what differs between two values."""
    if isinstance(one, dict):
        return sorted(set(one.items()) ^ set(other.items()))[:4]
    return f"{one} != {other}"


def kept_wrong(guest, before, now, case):
    """Return what is wrong where a lease was kept: its files are there, and nothing else."""
    wrong = []
    stored = {one["place"]: one["wanted"] for one in lease(case.kind, 1)["stored"]}
    for place, text in stored.items():
        path = guest.root / place.lstrip("/")
        if not path.is_file() or path.read_text() != text:
            wrong.append(f"{place}: not as confirmed")
    extra = {k for k in now["files"] if k not in before["files"]}
    known = {place.lstrip("/") for place in stored} | {
        str(Path(p).parent).lstrip("/") for p in stored
    }
    wrong += [f"{one}: is left" for one in sorted(extra - known)]
    if now["drop-in"]:
        wrong.append("the drop-in of the trial is left")
    return wrong


def state_of(guest):
    """Return the state of the only lease."""
    try:
        shown = guest.inside(GUARD, "status", check=False)
        leases = json.loads(shown or "[]")
    except (AssertionError, json.JSONDecodeError):
        return "unknown"
    return leases[-1]["state"] if leases else "none"


def every_call(kind, act):
    """Yield a case for each system call of an act."""
    guest = Guest()
    try:
        guest.boot()
        guest.install()
        case = Case(kind, act, "call", 0)
        prepared(guest, case)
        counted = guest.argv(
            "strace", "-qq", "-o", "/run/calls", "-e", f"trace={CALLS}", *argv_of(case)
        )
        subprocess.run(
            counted, input=json.dumps(lease(kind, 1)).encode(), check=True, capture_output=True
        )
        count = sum("(" in line for line in guest.inside("cat", "/run/calls").splitlines())
    finally:
        guest.remove()
    return [Case(kind, act, "call", number) for number in range(1, count + 1)]


def random_cases(count, seed):
    """Return kills at random instants."""
    chosen = random.Random(seed)
    cases = []
    for _ in range(count):
        kind = chosen.choice(["hot", "cold"])
        act = chosen.choice(["begin", "begin", "confirm", "revert"])
        victim = chosen.choice(["guard", "guest", "server"])
        longest = {"hot": 0.35, "cold": 1.6}[kind] if act != "confirm" else 0.25
        cases.append(Case(kind, act, victim, round(chosen.uniform(0.0, longest), 3)))
    return cases


def say(text):
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main():
    """Run the cases; print a table, and each case that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--calls", action="store_true", help="also every system call once")
    options = parser.parse_args()
    cases = random_cases(options.random, options.seed)
    if options.calls:
        for kind in ("hot", "cold"):
            for act in ("begin", "confirm", "revert"):
                cases += every_call(kind, act)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    groups, ends, wrong = Counter(), Counter(), 0
    began = time.monotonic()
    with ThreadPoolExecutor(options.workers) as pool:
        for case, (problems, state) in zip(cases, pool.map(Case.run, cases), strict=True):
            groups[case.act, case.victim] += 1
            ends[case.act, case.victim, state] += 1
            if problems:
                wrong += 1
                say(f"WRONG {case}: {state}: {problems}")
    for (act, victim), count in sorted(groups.items()):
        how = ", ".join(
            f"{state} {n}" for (a, v, state), n in sorted(ends.items()) if (a, v) == (act, victim)
        )
        say(f"{act:8} {victim:7} {count:4}  {how}")
    took = time.monotonic() - began
    say(f"{len(cases)} kills, {wrong} wrong, {took / 60:.0f} min, {os.cpu_count()} CPUs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
