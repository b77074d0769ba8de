"""Launch files of a private server, with its /proc files: the layers of limits and environment."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError, unknown_value
from mydyno.stack.known import normalise
from mydyno.stack.known.allocators import TUNABLES

OWNED = "owned"
"""The observed key that lists, comma-separated, what the layer's own file sets just now."""

# Missing files print nothing, so that a server that is down is an answer and not an error.
# The process counts only if it was started with our option file: a pid file may be stale.
_PROGRAM = r"""
function show(tag, file, separator,   line) {
    RS = separator
    while ((getline line < file) > 0) print tag "\t" line
    close(file)
}
BEGIN {
    show("own", ARGV[1], "\n")
    RS = "\n"
    if ((getline pid < ARGV[2]) <= 0) exit
    RS = "\0"
    while ((getline line < ("/proc/" pid "/cmdline")) > 0) if (line == ARGV[3]) ours = 1
    if (!ours) exit
    print "running\t"
    for (i = 4; i < ARGC; i++)
        show(ARGV[i], "/proc/" pid "/" ARGV[i], ARGV[i] == "environ" ? "\0" : "\n")
}
"""


@dataclass(frozen=True, slots=True)
class Server:
    """The private server a layer belongs to: its pid file and the option file it is started with.

    `own` is the launch file that the layer writes.
    """

    own: Path
    pid_file: Path
    options: Path

    def look(self, *names: str) -> Action:
        """Return the command that prints the own file and these files of /proc/PID."""
        argument = f"--defaults-file={self.options}"
        return Action(("awk", _PROGRAM, str(self.own), str(self.pid_file), argument, *names))

    def write(self, lines: Iterable[str]) -> Action:
        """Return the command that writes `lines` as the entire own file."""
        return install(self.own, "".join(f"{line}\n" for line in lines))


@dataclass(frozen=True, slots=True)
class ServerState:
    """What `look` printed: the own file's pairs, and each /proc file's lines by its name."""

    own: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    running: bool = False


def parse(raw: bytes) -> ServerState:
    """Return what `look` printed, sorted by file."""
    files: dict[str, list[str]] = {}
    for line in raw.decode(errors="surrogateescape").split("\n"):
        tag, tab, text = line.partition("\t")
        if tab:
            files.setdefault(tag, []).append(text)
    own = pairs(files.pop("own", []))
    running = files.pop("running", None) is not None
    return ServerState(own, files, running)


def pairs(lines: Iterable[str]) -> dict[str, str]:
    """Return the ``name=value`` lines as a mapping; other lines are left out."""
    split = (line.partition("=") for line in lines)
    return {name: value for name, equals, value in split if equals and not name.startswith("#")}


def install(path: Path, text: str) -> Action:
    """Return the command that writes `text` as an entire file, for its owner and its group."""
    return Action(("install", "-m", "640", "/dev/stdin", str(path)), text.encode())


def changes(now: Settings, want: Settings, defaults: Settings, action: Action) -> list[Change]:
    """Return the restart changes that make the own file hold exactly `want`.

    A key that the file holds and `want` does not name goes back to its default.
    """
    held = [key for key in now.get(OWNED, "").split(",") if key]
    found = []
    for key in sorted({*want, *held}):
        before = now.get(key, defaults.get(key, ""))
        after = want.get(key, defaults.get(key, ""))
        if before != after or (key in held and key not in want):
            found.append(Change(key, before, after, action, Cost.RESTART))
    return found


def file_and_query(own: Path, client: tuple[str, ...], question: bytes) -> Action:
    """Return the command that prints the own file and then the server's reply to SQL.

    `find` runs both, and succeeds whether or not the server answers.
    """
    start = ("find", str(own.parent), "-maxdepth", "1", "-name", own.name)
    ask = ("-exec", "cat", "--", "{}", ";", "-exec", *client, ";")
    return Action((*start, *ask), question)


_ROWS = {
    "nofile": "Max open files",
    "nproc": "Max processes",
    "memlock": "Max locked memory",
}
_LIMIT = re.compile(r"\d+|unlimited")


@dataclass(frozen=True, slots=True)
class Limits:
    """Keys `nofile` (files), `nproc` (processes), `memlock` (bytes): soft and hard alike."""

    name: ClassVar[str] = "limits"
    owned: ClassVar[bool] = True
    server: Server

    def observe(self) -> Probe[Settings]:
        """Return the probe for the process's soft limits."""
        return Probe(self.server.look("limits"), parse_limits)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for an unknown limit or a value that is none."""
        wanted = {key: _limit(key, value) for key, value in want.items()}
        lines = [f"{key}={value}" for key, value in sorted(wanted.items())]
        return changes(now, wanted, dict.fromkeys(_ROWS, "inherited"), self.server.write(lines))


def parse_limits(raw: bytes) -> Settings:
    """Return the soft limits of the running process, else those that its launch file asks for."""
    seen = parse(raw)
    settings = {key: value for key, value in seen.own.items() if key in _ROWS}
    held = ",".join(sorted(settings))
    for line in seen.files.get("limits", []):
        for key, title in _ROWS.items():
            if line.startswith(title):
                settings[key] = line.removeprefix(title).split()[0]
    return {**settings, OWNED: held} if held else settings


def _limit(key: str, value: str) -> str:
    if key not in _ROWS:
        raise SpecError(unknown_value(key, _ROWS, "setting", prefix="limits."))
    plain = normalise(value).lower()
    if not _LIMIT.fullmatch(plain):
        raise SpecError(f"limits.{key} = {value!r}: an integer or unlimited")
    return plain


_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = {
    "LD_PRELOAD": "set alloc.library",
    **dict.fromkeys(TUNABLES.values(), "set alloc.tunables"),
    "HOME": "mydyno sets it",
    "LC_ALL": "mydyno sets it",
    "PATH": "mydyno sets it",
}


@dataclass(frozen=True, slots=True)
class Env:
    """Keys are the names of environment variables: `env.TZ`."""

    name: ClassVar[str] = "env"
    owned: ClassVar[bool] = True
    server: Server

    def observe(self) -> Probe[Settings]:
        """Return the probe for the variables that mydyno set, as the process has them."""
        return Probe(self.server.look("environ"), parse_env)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for a name or value that cannot be set."""
        for name, value in want.items():
            _refuse_variable(name, value)
        lines = [f"{name}={value}" for name, value in sorted(want.items())]
        return changes(now, want, {}, self.server.write(lines))


def parse_env(raw: bytes) -> Settings:
    """Return the own file's variables, with the running process's values where it runs."""
    seen = parse(raw)
    truth = pairs(seen.files.get("environ", [])) if seen.running else seen.own
    settings = {name: truth[name] for name in seen.own if name in truth}
    return {**settings, OWNED: ",".join(sorted(seen.own))} if seen.own else settings


def refuse_of_load(treatment: str, wanted: Settings) -> None:
    """Raise `SpecError` for a variable of a load's environment that cannot be set there."""
    for name, value in wanted.items():
        if name == "LC_ALL" or name.startswith("MYDYNO_"):
            raise SpecError(f"{treatment}: load/env.{name}: mydyno sets it; remove it")
        _refuse_words(f"{treatment}: load/env.{name}", name, value)


def _refuse_variable(name: str, value: str) -> None:
    if name in _TAKEN:
        raise SpecError(f"env.{name}: not here: {_TAKEN[name]}")
    _refuse_words(f"env.{name}", name, value)


def _refuse_words(place: str, name: str, value: str) -> None:
    if not _VARIABLE_NAME.fullmatch(name):
        raise SpecError(f"{place}: not a variable's name: letters, digits and _ only")
    if "\n" in value or "\0" in value:
        raise SpecError(f"{place}: one line only")
