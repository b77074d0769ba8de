"""The command as a user types it: in a process of its own, or in this one where it only reads."""

import io
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from mydyno import cli

MAIN = "from mydyno.cli import main; main()"
COMMAND = (sys.executable, "-c", MAIN)


def mydyno(*arguments, code=MAIN, timeout=1800, **more):
    """Run it to its end; `code` may force a fault before `MAIN`."""
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=timeout, **more
    )


def reached(process, ready, patience_s=300.0):
    """Wait until a command that runs has come so far; fail where it ends or stays before."""
    end = time.monotonic() + patience_s
    while not ready():
        assert process.poll() is None, "it has ended before"
        assert time.monotonic() < end, f"not there after {patience_s:g} s"
        time.sleep(0.02)


def has_output(path, more_than=0):
    """Return whether a file that something else writes has more bytes than so many."""
    return path.exists() and path.stat().st_size > more_than


def shown(*arguments):
    """Run it in this process, which has paid for the imports; `main` less signals and terminal."""
    argv, code = ["mydyno", *map(str, arguments)], 0
    out, error = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", argv), redirect_stdout(out), redirect_stderr(error):
        try:
            cli._main()  # noqa: SLF001 - what turns errors into exit codes
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(argv, code, out.getvalue(), error.getvalue())
