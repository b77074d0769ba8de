"""The commands: one file each; here they are put together and errors become exit codes."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from keyword import iskeyword

import typer

from mydyno.cli.alone import isolate
from mydyno.cli.terminal import guarded
from mydyno.host import adopt_strays, install_signals
from mydyno.model import HostError, Interrupted, MydynoError

COMMANDS = {
    "run": "Run a campaign, or go on with one: verdicts on stdout, progress on stderr.",
    "plan": "Show the trials, the settings and the time a campaign would take.",
    "status": "Say how far a campaign is, and what to do next.",
    "compare": "Say which treatment is better, by how much, and how sure that is.",
    "report": "Write DIR/report.html: the verdict first, then everything it rests on.",
    "import": "Turn logs that others made into a run directory to compare and report.",
    "rollback": "Restore what a campaign changed on its host, and remove what it made there.",
    "inspect": "Show what a host is, and which servers and tools it has.",
    "digest": "Gather slow logs into classes of statements, with exact counts and times.",
    "recipes": "List the campaigns that ship with mydyno: what they ask, take, need and touch.",
    "lab": "Emulated disks and machines, for trying by hand.",
}
_COMPLETION = "_MYDYNO_COMPLETE"  # set by the shell when it asks what could be typed next


def main() -> None:
    """Run the command line; exit 0, 1, 2, 3, 4 or 130.

    Nothing that it makes can be read by other users, unless a mode says so.
    """
    isolate()
    os.umask(0o077)
    install_signals()
    adopt_strays()
    with guarded():
        _main()


def _main() -> None:
    try:
        application(sys.argv[1:])()
    except MydynoError as error:
        _say(f"mydyno: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("mydyno: interrupted")
        sys.exit(Interrupted.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone; there is nobody to tell
        sys.exit(0)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(f"mydyno: {place}{error.strerror or error}; see that it is there and can be used")
        sys.exit(HostError.exit_code)


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the commands; only the one asked for is loaded, so that ``--help`` comes at once."""
    app = typer.Typer(
        name="mydyno",
        help="A dynamometer for MySQL, MariaDB and Percona Server on Linux.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    chosen = next((a for a in arguments if not a.startswith("-")), "")
    for name, summary in COMMANDS.items():
        if name == chosen or _COMPLETION in os.environ:
            _add(app, name)
        else:
            app.command(name, help=summary)(_unloaded)
    return app


def _add(app: typer.Typer, name: str) -> None:
    word = f"{name}_" if iskeyword(name) else name
    module = import_module(f"mydyno.cli.{word}")
    command = getattr(module, word)
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name, context_settings=getattr(module, "CONTEXT", None))(command)


def _unloaded() -> None:
    """Stand in for a command that was not asked for."""


def _say(text: str) -> None:
    with suppress(OSError):  # the terminal may have gone
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
