"""One ssh connection to a host, shared by all commands to it (ControlMaster)."""

import itertools
import os
import queue
import re
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mydyno.host import local
from mydyno.model import HostError, MydynoError, RefusedError, SpecError

SCHEME = "ssh://"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*")  # a leading dash would be an option of ssh
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.$@\\-]*")


@dataclass(frozen=True, slots=True)
class Address:
    """A host by name or ssh alias; port 0 is the default of the ssh configuration."""

    host: str
    user: str = ""
    port: int = 0

    @property
    def text(self) -> str:
        """Return it as a spec writes it."""
        user = f"{self.user}@" if self.user else ""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{user}{name}" + (f":{self.port}" if self.port else "")

    @property
    def words(self) -> tuple[str, ...]:
        """Return the arguments of ssh that name it."""
        login = ("-l", self.user) if self.user else ()
        port = ("-p", str(self.port)) if self.port else ()
        return (*login, *port, "--", self.host)


def parse(text: str) -> Address:
    """Return the address; raise `SpecError` for text that is not ``ssh://[user@]host[:port]``."""
    wrong = SpecError(f"invalid host {_hidden(text)!r}; expected local or ssh://user@host[:port]")
    if not text.startswith(SCHEME):
        raise wrong
    try:
        parts = urlsplit(text)
        host, port = parts.netloc.rpartition("@")[2], parts.port or 0
    except ValueError as error:
        raise wrong from error
    if parts.password is not None:
        raise SpecError(
            f"invalid host {_hidden(text)!r}: contains a password; use a key or ssh-agent"
        )
    name = host.partition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]
    user = parts.username or ""
    rest = parts.path.strip("/") or parts.query or parts.fragment
    if not _NAME.fullmatch(name) or (user and not _USER.fullmatch(user)) or rest:
        raise wrong
    return Address(name, user, port)


def _hidden(text: str) -> str:
    """Return the text with a password replaced by ***."""
    return re.sub(r":[^:@/]*@", ":***@", text)


_SHOWN = 300
_CHANGED = "HOST IDENTIFICATION HAS CHANGED"
_KEY = re.compile(r"host key verification failed|no .* host key is known|REVOKED", re.IGNORECASE)
_STEPS = (
    (
        re.compile(r"permission denied|too many authentication|no such identity", re.IGNORECASE),
        "authentication failed; load the key into ssh-agent, or set IdentityFile in ~/.ssh/config",
    ),
    (
        re.compile(r"could not resolve|name or service not known", re.IGNORECASE),
        "host name not found; check its spelling, or add an alias to ~/.ssh/config",
    ),
    (
        re.compile(r"connection refused", re.IGNORECASE),
        "connection refused; check the port, and that sshd is running",
    ),
    (
        re.compile(r"no route to host|network is unreachable|timed out", re.IGNORECASE),
        "host unreachable; check address, route and firewall, or set a ProxyJump",
    ),
    (
        re.compile(r"not allowed|administratively prohibited|stdio forwarding failed"),
        "the jump host refused forwarding; check its AllowTcpForwarding",
    ),
)
_NOISE = re.compile(r"^(@+|\s*|.*UNKNOWN port 65535.*)$")


def refusal(name: str, words: bytes) -> MydynoError:
    """Return the error for ssh's error output: `RefusedError` for an unknown host key."""
    text = words.decode(errors="replace")
    if _CHANGED in text:
        return RefusedError(
            f"{name}: host key differs from known_hosts: another machine, or a man in the middle; "
            "find out why, and only then remove the old key with `ssh-keygen -R`"
        )
    if _KEY.search(text):
        return RefusedError(
            f"{name}: host key unknown; connect once with ssh, compare the fingerprint, and accept "
            f"it ({last(text)})"
        )
    steps = (step for pattern, step in _STEPS if pattern.search(text))
    step = next(steps, "ssh cannot connect; try the same with ssh -v")
    return HostError(f"{name}: {step} ({last(text)})")


def last(text: str) -> str:
    """Return the last meaningful line."""
    lines = [line.strip() for line in text.splitlines() if not _NOISE.match(line)]
    return (lines or ["ssh printed nothing"])[-1][:_SHOWN]


_CONNECT_S = 30.0
_END_S = 5.0
_LONGEST_REPLY = (1 << 30) + (1 << 16)  # bytes: a file, and its frame
_LONGEST = 60  # a socket's path holds 107 bytes, and ssh adds some of its own
# After fifteen seconds without a reply the connection is considered lost.
_FIXED = (
    *("-o", "BatchMode=yes", "-o", "LogLevel=ERROR", "-o", "EscapeChar=none", "-T"),
    *("-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"),
    *("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "ClearAllForwardings=yes"),
    *("-o", "PermitLocalCommand=no", "-o", "ControlPersist=no", "-o", "RequestTTY=no"),
    *("-o", "RemoteCommand=none"),
)
_SESSION_ENDED = b"over\n"
_FIELDS = 4  # number, exit code, lengths of both outputs
_HELLO = re.compile(rb"^mydyno (.*)\n", re.MULTILINE)
_UNCHECKED = ("false", "no", "off")
_NO_FILE = ("/dev/null", "none")
# The folder $0 is removed when ssh has ended, even if this process was killed.
_TIDY = '"$@"; rm -rf -- "$0"'


Response = tuple[int, bytes, bytes]
"""The exit code of a request's script, its standard output and its standard error."""


@dataclass(frozen=True, slots=True)
class SshRoute:
    """How to reach a host: its address, and an ssh configuration file other than the user's."""

    address: Address
    config: Path | None = None

    @property
    def tool(self) -> tuple[str, ...]:
        """Return the ssh command with its configuration option."""
        return ("ssh", *(("-F", str(self.config)) if self.config else ()))


class SshConnection:
    """An open connection; its first command's stdin stays open, for keepalives."""

    def __init__(self, route: SshRoute, command: str, first: bytes = b"") -> None:
        """Connect, run `command` and give it `first`; raise `HostError` with the next step.

        Raises `RefusedError` for a host key that is not known, or not checked.
        """
        refuse_unchecked(route)
        self._route = route
        self._down = False
        self._folder = tempfile.mkdtemp(prefix="mydyno-", dir=_short())
        master = ("-M", "-S", f"{self._folder}/c", *route.address.words, command)
        tidy = ("sh", "-c", _TIDY, self._folder)
        self._process = _spawn((*tidy, *route.tool, *_FIXED, *master), subprocess.PIPE)
        self._write_lock = threading.Lock()
        self._frames = itertools.count(1)
        self._pending: dict[int, queue.SimpleQueue[Response | None]] = {}
        self._listener: threading.Thread | None = None
        self._write(first)
        self.greeting, rest = self._greeting()
        self._session_ended = False
        self._listener = threading.Thread(target=self._read_responses, args=(rest,), daemon=True)
        self._listener.start()

    @property
    def alive(self) -> bool:
        """Return whether it is still open, as far as ssh knows."""
        return not self._down and self._process.poll() is None

    def keepalive(self) -> None:
        """Send a keepalive to the host."""
        self._write(b"\n")

    def argv(self, command: str) -> tuple[str, ...]:
        """Return the ssh command that runs a command over this connection only."""
        mine = ("-S", f"{self._folder}/c", "-o", "ControlMaster=no", "-o", "ProxyCommand=false")
        return (*self._route.tool, *_FIXED, *mine, *self._route.address.words, command)

    def request(self, words: Sequence[str], stdin: bytes, timeout_s: float) -> Response | None:
        """Send a request; return the response, or None if the connection was lost.

        Raises `TimeoutError`.
        """
        frame, reply = next(self._frames), queue.SimpleQueue[Response | None]()
        self._pending[frame] = reply
        order = shlex.join(words).encode()
        self._write(b"%d %d %d\n" % (frame, len(order), len(stdin)) + order + stdin)
        try:
            return None if self._down else reply.get(timeout=timeout_s)
        except queue.Empty as error:
            raise TimeoutError from error
        finally:
            self._pending.pop(frame, None)

    def follow(self, command: str) -> "subprocess.Popen[bytes]":
        """Start a command whose output is read while it runs."""
        return _spawn(self.argv(command), subprocess.DEVNULL)

    def close(self, *, grace_s: float = _END_S) -> bool:
        """Close the connection; return whether the remote session has ended."""
        with suppress(OSError):
            if self._process.stdin:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self.abort()
        return self._session_ended

    def abort(self) -> None:
        """Close the connection at once."""
        self._down = True
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._listener:  # who reads a pipe that is closed may read another file of its number
            self._listener.join(_END_S)
        reads = self._listener is not None and self._listener.is_alive()
        out = None if reads else self._process.stdout
        for pipe in (self._process.stdin, out, self._process.stderr):
            with suppress(OSError):
                if pipe:
                    pipe.close()

    def _read_responses(self, rest: bytes) -> None:
        """Pass each response to its caller, and None to all when the connection is lost."""
        out = self._process.stdout
        try:
            while out and (raw := _read(out.fileno())):
                rest += raw
                if len(rest) > _LONGEST_REPLY:
                    break  # longer than any valid response
                while parsed := _parse_frame(rest):
                    frame, response, rest = parsed
                    if waiting := self._pending.get(frame):
                        waiting.put(response)
        finally:  # whatever ends this, nobody waits for a response that cannot come
            self._down, self._session_ended = True, rest.endswith(_SESSION_ENDED)
            for waiting in list(self._pending.values()):
                waiting.put(None)

    def _write(self, raw: bytes) -> None:
        # a caller that expects a reply learns from `request` that the connection is down
        with suppress(OSError, ValueError), self._write_lock:
            if self._process.stdin:
                self._process.stdin.write(raw)
                self._process.stdin.flush()

    def _greeting(self) -> tuple[Sequence[str], bytes]:
        """Return the words of the greeting, after anything that the login shell prints."""
        end_s = time.monotonic() + _CONNECT_S
        out, seen = self._process.stdout, b""
        while out and (left_s := end_s - time.monotonic()) > 0:
            if not select.select([out], [], [], left_s)[0]:
                break
            raw = os.read(out.fileno(), 4096)
            seen += raw
            if found := _HELLO.search(seen):
                return found[1].decode(errors="replace").split(), seen[found.end() :]
            if not raw:
                break
        raise self._refusal()

    def _refusal(self) -> MydynoError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        words = self._process.stderr.read() if self._process.stderr else b""
        self.abort()
        return refusal(self._route.address.text, words)


def refuse_unchecked(route: SshRoute) -> None:
    """Raise `RefusedError` where the user's configuration does not check the keys of a host.

    Jump hosts are checked too.
    """
    settings = _effective(route)
    if settings.get("stricthostkeychecking") in _UNCHECKED:
        raise RefusedError(
            f"{route.address.text}: your ssh configuration has StrictHostKeyChecking no; "
            "mydyno requires host key checking: set it to yes, ask or accept-new"
        )
    kinds = ("userknownhostsfile", "globalknownhostsfile")
    files = [file for kind in kinds for file in settings.get(kind, "").split()]
    forgets = all(file in _NO_FILE for file in files)
    if forgets and settings.get("stricthostkeychecking") not in {"true", "yes"}:
        raise RefusedError(
            f"{route.address.text}: your ssh configuration keeps the keys of hosts in "
            f"{' and '.join(files) or 'no file'}, so host keys are not checked; set "
            "UserKnownHostsFile to a file"
        )
    for jump in filter(None, settings.get("proxyjump", "none").split(",")):
        if jump != "none":
            refuse_unchecked(SshRoute(_jump(jump), route.config))


def _jump(text: str) -> Address:
    user, _, rest = text.removeprefix("ssh://").rpartition("@")
    host, _, port = rest.rpartition(":") if rest.count(":") == 1 else (rest.strip("[]"), "", "")
    return Address(host or rest, user, int(port or 0))


def _effective(route: SshRoute) -> dict[str, str]:
    """Return the effective ssh configuration for a host (``ssh -G``)."""
    try:
        argv = (*route.tool, "-G", *route.address.words)
        done = subprocess.run(argv, capture_output=True, check=False, env=_environment())
    except FileNotFoundError as error:
        raise HostError("ssh: not found here; apt-get install openssh-client") from error
    if done.returncode:
        raise refusal(route.address.text, done.stderr)
    pairs = (line.partition(" ") for line in done.stdout.decode(errors="replace").splitlines())
    return {name: value for name, _, value in pairs}


def _spawn(argv: Sequence[str], stdin: int) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return local.spawn(argv, stdin=stdin, stdout=pipe, stderr=pipe, env=_environment())


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except (OSError, ValueError):
        return b""


def _parse_frame(raw: bytes) -> tuple[int, Response, bytes] | None:
    """Return number and response of the first frame, and the rest; None if it is incomplete."""
    head, _, body = raw.partition(b"\n")
    fields = head.split()
    if len(fields) != _FIELDS:  # incomplete, or the end of the session
        return None
    frame, code, out, err = map(int, fields)
    if len(body) < out + err:
        return None
    return frame, (code, body[:out], body[out : out + err]), body[out + err :]


def _environment() -> dict[str, str]:
    return {**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}


def _short() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= _LONGEST else "/tmp"  # noqa: S108 - a fresh folder in it
