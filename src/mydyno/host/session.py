"""One session on an ``ssh://`` host: numbered acts in one folder there, which ends with its lease.

ADR 0007 says why no act is ever repeated that may have happened.
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

LEASE_S = 90.0  # what a host waits for a sign of us before it ends all we began there
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
    """What the far end said: a word (an exit code, or what became of the act) and both outputs."""

    word: str
    out: bytes = b""
    err: bytes = b""


class Session:
    """A session that is open, over one link after another; make it with `opened`."""

    def __init__(self, route: SshRoute, lease_s: float, old: str) -> None:
        """Connect and open; raise `HostError` or `RefusedError` naming the next step."""
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
        """Return the reply to an order; None where the link went down and it is not known.

        Raises `TimeoutError`.
        """
        said = self._connection.request([str(word) for word in words], stdin, timeout_s)
        return said and self._read(said, str(words[1]).encode())

    def order(self, *words: object) -> str:
        """Return the command line that gives an order to the far end."""
        script = str(self.folder / "remote.sh")
        return command("sh", "-c", _IN, script, *map(str, words))

    def follow(self, number: int, at: int) -> "subprocess.Popen[bytes]":
        """Return the process that prints an act's output from byte `at` (counted from 0) on."""
        return self._connection.follow(self.order("follow", number, at + 1))

    def acknowledge(self, number: int) -> None:
        """Say that an act's result has arrived, so that the host may forget it."""
        self._done.append(number)

    def acknowledged(self) -> str:
        """Return the numbers of the acts that may be forgotten, each of them once."""
        found, self._done = self._done[:], []
        return " ".join(map(str, found))

    def renew(self, patience_s: float) -> None:
        """Connect again; raise `UnknownEndError` where that fails or the session is over.

        Once the patience is spent, a host has one attempt at a time until it is back.
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
                    raise UnknownEndError(f"{error}; what was under way is not known") from error
            time.sleep(_AGAIN_S)

    def close(self) -> None:
        """End what runs there, remove what is there, and hang up."""
        self._closing.set()
        with self._lock, suppress(HostError, RefusedError):
            # only over a link that is up can the host be told that we leave
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
        """Return whether the link that seems to be up still is."""
        with suppress(TimeoutError):
            return self._connection.request(("ping", "0"), b"", _PING_S) is not None
        return False

    def _lost(self) -> str:
        return (
            f"{self.route.address.text}: was out of reach for so long that it has ended what we "
            "had begun there, or it was started anew"
        )

    def _send_keepalives(self) -> None:
        while not self._closing.wait(min(_BEAT_S, self.lease_s / 4)):
            with suppress(HostError, RefusedError), self._lock:
                if not self._connection.alive and not self.over and not self._closing.is_set():
                    self._renew_once()
                self._connection.keepalive()

    def _accepted(self, greeting: Sequence[str]) -> Sequence[str]:
        """Return the words of a session that is open; raise what else the far end said."""
        name = self.route.address.text
        match list(greeting):
            case ["line", *_] as words:
                return words
            case ["missing", *tools]:
                told = f"{name}: has no {', '.join(tools)}"
                raise SpecError(f"{told}: install util-linux, coreutils and findutils")
            case ["nowhere"]:
                raise HostError(
                    f"{name}: no folder there where we may write and start programs; "
                    "name one as MYDYNO_RUN_DIR in its environment"
                )
            case ["stuck", folder]:
                raise HostError(
                    f"{name}: an older session of ours does not end: look what of {folder} runs"
                )
            case words:
                raise HostError(f"{name}: said {' '.join(words)!r}; is its shell a POSIX one?")

    @staticmethod
    def _read(said: Response, number: bytes) -> Reply | None:
        """Return the reply between its marks, None where they are not whole."""
        code, raw, told = said
        begin = b"mydyno " + number + b"\n"
        found = [m for m in _END.finditer(told) if m[1] == number]
        if code or not found or begin not in raw:
            return None
        err = told[: found[-1].start()].partition(begin)[2]
        return Reply(found[-1][2].decode(), raw.partition(begin)[2], err)
