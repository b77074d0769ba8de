"""Steps of the tests that sample a real server: account, option file, the probe, its file."""

import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from mydyno.sample.probe_file import read
from mydyno.sample.sampler import NOT_BUILT, probe_binary

CANARY = "Canary-4711-xyzzy"
ACCOUNT = "watcher"
_HOSTS = ("localhost", "127.0.0.1")


def binary():
    """Return the program under test; MYDYNO_PROBE names one that is not installed."""
    found = os.environ.get("MYDYNO_PROBE") or probe_binary()
    return found or pytest.fail(NOT_BUILT)


def account(instance, *, plugin="", password=CANARY, grant="PROCESS"):
    """Make the account again, so that the server has not seen its password before."""
    how = f"WITH {plugin} " if plugin else ""
    for host in _HOSTS:
        who = f"'{ACCOUNT}'@'{host}'"
        if [ACCOUNT, host] in map(list, instance.query("SELECT user, host FROM mysql.user")):
            instance.query(f"DROP USER {who}")
        instance.query(f"CREATE USER {who} IDENTIFIED {how}BY '{password}'")
        if grant:
            instance.query(f"GRANT {grant} ON *.* TO {who}")


def login(folder, instance, *, user=ACCOUNT, password=CANARY, tcp=False):
    """Write the option file and return it."""
    where = instance.endpoint
    lines = ["[client]", f"user = {user}", f'password = "{password}"']
    if tcp:
        lines += [f"host = {where.tcp_host}", f"port = {where.tcp_port}"]
    else:
        lines += [f'socket = "{instance.place.socket}"']
    return option_file(folder, lines)


def option_file(folder, lines, mode=0o600):
    path = folder / "probe.cnf"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(mode)
    return path


class Probe:
    """The probe while it runs; its file can be read at any time."""

    def __init__(self, folder, defaults, *options):
        self.file = folder / "probe.bin"
        self.errors = folder / "probe.err"
        self.file.unlink(missing_ok=True)
        sources = ("--server-defaults", str(defaults)) if defaults else ()
        argv = [binary(), "sample", "--out", str(self.file), *sources, *options]
        if "--server-deadline" not in options:
            argv += ["--server-deadline", "5s"]  # a busy machine is no gap
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(argv, stdout=errors, stderr=errors)

    @property
    def pid(self):
        return self.process.pid

    def sampled(self):
        return read(self.file)

    def seen(self, what, *, within_s=90.0):
        """Return the first sample in which `what` holds."""
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            assert self.process.poll() is None, self.errors.read_text()
            if self.file.exists() and self.file.stat().st_size > 100:
                sampled = self.sampled()
                if what(sampled):
                    return sampled
            time.sleep(0.1)
        return pytest.fail(f"not seen within {within_s} s; notes: {notes(self.sampled())}")

    def readings(self, count, *, within_s=90.0):
        """Return the sample once it holds so many readings of the server."""
        return self.seen(lambda sampled: len(answers(sampled)) >= count, within_s=within_s)

    def stop(self, code=0):
        """End it in order, with an exit code, and return all it wrote."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == code
        sampled = self.sampled()
        assert sampled.end.reason == "signal"
        return sampled


@contextmanager
def probing(folder, defaults, *options):
    probe = Probe(folder, defaults, *options)
    try:
        yield probe
    finally:
        probe.process.kill()
        probe.process.wait()


def notes(sampled, source="server"):
    return [(note.event, note.of) for note in sampled.notes if note.source == source]


def texts(sampled, source="server"):
    return [note.text for note in sampled.notes if note.source == source]


def answers(sampled):
    """Return the ticks that have a reading of the server."""
    stamps = sampled.find("probe.read_at", "server")
    return np.flatnonzero(~np.isnan(stamps)) if stamps is not None else np.array([], dtype=int)


def series(sampled, name, of=""):
    """Return a server's column over its readings."""
    return sampled.find(name, of)[answers(sampled)]


def leaks(probe, secret):
    """Return where a secret can be read: arguments, environment, the file, the output."""
    proc = Path("/proc") / str(probe.pid)
    places = (proc / "cmdline", proc / "environ", probe.file, probe.errors)
    return [str(path) for path in places if secret.encode() in path.read_bytes()]


def status(instance, name):
    return int(instance.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


def watched(running, name, transport="socket"):
    """Return a server of this module that runs, with an account that is new to it."""
    instance = running.take(name, transport)
    account(instance)
    return instance
