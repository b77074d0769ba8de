"""The command line: loads the commands (one file each) and turns errors into exit codes."""

import os
import site
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from errno import ENOSPC
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from mydyno import __version__
from mydyno.cli.terminal import guarded
from mydyno.host import adopt_strays, install_signals
from mydyno.model import HostError, Interrupted, MydynoError, SpecError

COMMANDS = {
    "run": "Run or resume a campaign: verdicts on stdout, progress on stderr.",
    "plan": "Show the trials, the settings and the time a campaign would take.",
    "status": "Show the progress of a campaign, or the leases of a host, and what to do next.",
    "compare": "Show which treatment is better, by how much, and with which interval.",
    "report": "Write DIR/report.html: the verdict first, then the data it is based on.",
    "why": "Show where connections spend their time, and what limits fit that; nothing is changed.",
    "diagnose": "Prove what limits a load: slow one resource at a time, and see what follows.",
    "apply": "Put a treatment on trial on a host; without `confirm` everything is restored.",
    "confirm": "Keep what is on trial on a host: it is written to the host's own files.",
    "move": "Move a server's data directory to another folder: stopped, copied, compared.",
    "export": "Write a treatment as files of other tools, each with its inverse.",
    "verify": "Compare what was exported or applied with what a host stores and has in force.",
    "effect": "Show what a change did in production, or what this history could show.",
    "import": "Import existing benchmark logs into a run directory, to compare and report.",
    "rollback": "Restore what a campaign or a lease changed on a host, and remove what was made.",
    "audit": "Look at a running server: what is wrong, and what to test; nothing is changed.",
    "inspect": "Show a host: hardware, kernel, servers and tools.",
    "digest": "Group the statements of slow logs into classes, with exact counts and times.",
    "recipes": "List the shipped campaigns: question, time, requirements, and what they change.",
    "lab": "Emulated disks and virtual machines, for manual tests.",
}
EXAMPLES = {
    "run": ("run demo -o demo-run", "run my.toml --budget 2h --set design.blocks=5 -o runs/1"),
    "plan": ("plan demo", "plan my.toml --budget 2h"),
    "status": ("status demo-run", "status ssh://root@db1"),
    "compare": (
        "compare demo-run",
        "compare demo-run --markdown",
        "compare demo-run --fail-unless adopt",
    ),
    "report": ("report demo-run",),
    "why": (
        "why demo-run",
        "why demo-run --treatment STOCK",
        "why --live --server-defaults ~/.my.cnf",
    ),
    "diagnose": ("diagnose demo -o why", "diagnose demo-run --treatment STOCK --budget 4m"),
    "apply": (
        "apply my-run --to ssh://root@db1 --lease 2h",
        "apply settings.toml --to local --dry-run",
    ),
    "confirm": ("confirm ssh://root@db1", "confirm ssh://root@db1 --extend 2h"),
    "export": (
        "export demo-run --format mycnf -o kept",
        "export my-run FAST --format ansible --target disk=sdc -o role",
    ),
    "move": (
        "move local /data/mysql --dry-run",
        "move ssh://root@db1 /mnt/raid0/mysql --yes-to db1",
    ),
    "verify": (
        "verify kept",
        "verify ssh://root@db1",
        "verify kept --host ssh://root@db1 --server /etc/mysql/verify.cnf",
    ),
    "effect": (
        "effect db1:9104 --prometheus http://mon:9090 --after 2026-11-10..2026-11-17",
        "effect db1.csv --control db2.csv --after 2026-11-10T14:00..2026-11-11T14:00",
        "effect db1.csv",
    ),
    "import": (
        "import before.log after.log --label old=before* --label new=after* -o runs/old",
        "compare runs/old",
    ),
    "rollback": ("rollback demo-run", "rollback", "rollback ssh://root@db1 --to FIRST --forget"),
    "audit": (
        "audit",
        "audit --server-defaults ~/.my.cnf --watch 30s",
        "audit --host ssh://root@db1 --spec db1.toml",
    ),
    "inspect": ("inspect", "inspect --live --count 10", "inspect --host ssh://root@db1"),
    "recipes": ("recipes", "recipes demo > my.toml"),
    "lab": (
        "lab classes",
        "lab up disk1 --class azure-p15 --size 8G",
        "lab crash-test durability --cuts 20",
    ),
}
FIRST_STEPS = """\b
First steps:
  mydyno plan demo               what it would do, and for how long; nothing is changed
  mydyno run demo -o demo-run    measure; Ctrl-C saves the progress, the same command resumes
  mydyno report demo-run         the verdict and its data as one page, demo-run/report.html"""
_HELP = {"help_option_names": ["-h", "--help"]}
_NAME = "mydyno"
_GROUPS = "mydyno."  # how the names of our groups of entry points begin
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_STDERR = 2  # the last of the three standard streams
_COMPLETION = "_MYDYNO_COMPLETE"  # set by the shell to ask for completions


def main() -> None:
    """Run the command line; exit 0, 1, 2, 3, 4, 5 or 130.

    Files are created without access for other users, unless an explicit mode is given.
    """
    _open_streams()
    isolate()
    os.umask(0o077)
    install_signals()
    adopt_strays()
    with guarded():
        _main()


def _open_streams() -> None:
    """Open what was closed of stdin, stdout and stderr: no file of ours may take their numbers."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        os.set_inheritable(number, True)  # noqa: FBT003 - its only form
    os.close(number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(_STDERR, "w", closefd=False)


def _main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:], "--help"]
    try:
        try:
            application(arguments)(arguments)
        finally:
            _flush()
    except MydynoError as error:
        _print_error(f"mydyno: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _print_error("mydyno: interrupted")
        sys.exit(Interrupted.exit_code)
    except UnicodeEncodeError as error:  # bytes of an argument
        _print_error(f"mydyno: {error.object!r}: is not UTF-8; write it in UTF-8")
        sys.exit(SpecError.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # the reader has closed the pipe
        sys.exit(0)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        full = error.errno == ENOSPC
        step = "free space and repeat it" if full else "check that it exists and is accessible"
        _print_error(f"mydyno: {place}{error.strerror or error}; {step}")
        sys.exit(HostError.exit_code)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - the form of a callback
    if asked:
        sys.stdout.write(f"mydyno {__version__}\n")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", "-V", callback=_print_version, is_eager=True, help="Show the version and exit."
    ),
]


def _options(*, version: Version = False) -> None:
    """Take the options that come before a command."""


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands; only the one asked for is loaded, so that ``--help`` is fast."""
    app = typer.Typer(
        name="mydyno",
        context_settings=_HELP,
        epilog=FIRST_STEPS,
        help="A dynamometer for MySQL, MariaDB and Percona Server on Linux.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(_options)
    chosen = next((a for a in arguments if not a.startswith("-")), "")
    for name, summary in COMMANDS.items():
        if name == chosen or _COMPLETION in os.environ:
            _add(app, name)
        else:
            app.command(name, help=summary, short_help=summary)(_unloaded)
    return app


def _add(app: typer.Typer, name: str) -> None:
    word = f"{name}_" if iskeyword(name) else name
    module = import_module(f"mydyno.cli.{word}")
    command = getattr(module, word)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name, short_help=COMMANDS[name], epilog=_examples(name))
    else:
        app.command(
            name,
            cls=getattr(module, "CommandClass", None),
            short_help=COMMANDS[name],
            epilog=_examples(name),
            context_settings=getattr(module, "CONTEXT", None),
        )(command)


def _examples(name: str) -> str:
    lines = [f"  mydyno {line}" for line in EXAMPLES.get(name, ())]
    return "\n".join(("\b", "Examples:", *lines)) if lines else ""


def _unloaded() -> None:
    """Stand in for a command that was not asked for."""


def _flush() -> None:
    """Write what stdout still holds; where it is not taken, Python shall not try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _print_error(text: str) -> None:
    with suppress(OSError):  # the terminal may be closed
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def isolate() -> None:
    """As root, restart in isolated mode, and search for programs in safe folders only.

    A script written by `pip` honours PYTHONPATH and a user's packages, plug-ins of mydyno among
    them; isolated, root runs only code of our own environment, and programs that only root can
    change.
    """
    if os.geteuid():
        return
    script = Path(sys.argv[0])
    if script.name == _NAME and script.is_file() and not sys.flags.isolated:
        os.execv(sys.executable, [sys.executable, "-I", *sys.argv])  # noqa: S606 - ourselves
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(_safe, dict.fromkeys(folders)))
    _leave_foreign_packages()


def _leave_foreign_packages() -> None:
    """Import from this Python's own folders only; name the plug-ins that lie elsewhere.

    Elsewhere are PYTHONPATH, the user's packages and the present folder.  Metadata there are read,
    and no code is run.
    """
    listed = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    foreign = {Path(folder).resolve() for folder in (*listed, site.getusersitepackages()) if folder}
    foreign -= {Path(folder).resolve() for folder in site.getsitepackages()}
    sys.path[:] = [way for way in sys.path if way and Path(way).resolve() not in foreign]
    there = [str(folder) for folder in sorted(foreign) if folder.is_dir()]
    if not there:
        return
    from importlib.metadata import distributions  # noqa: PLC0415 - not needed for --help

    ignored: list[str] = []
    for found in distributions(path=there):
        with suppress(OSError, ValueError, LookupError, AttributeError):  # anybody's metadata
            entries = (one.name for one in found.entry_points if one.group.startswith(_GROUPS))
            ignored += [f"{name} of {found.name}" for name in entries]
    if ignored:
        _print_error(
            f"mydyno: {os.pathsep.join(there)}: root ignores the plug-ins there: "
            f"{', '.join(sorted(ignored))}; install them with {sys.executable} -m pip"
        )


def _safe(folder: str) -> bool:
    """Return whether only root can put a program into a folder."""
    path = Path(folder)
    if not path.is_absolute():
        return False
    try:
        real = path.resolve(strict=True)
        ways = [p.stat() for p in (*real.parents, real)]
    except (OSError, RuntimeError):
        return False
    return all(_root_only(way) for way in ways[:-1]) and _root_only(ways[-1], sticky=False)


def _root_only(found: os.stat_result, *, sticky: bool = True) -> bool:
    protected = sticky and found.st_mode & stat.S_ISVTX
    return found.st_uid == 0 and not (found.st_mode & _OTHERS and not protected)
