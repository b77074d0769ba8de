"""A host over the system's ssh: nothing is installed there, and nothing of ours stays."""

import atexit
import itertools
import os
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mydyno.host.local import Local
from mydyno.host.protocol import LONGEST_LINE, Completed, Host, Running
from mydyno.host.ssh_connection import SCHEME, Address, Response, SshConnection, SshRoute, parse
from mydyno.model import Action, HostError, RefusedError, SpecError, UnknownEndError

LEASE_S = 90.0  # without a keepalive for so long a host ends all commands of the session
_BEAT_S = 5.0
_PING_S = 20.0
_AGAIN_S = 1.0
_SILENT = 20  # times that an output is followed without a byte, while ssh answers
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
        self.received: list[int] = []  # commands whose results the host may delete
        self._lock = threading.RLock()
        self._closing = threading.Event()
        script = resources.files("mydyno.host").joinpath("remote.sh").read_bytes()
        first = shlex.join(("sh", "-c", _OPEN, "mydyno", str(len(script)), f"{lease_s:.0f}", old))
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
        return shlex.join(("sh", "-c", _IN, script, *map(str, words)))

    def follow(self, number: int, at: int) -> "subprocess.Popen[bytes]":
        """Return the process that prints a command's output from byte `at` (from 0) on."""
        return self._connection.follow(self.order("follow", number, at + 1))

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


PATIENCE_S = 60.0  # for a link that is cut; less than the lease, lest we come back to nothing
_ORDER_S = 60.0
_LARGEST = 1 << 30  # bytes of a file: the samples of a day
_FILE_S = 600.0
_KILLED = -9
_SIGNALLED = 128  # what a shell adds to the number of the signal that ended a command
_PUT = 'install -m "$1" /dev/stdin "$2.$$" && mv -f "$2.$$" "$2"'


class Ssh:
    """A host over ssh; it connects when it is first used, and closes when we end."""

    def __init__(
        self,
        address: Address,
        *,
        config: Path | None = None,
        lease_s: float = LEASE_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._route = SshRoute(address, config)
        self._lease_s = lease_s
        self._patience_s = patience_s
        self._session: Session | None = None
        self._old = ""
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """Return the address as a spec writes it."""
        return self._route.address.text

    def folder(self) -> Path:
        """Return a folder on the host that ends with our session; programs may be started there."""
        return self._open().folder / "files"

    def run_folder(self) -> Path:
        """Return the folder of locks on the host, as mydyno there would choose it."""
        return self._open().run_folder

    def addresses(self) -> tuple[str, str]:
        """Return our address as the host sees it, and its own by which we reached it."""
        return self._open().addresses

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command; after a cut learn how it ended, and never run it twice.

        Raises `UnknownEndError` where that cannot be learnt.
        """
        session = self._open()
        number, reply = self._begun(session, "act", action, "", timeout_s)
        session.received.append(number)
        return Completed(action, int(reply.word), reply.out, reply.err)

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command; it and its output outlive the link, but not the session."""
        errors = str(stderr or os.devnull)
        session = self._open()
        number, reply = self._begun(session, "start", action, errors, _ORDER_S)
        return SshRunning(self, session, number, int(reply.out.split()[0]))

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the host with its mode, atomically."""
        mode = f"{local.stat().st_mode & 0o777:o}"
        put = Action(("sh", "-c", _PUT, "put", mode, str(remote)), local.read_bytes())
        self.run(put, timeout_s=_FILE_S).check()

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the host, atomically."""
        head = Action(("head", "-c", str(_LARGEST), "--", str(remote)))
        raw = self.run(head, timeout_s=_FILE_S).check().stdout
        part = local.with_name(f".{local.name}.part")
        part.unlink(missing_ok=True)
        with part.open("xb") as file:
            file.write(raw)
        part.replace(local)

    def close(self) -> None:
        """End what we began there and hang up; the next use connects again."""
        with self._lock:
            if self._session is not None:
                atexit.unregister(self.close)
                self._session.close()
                self._session = None

    def request(self, session: Session, *words: object, timeout_s: float = _ORDER_S) -> Reply:
        """Return the reply to an order that may be given twice; raise `UnknownEndError` if none."""
        while True:
            with suppress(TimeoutError):
                if reply := session.request(words, b"", timeout_s):
                    return self._known(session, reply)
            self.renew(session)

    def renew(self, session: Session) -> None:
        """Connect again after a cut; raise `UnknownEndError` where that cannot be."""
        try:
            session.renew(self._patience_s)
        finally:
            self._leave(session)

    def _open(self) -> Session:
        with self._lock:
            if self._session is None:
                self._session = Session(self._route, self._lease_s, self._old)
                atexit.register(self.close)
            return self._session

    def _leave(self, session: Session) -> None:
        """Forget a session that is over, so that the next use opens another."""
        with self._lock:
            if session.over and self._session is session:
                self._old, self._session = str(session.folder), None
                atexit.unregister(self.close)
                session.close()

    def _known(self, session: Session, reply: Reply) -> Reply:
        if reply.word == "over":
            session.over = True
            self._leave(session)
            raise UnknownEndError(f"{self.name}: has ended our session; what ran there is ended")
        return reply

    def _begun(
        self, session: Session, order: str, action: Action, errors: str, timeout_s: float
    ) -> tuple[int, Reply]:
        """Return number and reply of an act that has begun once and no more."""
        end_s = time.monotonic() + timeout_s
        while True:
            number = next(session.numbers)
            reply = self._tried(session, order, number, action, errors, end_s)
            match reply.word:
                case "never":
                    continue  # it was cut off before it began, and now never will
                case "missing":
                    raise HostError(
                        f"{action.argv[0]}: not found on {self.name}; install it or name its path"
                    )
                case "lost":
                    raise UnknownEndError(
                        f"{self.name}: {action.argv[0]} was ended there by something else"
                    )
                case _:
                    return number, reply

    def _tried(
        self, session: Session, order: str, number: int, action: Action, errors: str, end_s: float
    ) -> Reply:
        received, session.received = session.received, []
        words = (order, number, " ".join(map(str, received)), errors, *action.argv)
        try:
            reply = session.request(words, action.stdin, _left(end_s))
            while reply is None:
                self.renew(session)
                kind = "code" if order == "act" else "pid"
                reply = session.request(("fetch", number, kind), b"", _left(end_s))
        except TimeoutError as error:
            self._halt(session, number)
            raise HostError(f"{action.argv[0]}: timed out on {self.name}") from error
        except KeyboardInterrupt:
            self._halt(session, number)
            raise
        return self._known(session, reply)

    def _halt(self, session: Session, number: int) -> None:
        """End an act that nobody waits for any more, or see that it never begins."""
        self.request(session, "halt", number)


@dataclass(frozen=True, slots=True)
class SshRunning:
    """A command on the host, in a process group of its own; its output is a file there."""

    host: Ssh
    session: Session
    number: int
    pid: int

    def lines(self) -> Iterator[bytes]:
        """Yield each line as it comes; after a cut go on from the byte where we were."""
        rest, at, silent = b"", 0, 0
        while True:
            before = at
            process = self.session.follow(self.number, at)
            try:
                for raw in self._bytes(process):
                    at += len(raw)
                    *complete, rest = (rest + raw).split(b"\n")
                    yield from (line + b"\n" for line in complete)
                    if len(rest) >= LONGEST_LINE:
                        yield rest
                        rest = b""
                over = process.stderr.read() if process.stderr else b""
                done = process.wait() == 0 and b"mydyno %d done\n" % self.number in over
            finally:
                _end(process)
            if done:
                break
            if self.session.over:
                raise UnknownEndError(f"{self.host.name}: its output is cut off: the session ended")
            self.host.renew(self.session)
            silent = 0 if at > before else self._again(silent + 1, over)
        if rest:
            yield rest

    def _again(self, times: int, words: bytes) -> int:
        """Wait before an output that gave nothing is followed once more; return the times."""
        if times == _SILENT:
            shown = words.decode(errors="replace").strip()[-300:]
            raise HostError(f"{self.host.name}: its output cannot be followed: {shown}")
        time.sleep(_AGAIN_S)
        return times

    def _bytes(self, process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
        """Yield what comes after the mark."""
        mark, seen, begun = b"mydyno %d\n" % self.number, b"", False
        out = process.stdout
        while out and (raw := os.read(out.fileno(), 65536)):
            if begun:
                yield raw
                continue
            seen += raw
            begun = mark in seen
            if begun and (after := seen.partition(mark)[2]):
                yield after

    def returncode(self) -> int | None:
        """Return its exit code, negative for a signal, or None while it runs."""
        return self._ended("code", self.number)

    def stop(self, *, grace_s: float = 10.0) -> int:
        """End its group; one whose session is over has been ended with that."""
        code = self._ended("stop", self.number, f"{grace_s:.0f}", timeout_s=_ORDER_S + grace_s)
        return _KILLED if code is None else code

    def _ended(self, *words: object, timeout_s: float = _ORDER_S) -> int | None:
        if self.session.over:
            return _KILLED
        word = self.host.request(self.session, *words, timeout_s=timeout_s).word
        if word == "running":
            return None
        code = int(word) if word.isdigit() else -_KILLED + _SIGNALLED
        return _SIGNALLED - code if code > _SIGNALLED else code


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _left(end_s: float) -> float:
    return max(0.1, end_s - time.monotonic())


LOCAL = "local"
_CONFIG = "MYDYNO_SSH_CONFIG"


def reach(text: str) -> Host:
    """Return the host that `text` names: ``local``, or ``ssh://[user@]host[:port]``.

    No connection is made yet.  $MYDYNO_SSH_CONFIG names an ssh configuration to use instead of the
    user's.  Raise `SpecError` for an invalid name.
    """
    if text == LOCAL:
        return Local()
    config = os.environ.get(_CONFIG)
    if config and not Path(config).is_file():
        raise SpecError(f"{_CONFIG}={config}: no such file; correct or unset it")
    return Ssh(parse(text), config=Path(config).absolute() if config else None)


def named(text: str) -> bool:
    """Return whether a word names a host and no file."""
    return text == LOCAL or text.startswith(SCHEME)
