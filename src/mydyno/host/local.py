"""The machine we run on."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mydyno.host.protocol import LONGEST_LINE, Completed, Running
from mydyno.model import Action, HostError


class LocalRunning:
    """A child process in its own session, so that a signal reaches all it started."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def lines(self) -> Iterator[bytes]:
        """Yield each line of its standard output as it comes, a longer one in pieces."""
        out = self._process.stdout
        if out is not None:
            with out:
                yield from iter(partial(out.readline, LONGEST_LINE), b"")

    def returncode(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.poll()

    def stop(self, *, grace_s: float = 10.0) -> int:
        """End the whole group: SIGTERM first, SIGKILL after `grace_s`."""
        self._signal(signal.SIGTERM)  # its children too, even where it has ended before them
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
        return self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return


@dataclass(frozen=True, slots=True)
class Local:
    """The machine we run on."""

    name: str = "localhost"

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command and wait for it."""
        try:
            done = subprocess.run(
                action.argv,
                input=action.stdin,
                capture_output=True,
                timeout=timeout_s,
                check=False,
                start_new_session=True,  # Ctrl-C is for us; what puts the host back must not die
            )
        except FileNotFoundError as error:
            raise HostError(_missing(action)) from error
        except subprocess.TimeoutExpired as error:
            raise HostError(f"{action.argv[0]}: no end after {timeout_s:g} s") from error
        return Completed(action, done.returncode, done.stdout, done.stderr)

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in a session of its own."""
        try:
            with Path(stderr or os.devnull).open("ab") as errors:
                process = subprocess.Popen(
                    action.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    start_new_session=True,
                )
        except FileNotFoundError as error:
            raise HostError(_missing(action)) from error
        return LocalRunning(process)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file with its mode, whole or not at all."""
        with tempfile.NamedTemporaryFile(dir=remote.parent, delete=False) as part:
            part.write(local.read_bytes())
        shutil.copymode(local, part.name)
        Path(part.name).replace(remote)

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file, whole or not at all; raise `HostError` where there is none."""
        try:
            self.push(remote, local)
        except OSError as error:
            raise HostError(f"{remote}: {error.strerror}") from error


def _missing(action: Action) -> str:
    return f"{action.argv[0]}: not found on this host; install it or name its path"
