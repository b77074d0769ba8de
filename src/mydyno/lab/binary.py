"""Where mydyno-disk is, whether a lab can be made here, and how the daemon is called."""

import os
import shutil
import sys
from pathlib import Path

import msgspec

from mydyno.host import Host, Local, is_root
from mydyno.lab.values import LabSpec, Paths, level_text
from mydyno.model import Action, RefusedError, SpecError, unknown_value

_NAME = "mydyno-disk"
_NOT_BUILT = "mydyno-disk is not built; run `make setup`."
_MEGA = 1e6
# The daemon gets priority, so that a busy processor does not slow the disk down.  Its files are
# accessible to root only.
_FIRST = ("sh", "-c", 'umask 077 && exec "$@"', "serve", "nice", "-n", "-10")
_TOOLS = ("losetup", "blockdev", "umount", "kill", "tee")


def binary() -> str:
    """Return the path of mydyno-disk: $MYDYNO_DISK, beside this Python, on PATH, else empty."""
    if named := os.environ.get("MYDYNO_DISK"):
        return named
    beside = Path(sys.executable).parent / _NAME
    return str(beside) if beside.is_file() else shutil.which(_NAME) or ""


def available(host: Host) -> str:
    """Return an empty string if a lab can be made on `host`, else the reason in a sentence."""
    if not is_root(host):
        return "A lab disk needs root, for its mount and its loop device."
    for node, module in (("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")):
        if host.run(Action(("test", "-c", node))).returncode:
            return f"{node} is missing; try `modprobe {module}`."
    missing = [tool for tool in _TOOLS if host.run(Action(("which", tool))).returncode]
    if missing:
        return f"{', '.join(missing)} not found; install util-linux, procps and coreutils."
    if not os.access(binary(), os.X_OK):
        return _NOT_BUILT
    return ""


def classes(*, json: bool) -> str:
    """Return the tables of disk and VM classes; raise `RefusedError` without mydyno-disk."""
    if not binary():
        raise RefusedError(_NOT_BUILT)
    more = ("--json",) if json else ()
    return Local().run(Action((binary(), "classes", *more))).check().stdout.decode()


def refuse_unknown_class(disk_class: str, vm: str = "") -> None:
    """Raise `SpecError` for a disk or VM class that mydyno-disk does not know, if it is built."""
    if not (disk_class or vm) or not binary():
        return
    known = msgspec.json.decode(classes(json=True))
    for key, name, kind in (("class", disk_class, "disks"), ("vm", vm, "vms")):
        names = [row["name"] for row in known[kind]]
        if name and name not in names:
            raise SpecError(f"stack.device.{key}: {unknown_value(name, names, listed=False)}")


def serve(spec: LabSpec, paths: Paths, *, owner_pid: int | None, frozen: bool) -> Action:
    """Return the command that serves a lab device."""
    argv = [*_FIRST, binary(), "serve", "--mount", str(paths.mount), "--size", str(spec.size)]
    disks = spec.stripe.disks
    for base, overlay in zip(paths.bases(disks), paths.overlays(disks), strict=True):
        argv += ["--base", str(base), "--overlay", str(overlay)]
    argv += ["--chunk", str(spec.stripe.chunk)]
    argv += ["--credits", level_text(spec.credits), *_caps(spec), *_latency(spec)]
    argv += [] if spec.capped else ["--uncapped"]
    argv += ["--frozen"] if frozen else []
    argv += ["--owner-pid", str(owner_pid)] if owner_pid is not None else []
    return Action(tuple(argv))


def _caps(spec: LabSpec) -> list[str]:
    caps = spec.caps
    values = {
        "--iops": caps.iops,
        "--mbps": _scaled(caps.bytes_per_s),
        "--burst-iops": caps.burst_iops,
        "--burst-mbps": _scaled(caps.burst_bytes_per_s),
        "--burst-seconds": caps.burst_s,
    }
    named = ["--class", spec.disk_class] if spec.disk_class else []
    named += ["--vm", spec.vm] if spec.vm else []
    given = ((name, value) for name, value in values.items() if value is not None)
    return named + [word for name, value in given for word in (name, repr(value))]


def _latency(spec: LabSpec) -> list[str]:
    values = {
        "--read-latency-us": spec.latency.read_s,
        "--write-latency-us": spec.latency.write_s,
        "--flush-latency-us": spec.latency.flush_s,
    }
    return [word for name, value in values.items() for word in (name, str(round(value * _MEGA)))]


def _scaled(bytes_per_s: float | None) -> float | None:
    return None if bytes_per_s is None else bytes_per_s / _MEGA
