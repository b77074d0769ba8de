"""Before anything is made: tools, space, and a host that has nothing else to do."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mydyno.campaign.quantities import size_bytes
from mydyno.campaign.spec import DeviceTable, Spec
from mydyno.host import Host
from mydyno.model import RefusedError, SpecError
from mydyno.workloads import Target, Workload
from mydyno.workloads.fio import Fio, check_options

_TOOLS = {"sysbench-oltp": "sysbench", "sysbench-fileio": "sysbench", "fio": "fio"}
_SPARE_BYTES = 1 << 30  # a full disk would take the host down with the campaign
_BUSY = 0.3  # of a core: more than this is somebody else's work


def preflight(host: Host, spec: Spec, workloads: Mapping[str, Workload], folder: Path) -> None:
    """Raise `SpecError` for a missing tool or a wrong option, `RefusedError` for want of space."""
    for name, table in spec.workloads.items():
        tool = _TOOLS.get(str(table.get("tool")), "")
        if tool and shutil.which(tool) is None:
            raise SpecError(f"workloads.{name}: {tool} is not installed; apt-get install {tool}")
    for workload in workloads.values():
        if isinstance(workload, Fio):
            check_options(host, workload)
    _space(spec, folder)


def _space(spec: Spec, folder: Path) -> None:
    """See that the largest the lab disk can grow to leaves the host some room."""
    there = next(p for p in (folder, *folder.parents) if p.exists())
    free = shutil.disk_usage(there).free
    device = spec.stack.device
    size = device.size if isinstance(device, DeviceTable) else "1G"
    wanted = size_bytes(size, "stack.device.size") + _SPARE_BYTES
    if free < wanted:
        raise RefusedError(
            f"{there}: {free / 2**30:.1f} GiB free, and this campaign may need "
            f"{wanted / 2**30:.1f}; free some, set stack.device.size, or choose another -o"
        )


def tools(host: Host, workloads: Mapping[str, Workload], folder: Path) -> dict[str, str]:
    """Return what each load tool says of its version and client library, by its command."""
    target = Target(work=folder, directory=folder)
    told: dict[str, str] = {}
    for action in dict.fromkeys(a for w in workloads.values() for a in w.describe(target)):
        lines = host.run(action).stdout.decode(errors="replace").splitlines()
        known = [line.strip() for line in lines if "mysql" in line or "maria" in line]
        told[" ".join(Path(part).name for part in action.argv)] = (known or lines or ["?"])[0]
    return told


def busy(cores_busy: float) -> Sequence[str]:
    """Return a warning for a host that was already working on `cores_busy` cores."""
    if cores_busy <= _BUSY:
        return ()
    told = f"the host was busy before the campaign began, on {cores_busy:.1f} cores"
    return (f"{told}; what else runs there is in every number",)
