"""The process that takes slices of CPUs for the doses `slow.*`; it ends with this one."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host, Running
from mydyno.lab import disk_binary
from mydyno.model import Action, HostError
from mydyno.stack.doses import Slow

_READY_S, _STEP_S = 5.0, 0.05
# Prints pid and name of each process of a database server, without those that mydyno started: they
# have an option file of their own beside a folder of launch files.
_OTHERS = """
for at in /proc/[0-9]*; do
  read -r name <"$at/comm" || continue
  case $name in mysqld|mariadbd|postgres|mongod|redis-server|valkey-server) ;; *) continue ;; esac
  words=$(tr '\\0' '\\n' <"$at/cmdline")
  [ -n "$words" ] || continue  # it is ending: a server of ours that was killed with its owner, too
  file=$(echo "$words" | sed -n 's/^--defaults-file=//p' | head -n 1)
  [ -n "$file" ] && [ -d "${file%/*}/launch" ] && continue
  echo "$name (pid ${at#/proc/})"
done 2>/dev/null
"""


def other_databases(host: Host) -> list[str]:
    """Return the database servers of a host that mydyno did not start, with their pids."""
    done = host.run(Action(("sh", "-c", _OTHERS)))
    return done.stdout.decode(errors="replace").splitlines()


@dataclass(slots=True)
class Spinner:
    """One real-time thread for each CPU of this host; idle until a dose is ordered."""

    host: Host
    folder: Path
    running: Running | None = None

    @property
    def layer(self) -> Slow:
        """Return the layer that orders doses."""
        return Slow(self.folder)

    @property
    def cpus(self) -> list[int]:
        """Return the CPUs of which slices are taken."""
        return sorted(os.sched_getaffinity(0))

    @property
    def pid(self) -> int:
        """Return its process id, 0 where it does not run."""
        return self.running.pid if self.running and self.running.returncode() is None else 0

    def start(self) -> None:
        """Start it; raise `HostError` where this process may not use real-time priority."""
        if self.pid:
            return
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for name in ("order", "state"):
            (self.folder / name).unlink(missing_ok=True)
        argv = ("chrt", "--fifo", "1", disk_binary(), "spin", "--dir", str(self.folder))
        owned = ("--cpus", f"host={','.join(map(str, self.cpus))}", "--owner-pid", str(os.getpid()))
        errors = self.folder / "errors"
        self.running = self.host.start(Action((*argv, *owned)), stderr=errors)
        end_s = time.monotonic() + _READY_S
        while not (self.folder / "state").exists():
            if not self.pid or time.monotonic() > end_s:
                printed = errors.read_text(errors="replace").strip() if errors.exists() else ""
                self.stop()
                raise HostError(
                    f"slow.host: CPUs cannot be slowed here: {printed or 'no answer'}; run as root "
                    "with CAP_SYS_NICE, or leave it out with --only"
                )
            time.sleep(_STEP_S)

    def check(self) -> None:
        """Raise `HostError` where it has ended: a dose would not be in force."""
        if not self.pid:
            raise HostError("slow.host: the process that takes slices of CPUs has ended")

    def stop(self) -> None:
        """End it, and with it every dose."""
        if self.running is not None:
            self.running.stop(grace_s=0.0)
            for _ in self.running.lines():
                pass  # it prints nothing; reading to the end closes the pipe
            self.running = None
