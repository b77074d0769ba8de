r"""What commands share: options and output.

All output passes `EscapedStream`; progress is a live line.

Names, messages and logs come from outside.  Characters in them that would move the cursor, change
colours or reorder the text are shown as escapes: ``\x1b``.
"""

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TextIO

import msgspec
import typer

from mydyno.model import Interval, MydynoError, Outcome, Trial, TrialStatus


def _paths(begun: str, suffix: str = "") -> list[str]:
    """Return the folders, and the files with a suffix, whose paths begin so."""
    folder, slash, name = begun.rpartition("/")
    within = f"{folder}{slash}"
    with suppress(OSError):
        found = sorted(p for p in Path(within or ".").iterdir() if p.name.startswith(name))
        folders = [f"{within}{p.name}/" for p in found if p.is_dir() and (name or p.name[0] != ".")]
        files = [f"{within}{p.name}" for p in found if suffix and p.suffix == suffix]
        return [*folders, *files]
    return []


def folders(incomplete: str) -> list[str]:
    """Return the folders that a word of the command line may become."""
    return _paths(incomplete)


def recipe_names(incomplete: str) -> list[str]:
    """Return the recipes that a word of the command line may become."""
    from mydyno.cli.recipes import shipped  # noqa: PLC0415 - recipes takes its options from here

    return [name for name in shipped() if name.startswith(incomplete)]


def _specs(incomplete: str) -> list[str]:
    return [*recipe_names(incomplete), *_paths(incomplete, ".toml")]


def _scales(context: typer.Context, incomplete: str) -> list[str]:
    from mydyno.cli.recipes import find  # noqa: PLC0415 - as above

    # an option without its value ends the parsing, and what came before it is left in args
    words = (context.params.get("spec"), *context.args)
    with suppress(MydynoError):
        sizes = find(next((str(w) for w in words if w), ""), {}).decode().scale
        return [name for name in sizes if name.startswith(incomplete)]
    return []


SpecName = Annotated[
    str,
    typer.Argument(
        help="A spec file (my.toml) or the name of a recipe.",
        metavar="SPEC|RECIPE",
        autocompletion=_specs,
    ),
]
Dir = Annotated[
    Path, typer.Argument(help="A run directory.", metavar="DIR", autocompletion=folders)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
LiveServer = Annotated[
    Path | None,
    typer.Option(
        "--server-defaults",
        metavar="FILE",
        help="With --live: sample a server, too, with [client] of this option file.",
    ),
]
HostOption = Annotated[
    str, typer.Option("--host", metavar="HOST", help="local, or ssh://user@host:port.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the spec: design.blocks=5."),
]
Budget = Annotated[str | None, typer.Option(help="Machine time to spend at most: 20m, 2h.")]
Scale = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The size to run it at, from [scale.NAME].",
        autocompletion=_scales,
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="WHAT",
        help="Allow changes outside the lab: host, existing-server, reformat:/dev/DISK.",
    ),
]

TAIL = "latency_p99_s"
_CLEAR = "\r\x1b[2K"  # back to the first column, and the line is empty
_C0, _ASTRAL = 0x20, 0x10000  # JSON escapes what is below, so that \x cannot get into it
# controls but tab and newline, C1, line separators, bidirectional and invisible marks, surrogates
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    r"""Return `text` with controls as ``\x1b`` or ``\u009b``; JSON stays the same JSON."""
    return _HIDDEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    if code < _C0:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _ASTRAL else _escape_pair(code - _ASTRAL)


def _escape_pair(code: int) -> str:
    """Return a character beyond 16 bits as JSON has it: two surrogates."""
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"


class EscapedStream:
    """A stream of text that shows controls as escapes; `own` is the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        """Write to `stream`."""
        self.own = stream

    def write(self, text: str) -> int:
        """Write `text` as it can be seen; characters that the encoding lacks as escapes."""
        shown = visible(text)
        encoding = self.own.encoding or "utf-8"
        self.own.write(shown.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        """Return everything else from the stream itself."""
        return getattr(self.own, name)


@contextmanager
def guarded() -> Iterator[None]:
    """Let all output to stdout and stderr pass `EscapedStream`, also that of libraries."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = EscapedStream(streams[0]), EscapedStream(streams[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def own(stream: TextIO) -> TextIO:
    """Return the stream itself, for our own control sequences only."""
    return stream.own if isinstance(stream, EscapedStream) else stream


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["mydyno", *sys.argv[1:]])


def width() -> int:
    """Return how many columns to write to stdout."""
    return shutil.get_terminal_size((100, 24)).columns


def _live_width() -> int:
    """Return how many columns stderr has; stdout may be a file."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stderr.fileno()).columns or width()
    return width()


@dataclass(slots=True)
class _LiveLine:
    """Whether the last line of the terminal is a live one, which the next message must not join."""

    shown: bool = False


_LIVE = _LiveLine()


def print_message(text: str) -> None:
    """Write a line to stderr, below a live line if there is one."""
    sys.stderr.write("\n" * _LIVE.shown + text + "\n")
    _LIVE.shown = False
    sys.stderr.flush()


def print_json(value: object) -> None:
    """Write a value to stdout as one line of JSON."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def print_result(value: object, text: Callable[[], str], *, json: bool) -> None:
    """Write a value to stdout as JSON, or the text of it that people read."""
    if json:
        print_json(value)
    else:
        sys.stdout.write(text())


def _shown(value: float, metric: str) -> str:
    """Return the value of a metric as the table and the report show it."""
    from mydyno.report.units import measurement  # noqa: PLC0415 - help needs none of it
    from mydyno.stats.estimates import unit_of  # noqa: PLC0415

    return measurement(value, unit_of(metric))


@dataclass(slots=True)
class Progress:
    """Prints progress: one line when a trial ends, and on a terminal a live line while it runs.

    `length_s` is the length of every trial, if it is fixed; `remark` returns an extra line to print
    after a trial; `left` the machine time in seconds that the trials left are expected to take,
    if it is known.  `blocks` is the largest number of blocks.  `prepared_s` is how long the
    campaign took before its first trial, in seconds, where that was not in an earlier process.
    """

    total: int | None
    responses: Mapping[str, str]
    length_s: float | None = None
    remark: Callable[[Outcome], str] = lambda _: ""
    left: Callable[[Sequence[Outcome]], float | None] = lambda _: None
    blocks: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    _made_s: float = field(default_factory=time.monotonic)
    _trial: Trial | None = None
    prepared_s: float | None = None

    def started(self, trial: Trial) -> None:
        """Note the trial, and show it on a terminal."""
        self._trial = trial
        if trial.id == 0:
            self.prepared_s = time.monotonic() - self._made_s
        self._live("preparing trial")

    def interval(self, interval: Interval) -> None:
        """Show what the load reports."""
        if self._trial is None:
            return
        response = self.responses[self._trial.workload]
        value = _shown(interval.values.get(response, 0.0), response)
        of = f"/{self.length_s:.0f}" if self.length_s else ""
        left = self._left(interval.t_s)
        self._live(f"{interval.t_s:4.0f}{of} s  {value}{left}")

    def finished(self, outcome: Outcome) -> None:
        """Write the trial's line."""
        self.outcomes.append(outcome)
        response = self.responses[outcome.trial.workload]
        metrics = {m.name: m.value for m in outcome.metrics}
        if outcome.status is TrialStatus.OK:
            text = f"{_shown(metrics[response], response):>9}"
            if TAIL in metrics and response != TAIL:
                text += f"   p99 {_shown(metrics[TAIL], TAIL):>8}"
        else:
            text = f"{outcome.status.value}: {outcome.error}"
        took = "" if self.length_s else f"   {outcome.window.end_s:.0f} s"
        self._line(f"{self._head(outcome.trial)}  {text}{took}{self._left()}")
        if remark := self.remark(outcome):
            self._line(remark)

    def _head(self, trial: Trial) -> str:
        of = f"/{self.total}" if self.total and trial.id < self.total else ""
        blocks = f" of {self.blocks}" if self.blocks and trial.block < self.blocks else ""
        return (
            f"{trial.id + 1:3d}{of}  block {trial.block + 1}{blocks}  "
            f"{trial.workload}  {trial.treatment:<12}"
        )

    def _left(self, since_s: float = 0.0) -> str:
        """Return the time left, `since_s` seconds into a trial."""
        from mydyno.report.units import duration  # noqa: PLC0415 - as above

        left_s = (self.left(self.outcomes) or 0.0) - since_s
        return f"   {duration(left_s)} left" if left_s > 0 else ""

    def _live(self, text: str) -> None:
        if sys.stderr.isatty() and self._trial:
            line = f"{self._head(self._trial)}  {text}"
            own(sys.stderr).write(_CLEAR)
            sys.stderr.write(" ".join(line[: _live_width() - 1].splitlines()))
            sys.stderr.flush()
            _LIVE.shown = True

    def _line(self, text: str) -> None:
        if sys.stderr.isatty():
            own(sys.stderr).write(_CLEAR)
            _LIVE.shown = False
        print_message(text)
