"""The flexible I/O tester, with any job options and a report of histograms every second."""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.host import Host
from mydyno.model import Action, SpecError
from mydyno.workloads import options
from mydyno.workloads.environment import prefix
from mydyno.workloads.fio_report import METRICS, parse
from mydyno.workloads.protocol import Reports, Target, Workload

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_ENDLESS_S = 365 * 24 * 3600
_DATA_SEED = 1
# Set by us: what is run, where, for how long, and how it is reported.
_OURS = frozenset(
    {
        "allrandrepeat",
        "append_terse",
        "client",
        "create_only",
        "daemonize",
        "debug",
        "description",
        "directory",
        "eta",
        "group_reporting",
        "minimal",
        "name",
        "new_group",
        "output",
        "output_format",
        "parse_only",
        "ramp_time",
        "randseed",
        "readonly",
        "runtime",
        "section",
        "server",
        "showcmd",
        "status_interval",
        "stonewall",
        "thread",
        "time_based",
    }
)
# Options that lead out of the target's directory, or run programs.
_OUTSIDE = frozenset(
    {"exec_postrun", "exec_prerun", "opendir", "read_iolog", "replay_redirect", "trigger_file"}
)
# Options that decide what the layout of the files writes.
_SHAPE = frozenset(
    {
        "buffer_compress_percentage",
        "buffer_pattern",
        "dedupe_percentage",
        "fallocate",
        "filename",
        "filename_format",
        "filesize",
        "nrfiles",
        "numjobs",
        "offset",
        "offset_increment",
        "size",
        "zero_buffers",
    }
)
_DIRECTION = frozenset({"rw", "readwrite"})


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "fio"``.

    `options` are the options of one fio job, as ``fio --cmdhelp`` names them: at least `rw` and
    `size`; with `numjobs` the clones are reported as one.
    """

    options: dict[str, str | int | float | bool]


def cells(name: str, params: Params, response: str | None = None) -> Sequence[Workload]:
    """Return the workload, called `name`; `check_options` asks fio itself about its options.

    Raises `SpecError` naming the key for an option that is ours to set or could reach outside
    the target's directory, a missing one, or an unknown response.
    """
    place = f"workloads.{name}"
    _check(f"{place}.options", options.normal(params.options))
    options.check_response(place, response or "iops", METRICS)
    return [Fio(name, response or "iops", params)]


def check_options(host: Host, cell: "Fio") -> None:
    """Raise `SpecError` in fio's own words if the fio on `host` does not take the options.

    Nothing is run or written.  Raises `HostError` if fio cannot be started.
    """
    argv = (*prefix({}), "fio", "--parse-only", "--name=load", *cell.job())
    done = host.run(Action(argv))
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        message = words[0] if words else f"exit {done.returncode}"
        raise SpecError(f"workloads.{cell.name}.options: {message}; see `fio --cmdhelp`")


@dataclass(frozen=True, slots=True)
class Fio:
    """One fio job on files in the target's directory."""

    name: str
    response: str
    params: Params

    @property
    def needs_server(self) -> bool:
        """Return whether its target is a server rather than files."""
        return False

    @property
    def closed_loop(self) -> bool:
        """Return whether it is a closed loop."""
        return not {"rate", "rate_iops"} & self.params.options.keys()

    @property
    def data_key(self) -> str:
        """Return the options that shape the files; jobs that differ in others share them."""
        given = options.normal(self.params.options)
        shape = {name: value for name, value in given.items() if name in _SHAPE}
        return "/".join(["fio", *options.words(shape, "1", "0")])

    def job(self) -> tuple[str, ...]:
        """Return the job's options as arguments, the engine first: its own may only follow it."""
        return _spelt(options.normal(self.params.options))

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that write the files, in full whatever the load, and flush them."""
        given = options.normal(self.params.options)
        layout = {name: value for name, value in given.items() if name not in _DIRECTION}
        # only a reading job has its files filled; a writing one would leave holes
        argv = (
            *(*prefix({}), "fio", "--name=load", f"--directory={target.directory}"),
            *_spelt(layout),
            *("--rw=read", "--create_only=1", f"--randseed={_DATA_SEED}"),
        )
        return [Action(argv), Action(("sync", "-f", str(target.directory)))]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second; `env` is the load tool's own."""
        argv = (
            *(*prefix(env), "fio"),
            *("--output-format=json+", "--status-interval=1", "--eta=never"),
            *("--name=load", f"--directory={target.directory}"),
            *self.job(),
            *("--time_based=1", f"--runtime={_ENDLESS_S}", "--group_reporting=1"),
            # threads, not processes: whatever kills fio, no job of it goes on
            *("--thread=1", f"--randseed={seed}"),
        )
        return Action(argv)

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield the intervals between fio's reports."""
        yield from parse(lines)

    def describe(self, target: Target) -> Sequence[Action]:  # noqa: ARG002 - the protocol's
        """Return the command that names fio's version."""
        return [Action((shutil.which("fio") or "fio", "--version"))]


def _spelt(given: options.Options) -> tuple[str, ...]:
    spelt = options.words(given, "1", "0")
    return tuple(sorted(spelt, key=lambda word: not word.startswith("--ioengine=")))


def _check(place: str, given: options.Options) -> None:
    for name in given:
        if name in _OURS:
            raise SpecError(f"{place}.{name}: set by mydyno; remove it")
        if name in _OUTSIDE or not _NAME.fullmatch(name):
            raise SpecError(
                f"{place}.{name}: not an option of a job that is confined to its directory; "
                "remove it"
            )
    if not _DIRECTION & given.keys():
        raise SpecError(f"{place}: rw is missing; set it, as in rw = 'randread'")
    if not {"size", "filesize"} & given.keys():
        raise SpecError(f"{place}: size is missing; set it, as in size = '1G'")
    files = [*str(given.get("filename", "")).split(":"), str(given.get("filename_format", ""))]
    if any(file.startswith("/") or ".." in file for file in files):
        raise SpecError(f"{place}.filename: only names inside the stack's own directory, so that "
                        "no other file or device is written")  # fmt: skip
