"""What a campaign that was killed has left below its work folder, ended and removed."""

from pathlib import Path

from mydyno.apply import release
from mydyno.host import Host
from mydyno.lab import down, listing
from mydyno.model import Action
from mydyno.server import sweep as sweep_server

_LONG_S = 600.0


def remove(host: Host, work: Path) -> list[str]:
    """End the server, the lab disks and the golden copies of a work folder; return what was there.

    Can be called again, and where nothing is left.
    """
    if host.run(Action(("test", "-d", str(work)))).returncode:
        return []
    done = []
    if pid := sweep_server(host, work / "server"):
        done.append(f"server {pid}")
    for state in listing(host):
        if Path(state.home).is_relative_to(work):
            done += down(state.spec.lab, host)
    done += release(host, work, work / "mnt")
    host.run(Action(("rm", "-rf", "--one-file-system", "--", str(work))), timeout_s=_LONG_S).check()
    return [*done, str(work)]
