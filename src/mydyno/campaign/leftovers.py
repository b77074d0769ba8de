"""What a campaign that was killed has left below its work folder, ended and removed."""

from pathlib import Path

from mydyno.apply import release
from mydyno.host import Host
from mydyno.lab import down, listing
from mydyno.model import Action
from mydyno.server import sweep as sweep_server

HOME = "server"  # of an instance; of more than one the next are server-2 and so on
_LONG_S = 600.0


def remove(host: Host, work: Path) -> list[str]:
    """End the servers, the lab disks and the golden copies of a work folder; return what was there.

    Can be called again, and where nothing is left.
    """
    if host.run(Action(("test", "-d", str(work)))).returncode:
        return []
    homes = Action(("find", str(work), "-maxdepth", "1", "-type", "d", "-name", f"{HOME}*"))
    found = host.run(homes).check().stdout.decode().splitlines()
    done = [f"server {pid}" for home in found if (pid := sweep_server(host, Path(home)))]
    for state in listing(host):
        if Path(state.home).is_relative_to(work):
            done += down(state.spec.lab, host)
    done += release(host, work, work / "mnt")
    host.run(Action(("rm", "-rf", "--one-file-system", "--", str(work))), timeout_s=_LONG_S).check()
    return [*done, str(work)]
