"""One session on an ssh host: numbered commands in one folder, ended when its lease expires.

ADR 0007 gives the reason why a command that may have run is never repeated.
"""

import itertools
import re
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mydyno.host.ssh_connection import Response, SshConnection, SshRoute, command
from mydyno.model import HostError, RefusedError, SpecError, UnknownEndError

LEASE_S = 90.0  # without a keepalive for so long a host ends all commands of the session
_BEAT_S = 5.0
_PING_S = 20.0
_AGAIN_S = 1.0
_GOODBYES = 3
_OPEN = (
    'for d in "${MYDYNO_RUN_DIR:-/dev/shm}" /dev/shm /var/tmp /tmp; do mkdir -p "$d" 2>/dev/null; '
    'S=$(mktemp -d "$d/mydyno-ssh-XXXXXXXX" 2>/dev/null) || continue; '
    r'printf "#\041/bin/sh\n" >"$S/x"; chmod 700 "$S/x"; "$S/x" 2>/dev/null && break; '
    'rm -rf "$S"; S=; done; [ -n "$S" ] || { echo "mydyno nowhere"; exit; }; '
    'rm "$S/x"; head -c "$1" >"$S/remote.sh"; exec sh "$S/remote.sh" open "$2" "$3"'
)
_IN = '[ -e "$0" ] || exec echo mydyno over; exec sh "$0" "$@"'
_END = re.compile(rb"\nmydyno (\d+) (\w+)\n")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply of the remote script: a word (exit code or state) and both outputs."""

    word: str
    out: bytes = b""
    err: bytes = b""


class Session:
    """An open session, which survives the loss of a connection."""

    def __init__(self, route: SshRoute, lease_s: float, old: str) -> None:
        """Connect and open it; raise `HostError` or `RefusedError` with the next step."""
        self.route = route
        self.lease_s = lease_s
        self.numbers = itertools.count(1)
        self.over = False
        self._given_up = False
        self._done: list[int] = []
        self._lock = threading.RLock()
        self._closing = threading.Event()
        script = resources.files("mydyno.host").joinpath("remote.sh").read_bytes()
        first = command("sh", "-c", _OPEN, "mydyno", str(len(script)), f"{lease_s:.0f}", old)
        self._connection = SshConnection(route, first, script)
        greeting = self._accepted(self._connection.greeting)
        self.folder, self.run_folder = Path(greeting[1]), Path(greeting[2])
        self.addresses = (greeting[3], greeting[5]) if len(greeting) > 6 else ("", "")  # noqa: PLR2004 - SSH_CONNECTION
        threading.Thread(target=self._send_keepalives, daemon=True).start()

    def request(self, words: tuple[object, ...], stdin: bytes, timeout_s: float) -> Reply | None:
        """Return the reply to a request, or None if the connection was lost.

        Raises `TimeoutError`.
        """
        response = self._connection.request([str(word) for word in words], stdin, timeout_s)
        return response and self._read(response, str(words[1]).encode())

    def order(self, *words: object) -> str:
        """Return the command line of a request to the remote script."""
        script = str(self.folder / "remote.sh")
        return command("sh", "-c", _IN, script, *map(str, words))

    def follow(self, number: int, at: int) -> "subprocess.Popen[bytes]":
        """Return the process that prints a command's output from byte `at` (from 0) on."""
        return self._connection.follow(self.order("follow", number, at + 1))

    def acknowledge(self, number: int) -> None:
        """Note that a command's result was received, so that the host may delete it."""
        self._done.append(number)

    def acknowledged(self) -> str:
        """Return the numbers of the commands whose results may be deleted, each once."""
        found, self._done = self._done[:], []
        return " ".join(map(str, found))

    def renew(self, patience_s: float) -> None:
        """Reconnect; raise `UnknownEndError` where that fails or the session is over.

        After `patience_s` each further call makes a single attempt until the host is back.
        """
        end_s = time.monotonic() + (0.0 if self._given_up else patience_s)
        while True:
            try:
                with self._lock:
                    return self._renew_once()
            except UnknownEndError:
                raise
            except HostError as error:
                if time.monotonic() > end_s:
                    self._given_up = True
                    raise UnknownEndError(
                        f"{error}; the result of the running command is unknown"
                    ) from error
            time.sleep(_AGAIN_S)

    def close(self) -> None:
        """End its commands, remove its folder, and disconnect."""
        self._closing.set()
        with self._lock, suppress(HostError, RefusedError):
            # the session can only be closed over an open connection
            for _ in range(_GOODBYES):
                if self._connection.close(grace_s=self.lease_s) or self.over:
                    return
                self._renew_once()

    def _renew_once(self) -> None:
        if self.over:
            raise UnknownEndError(self._lost())
        if self._connection.alive and self._answers():
            return
        self._connection.abort()
        fresh = SshConnection(self.route, self.order("line"))
        if fresh.greeting[:1] == ["over"]:
            fresh.abort()
            self.over = True
            raise UnknownEndError(self._lost())
        self._connection, self._given_up = fresh, False

    def _answers(self) -> bool:
        """Return whether the connection still works."""
        with suppress(TimeoutError):
            return self._connection.request(("ping", "0"), b"", _PING_S) is not None
        return False

    def _lost(self) -> str:
        return (
            f"{self.route.address.text}: unreachable for longer than the lease of its session, "
            "so its commands were ended, or it was rebooted"
        )

    def _send_keepalives(self) -> None:
        while not self._closing.wait(min(_BEAT_S, self.lease_s / 4)):
            with suppress(HostError, RefusedError), self._lock:
                if not self._connection.alive and not self.over and not self._closing.is_set():
                    self._renew_once()
                self._connection.keepalive()

    def _accepted(self, greeting: Sequence[str]) -> Sequence[str]:
        """Return the greeting of an open session; raise the error of any other greeting."""
        name = self.route.address.text
        match list(greeting):
            case ["line", *_] as words:
                return words
            case ["missing", *tools]:
                missing = ", ".join(tools)
                raise SpecError(
                    f"{name}: missing {missing}; install util-linux, coreutils and findutils"
                )
            case ["nowhere"]:
                raise HostError(
                    f"{name}: no folder that is writable and allows executing programs; "
                    "name one as MYDYNO_RUN_DIR in its environment"
                )
            case ["stuck", folder]:
                raise HostError(
                    f"{name}: an earlier session does not end; end the processes of {folder}"
                )
            case words:
                raise HostError(
                    f"{name}: unexpected greeting {' '.join(words)!r}; its login shell must be a "
                    "POSIX shell"
                )

    @staticmethod
    def _read(response: Response, number: bytes) -> Reply | None:
        """Return the reply between its marks, None if it is incomplete."""
        code, raw, errors = response
        begin = b"mydyno " + number + b"\n"
        found = [m for m in _END.finditer(errors) if m[1] == number]
        if code or not found or begin not in raw:
            return None
        err = errors[: found[-1].start()].partition(begin)[2]
        return Reply(found[-1][2].decode(), raw.partition(begin)[2], err)
