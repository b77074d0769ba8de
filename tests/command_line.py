"""The command as a user types it, in a process of its own."""

import subprocess
import sys

MAIN = "from mydyno.cli import main; main()"
COMMAND = (sys.executable, "-c", MAIN)


def mydyno(*arguments, code=MAIN, timeout=500, **more):
    """Run it to its end; `code` may force a fault before `MAIN`."""
    argv = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=timeout, **more
    )
