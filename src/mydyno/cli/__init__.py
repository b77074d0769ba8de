"""The commands: one file each; here they are put together and errors become exit codes."""

import signal
import sys
from types import FrameType

import typer

from mydyno.cli.compare import compare
from mydyno.cli.inspect import inspect
from mydyno.cli.plan import plan
from mydyno.cli.recipes import recipes
from mydyno.cli.report import report
from mydyno.cli.run import run
from mydyno.cli.status import status
from mydyno.model import Interrupted, MydynoError

app = typer.Typer(
    name="mydyno",
    help="A dynamometer for MySQL, MariaDB and Percona Server on Linux.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for _command in (run, plan, status, compare, report, inspect, recipes):
    app.command()(_command)


def main() -> None:
    """Run the command line; exit 0, 1, 2, 3, 4 or 130 (DESIGN section 8)."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
    except MydynoError as error:
        _say(f"mydyno: {error}")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _say("mydyno: interrupted")
        sys.exit(Interrupted.exit_code)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read us has gone; there is nobody to tell
        sys.exit(0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
