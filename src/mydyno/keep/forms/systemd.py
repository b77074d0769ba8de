"""A drop-in of the server's unit: limits, CPUs, CPU quota, allocator, environment."""

from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile, prefixed
from mydyno.stack.known.allocators import ALLOCATORS, GLIBC, TUNABLES, tunables_of

_LIMITS = {"nofile": "LimitNOFILE", "nproc": "LimitNPROC", "memlock": "LimitMEMLOCK"}
CPUS = {
    "cpus.allowed": "CPUAffinity",
    "cgroup.cpu": "CPUQuota",
    "cgroup.period": "CPUQuotaPeriodSec",
}


def environment(kept: Kept) -> dict[str, str]:
    """Return the environment of the server's process: allocator, its tunables, ``env.NAME``."""
    alloc = kept.of("alloc")
    found = dict(kept.of("env"))
    library = alloc.get("library", GLIBC)
    if library in ALLOCATORS:
        found["LD_PRELOAD"] = ALLOCATORS[library].soname
    if tunables := alloc.get("tunables"):
        found[tunables_of(library)] = tunables
    return found


def limits(kept: Kept) -> dict[str, str]:
    """Return the limits, the CPUs and the quota as systemd names them."""
    found = {
        _LIMITS[name]: "infinity" if value == "unlimited" else value
        for name, value in kept.of("limits").items()
    }
    own = {f"{layer}.{k}": v for layer in ("cpus", "cgroup") for k, v in kept.of(layer).items()}
    words = {"unlimited": ""}  # an empty assignment takes back those of the files before it
    return found | {name: words.get(own[key], own[key]) for key, name in CPUS.items() if key in own}


def quoted(text: str) -> str:
    """Return a word for a unit file: percent signs, backslashes and quotes mean more there."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"'


def lines(kept: Kept) -> list[str]:
    """Return the lines of ``[Service]``: limits, CPUs, quota, and variables with and without."""
    wanted = environment(kept)
    gone = [name for name, value in wanted.items() if not value]
    gone += TUNABLES.values() if kept.settings.get("alloc.tunables") == "" else ()
    gone += ["LD_PRELOAD"] if kept.settings.get("alloc.library") == GLIBC else []
    return [
        *(f"{name}={value}" for name, value in limits(kept).items()),
        *(f"Environment={quoted(f'{k}={v}')}" for k, v in wanted.items() if v),
        *(f"UnsetEnvironment={name}" for name in gone),
    ]


def _write(kept: Kept) -> Sequence[KeptFile]:
    return [_file(kept, "\n".join([*kept.heading(), "[Service]", *lines(kept)]) + "\n")]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    return [_file(kept, "# empty on purpose: the unit's own values are in force after a restart\n")]


def _file(kept: Kept, text: str) -> KeptFile:
    path = f"/etc/systemd/system/{kept.unit}.d/zz-mydyno.conf"
    return KeptFile(path, text, ("systemctl", "daemon-reload"))


FORM = Form(
    "systemd",
    "a drop-in of the server's unit",
    prefixed("limits.", "cpus.", "cgroup.", "alloc.", "env."),
    _write,
    _inverse,
    "copy it to the host, systemctl daemon-reload, then restart the server",
)
