"""What a campaign that was killed has left below its work folder, ended and removed."""

import shutil
from pathlib import Path

from mydyno.host import Host
from mydyno.lab import down, listing
from mydyno.server import sweep as sweep_server


def remove(host: Host, work: Path) -> list[str]:
    """End the server, the lab disks and the golden copies of a work folder; return what was there.

    Can be called again, and where nothing is left.
    """
    if not work.exists():
        return []
    done = []
    if pid := sweep_server(host, work / "server"):
        done.append(f"server {pid}")
    for state in listing(host):
        if Path(state.home).is_relative_to(work):
            done += down(state.spec.lab, host)
    shutil.rmtree(work)
    return [*done, str(work)]
