"""What a lease costs and what it catches, measured on a guest; `make bench-lease` runs it.

`cut`: a change of ours cuts the connection, and comes back.  `restart`: the time without SQL of a
lease beside that of the unit's own restart.  `regression`: a load over simulated days (a second is
an hour) on two guests, a real regression or none on one of them, `effect` with the other one as its
control, and a lease that nobody confirms.
"""

import argparse
import contextlib
import json
import math
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from keep.desk import MYDYNO, Desk
from keep.guest import Guest, run, until
from keep.kill_points import say
from keep.test_lease import COLD

ARP = "/proc/sys/net/ipv4/conf/all/arp_ignore"
DAY, WEEKS = 24, 4
BEFORE = WEEKS * 7 * DAY + 1
AFTER = DAY
EPOCH_H = 480_000  # of the simulated hours
WORSE = """[mysqld]
general_log = "ON"
slow_query_log = "ON"
long_query_time = 0
log_slow_verbosity = "query_plan,explain,innodb"
log_output = "FILE,TABLE"
"""  # all of what someone who looks for a slow statement may switch on, and forget
NEUTRAL = "[mysqld]\nslave_net_timeout = 61\n"


def cut(count):
    """Cut the connection by a change of ours; print how long until the host answers again."""
    took = []
    for _ in range(count):
        guest = Guest()
        try:
            guest.boot()
            desk = Desk(guest, Path(tempfile.mkdtemp()))
            guest.inside("sysctl", "-w", "net.ipv4.conf.all.arp_ignore=0")
            file = desk.file('[kernel]\n"sysctl.net.ipv4.conf.all.arp_ignore" = 8\n')
            words = ("--to", guest.ssh, "--yes-to", guest.name, "--lease", "10s")
            process = subprocess.Popen(
                [MYDYNO, "apply", file, *words],
                env=desk.env,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            until(lambda guest=guest: guest.inside("cat", ARP) == "8\n", 60)
            began = time.monotonic()
            run("ip", "neigh", "flush", "dev", guest.link)
            until(lambda guest=guest: guest.inside("cat", ARP) == "0\n", 30)
            until(lambda guest=guest: connects(guest.address))
            took.append(time.monotonic() - began)
            process.kill()
            process.wait()
            until(lambda desk=desk: desk.leases() == ["reverted"])
        finally:
            guest.remove()
    say(
        f"cut: {len(took)} of {count} came back, after at most {max(took):.1f} s of a lease of 10 s"
    )


def connects(address):
    """Return whether ssh can be reached."""
    try:
        socket.create_connection((address, 22), 1).close()
    except OSError:
        return False
    return True


class Watch:
    """The seconds without SQL, by a client that asks all the time."""

    def __init__(self, guest):
        script = (
            "while :; do mariadb -e 'SELECT 1' >/dev/null 2>&1 && echo up || echo down; "
            "date +%s.%N; done"
        )
        self.process = subprocess.Popen(
            guest.argv("sh", "-c", script),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self):
        """Return the longest time between two answers, in seconds."""
        time.sleep(1)
        os.killpg(self.process.pid, signal.SIGKILL)  # the shell inside, too
        words = self.process.stdout.read().split()
        self.process.wait()
        up = [
            float(at) for state, at in zip(words[::2], words[1::2], strict=False) if state == "up"
        ]
        return max(b - a for a, b in pairwise(up))


def restart(count):
    """Print the time without SQL of a lease, and of a restart by systemctl."""
    own, ours, runs = [], [], []
    for _ in range(count):
        guest = Guest()
        try:
            guest.boot()
            desk = Desk(guest, Path(tempfile.mkdtemp()))
            watch = Watch(guest)
            time.sleep(1)
            guest.inside("systemctl", "restart", "mariadb")
            own.append(watch.end())
            since = len(starts(guest))
            watch = Watch(guest)
            time.sleep(1)
            desk.apply(COLD)
            ours.append(watch.end())
            runs.append(len(starts(guest)) - since)
        finally:
            guest.remove()
    say(
        f"restart: {statistics.median(ours):.2f} s without SQL in a lease, "
        f"{statistics.median(own):.2f} s by systemctl restart (medians of {count}); "
        f"longest difference {max(a - b for a, b in zip(ours, own, strict=True)):.2f} s; "
        f"restarts a lease: {sorted(set(runs))}"
    )


def starts(guest):
    """Return the lines of the journal on starts of the server."""
    words = ("journalctl", "-u", "mariadb", "-o", "cat", "--no-pager")
    return [line for line in guest.inside(*words).splitlines() if line.startswith("Started")]


class Production:
    """A guest under an open load whose rate has a daily curve; a second is an hour."""

    def __init__(self, guest):
        self.guest, self.rows, self.running = guest, [], None
        guest.sql(
            "CREATE DATABASE sbtest; CREATE USER app@'%' IDENTIFIED BY 'app'; "
            "GRANT ALL ON sbtest.* TO app@'%'"
        )
        options = guest.root / "etc/mysql/mariadb.conf.d/99-test.cnf"
        options.write_text("[mysqld]\nbind-address = 0.0.0.0\n")
        guest.inside("systemctl", "restart", "mariadb")
        until(guest.answers)
        run(*self.sysbench("prepare"))

    def sysbench(self, *words):
        """Return a command of sysbench."""
        where = f"--mysql-host={self.guest.address}"
        login = ("--mysql-user=app", "--mysql-password=app", "--mysql-db=sbtest")
        script = ("oltp_read_only", "--skip-trx=on", "--point-selects=5", "--range-selects=off")
        size = ("--table-size=2000", "--threads=2", "--percentile=50")
        return ["sysbench", *script, where, *login, *size, *words]

    def begin(self, rate):
        """Begin an hour."""
        argv = self.sysbench(f"--rate={rate}", "--time=1", "run")
        self.running = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)

    def end(self, hour):
        """End the hour; keep its median latency and its load."""
        printed, _ = self.running.communicate(timeout=60)
        median = re.search(r"50th percentile:\s+([\d.]+)", printed)
        count = re.search(r"transactions:\s+(\d+)", printed)
        self.rows.append((EPOCH_H + hour, float(median[1]), int(count[1])))

    def table(self, path):
        """Write the history as `effect` reads it."""
        lines = ["time,value,load", *(f"{h * 3600},{v},{n}" for h, v, n in self.rows)]
        path.write_text("\n".join(lines) + "\n")
        return path


class Pair:
    """Two guests under the same load; the first is changed, the other is its control."""

    def __init__(self, desk, other):
        self.desk, self.hours = desk, 0
        self.both = [Production(desk.guest), Production(other)]
        self.noise = random.Random(4)

    def hour(self):
        """Run an hour of both at once."""
        day = 1 + 0.4 * math.sin(2 * math.pi * (self.hours % DAY) / DAY)
        rate = round(150 * day * self.noise.uniform(0.9, 1.1))
        for one in self.both:
            one.begin(rate)
        for one in self.both:
            one.end(self.hours)
        self.hours += 1

    def judged(self, text):
        """Apply settings, run a day, and note what `effect` finds; return the verdict."""
        desk = self.desk
        desk.apply(text, lease="45s")
        begun = self.hours
        for _ in range(AFTER):
            self.hour()
        after = f"{stamp(begun)}..{stamp(self.hours)}"
        before = f"{stamp(begun - BEFORE)}..{stamp(begun)}"
        files = (desk.folder / "history.csv", desk.folder / "control.csv")
        own, other = (str(one.table(path)) for one, path in zip(self.both, files, strict=True))
        words = ("effect", own, "--control", other, "--before", before, "--after", after)
        done = subprocess.run(
            [
                MYDYNO,
                *words,
                "--lease",
                desk.guest.ssh,
                "--json",
            ],
            env=desk.env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in {0, 1}, done.stderr
        return json.loads(done.stdout)

    def regression(self, text, *, worse):
        """Return whether a change ended as it must, and the effect that was found."""
        desk = self.desk
        found = self.judged(text)
        if found["verdict"] == "revert":
            desk.run("confirm", desk.guest.ssh, code=4)
            until(lambda: "trial" not in desk.leases(), 90)
            right = worse and desk.guest.sql("SELECT @@general_log") == "0"
        else:
            desk.run("confirm", desk.guest.ssh)
            desk.run("rollback", desk.guest.ssh)
            right = not worse
        # what was changed is no history
        for one in self.both:
            one.rows = one.rows[:-AFTER]
        self.hours -= AFTER
        for _ in range(2):
            self.hour()
        return right, found


def stamp(hour):
    """Return a simulated hour as `effect` reads it."""
    return time.strftime("%Y-%m-%dT%H:00", time.gmtime((EPOCH_H + hour) * 3600))


def regression(count):
    """Print how many real regressions were reverted without a person, and how many of none."""
    with two() as guests:
        desk = Desk(guests[0], Path(tempfile.mkdtemp()))
        for text in (WORSE, NEUTRAL):  # before an hour is spent
            desk.apply(text)
            desk.run("rollback", desk.guest.ssh)
        production = Pair(desk, guests[1])
        for _ in range(BEFORE):
            production.hour()
        right, none = 0, 0
        for number in range(count):
            good, found = production.regression(WORSE, worse=True)
            right += good
            say(
                f"regression {number + 1}: {found['verdict']} {found['ratio']:.3f} "
                f"[{found['low']:.3f}..{found['high']:.3f}]"
            )
            good, found = production.regression(NEUTRAL, worse=False)
            none += not good
            say(
                f"none {number + 1}: {found['verdict']} {found['ratio']:.3f} "
                f"[{found['low']:.3f}..{found['high']:.3f}]"
            )
        say(f"regression: {right} of {count} reverted without a person; of none {none} of {count}")


@contextlib.contextmanager
def two():
    """Yield two guests that run."""
    with contextlib.ExitStack() as stack:
        guests = []
        for _ in range(2):
            guests.append(Guest())
            stack.callback(guests[-1].remove)
            guests[-1].boot()
        yield guests


def main():
    """Run what is asked for."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # guests are removed then, too
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cut", type=int, default=20)
    parser.add_argument("--restart", type=int, default=10)
    parser.add_argument("--regression", type=int, default=10)
    options = parser.parse_args()
    if options.cut:
        cut(options.cut)
    if options.restart:
        restart(options.restart)
    if options.regression:
        regression(options.regression)


if __name__ == "__main__":
    main()
