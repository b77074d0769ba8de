"""Before anything is made: tools, space, and a host that has nothing else to do."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mydyno.campaign.link_traffic import uses_lab_link
from mydyno.campaign.plan import Campaign
from mydyno.campaign.quantities import size_bytes
from mydyno.campaign.spec import DeviceTable, Spec
from mydyno.campaign.testbed.bench_setup import Hosts
from mydyno.campaign.workfolder import REMOTE_ROOT
from mydyno.dataset import copying
from mydyno.host import Host, Remote, ask, is_root
from mydyno.model import Action, RefusedError, SpecError
from mydyno.stack import Layer
from mydyno.workloads import Target, Workload
from mydyno.workloads.fio import Fio, check_options
from mydyno.workloads.mysqlslap import PROGRAMS

_TOOLS = {
    "sysbench-oltp": "sysbench",
    "sysbench-tpcc": "sysbench",
    "sysbench-fileio": "sysbench",
    "fio": "fio",
    "mysqlslap": "mysqlslap",
}
_PACKAGES = {"mysqlslap": "mariadb-client", "mariadb-slap": "mariadb-client"}
_SPARE_BYTES = 1 << 30  # a full disk would take the host down with the campaign
_BUSY = 0.3  # of a core: more than this is somebody else's work


def preflight(hosts: Hosts, spec: Spec, workloads: Mapping[str, Workload], folder: Path) -> None:
    """Raise `SpecError` for a missing tool or a wrong option, `RefusedError` for want of space."""
    for name, workload in workloads.items():
        table = spec.workloads.get(name.partition("/")[0], {})
        tool = str(table.get("program", _TOOLS.get(str(table.get("tool")), "")))
        host = hosts.of(workload)
        if tool and not path_of(host, tool):
            where = f" on {host.name}" if hosts.far else ""
            remedy = _remedy(host, tool)
            raise SpecError(f"workloads.{name}: {tool} is not installed{where}; {remedy}")
        if isinstance(workload, Fio):
            check_options(host, workload)
    _space(hosts.db, spec, folder)


def _remedy(host: Host, tool: str) -> str:
    """Return what brings a missing tool, which may be there under its other name."""
    others = [p for p in PROGRAMS if tool in PROGRAMS and p != tool and path_of(host, p)]
    if others:
        return f'set program = "{others[0]}"'
    return f"apt-get install {_PACKAGES.get(tool, tool)}"


def refuse_unprivileged(host: Host, layers: Sequence[Layer]) -> None:
    """Raise `RefusedError` where settings of the whole host are to be moved without root there."""
    if layers and not is_root(host):
        names = ", ".join(layer.name for layer in layers)
        raise RefusedError(
            f"{host.name}: only root may move its {names} settings: run there as root "
            "(ssh://root@...), or leave them out"
        )


def refuse_network(hosts: Hosts, campaign: Campaign) -> None:
    """Raise `SpecError` for a treatment that keeps the load from the server."""
    for name, settings in campaign.treatments.items():
        if hosts.address and settings.get("db/net.transport") == "socket":
            raise SpecError(
                f"{name}: net.transport = 'socket': the load is on {hosts.load.name}, and a socket "
                "is for programs beside the server; leave stack.load out"
            )
        if hosts.far and uses_lab_link(settings):
            raise SpecError(
                f"{name}: net.address = 'lab': a lab's link is made on this machine alone, and "
                f"this campaign needs {hosts.db.name} and {hosts.load.name}; run mydyno there, or "
                "let stack.load be the other end of a real network"
            )


def path_of(host: Host, tool: str) -> str:
    """Return where a tool is on the host's PATH, or ``""``."""
    return host.run(Action(("which", tool))).stdout.decode(errors="replace").strip()


def existing_parent(host: Host, folder: Path) -> Path:
    """Return the folder there is on the host that what belongs into `folder` is made below."""
    if isinstance(host, Remote):
        return REMOTE_ROOT
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())


def _space(host: Host, spec: Spec, folder: Path) -> None:
    """See that the largest the lab disk can grow to leaves the host some room."""
    there = existing_parent(host, folder)
    free = ask(host, copying.free(there))
    device = spec.stack.device
    size = device.size if isinstance(device, DeviceTable) else "1G"
    wanted = size_bytes(size, "stack.device.size") + _SPARE_BYTES
    if free < wanted:
        raise RefusedError(
            f"{there}: {free / 2**30:.1f} GiB free, and this campaign may need "
            f"{wanted / 2**30:.1f}; free some, set stack.device.size, or choose another -o"
        )


def tools(hosts: Hosts, workloads: Mapping[str, Workload], folder: Path) -> dict[str, str]:
    """Return what each load tool says of its version and client library, by its command."""
    target = Target(work=folder, directory=folder)
    told: dict[str, str] = {}
    asked = dict.fromkeys((a, hosts.of(w)) for w in workloads.values() for a in w.describe(target))
    for action, host in asked:
        lines = host.run(_there(host, action)).stdout.decode(errors="replace").splitlines()
        known = [line.strip() for line in lines if "mysql" in line or "maria" in line]
        told[" ".join(Path(part).name for part in action.argv)] = (known or lines or ["?"])[0]
    return told


def _there(host: Host, action: Action) -> Action:
    """Return the action with the tools that it names by path where that host has them."""
    words = (path_of(host, Path(w).name) or w if Path(w).is_absolute() else w for w in action.argv)
    return Action(tuple(words), action.stdin)


def busy(cores_busy: float) -> Sequence[str]:
    """Return a warning for a host that was already working on `cores_busy` cores."""
    if cores_busy <= _BUSY:
        return ()
    told = f"the host was busy before the campaign began, on {cores_busy:.1f} cores"
    return (f"{told}; what else runs there is in every number",)
