"""Lab disks on loop devices: creating, finding and removing them, also for dead owners."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from mydyno.host import Host, Local, Process, Running, is_root, processes, uploaded
from mydyno.host.files import make_home, packaged_program, resolved
from mydyno.host.processes import mount_at
from mydyno.journal.register import clear_parts
from mydyno.lab import device, teardown
from mydyno.lab.device import LabDevice
from mydyno.lab.teardown import InUseError, diskseq, tear_down
from mydyno.lab.values import (
    LabSpec,
    LabState,
    Loop,
    Paths,
    Registry,
    check,
    level_text,
    registry,
)
from mydyno.model import Action, HostError, RefusedError, SpecError, unknown_value
from mydyno.stack import converge_made
from mydyno.stack.block import Block

_ATTEMPTS = 10  # to get a free loop device
_LOG_TAIL = 400  # bytes; the daemon's errors are one line long
_WRONG = 2  # the daemon's exit code for an option it cannot accept
_NAME = "mydyno-disk"
_NOT_BUILT = "mydyno-disk is not built; run `make setup`."
_MEGA = 1e6
# The daemon gets priority, so that a busy processor does not slow the disk down.  Its files are
# accessible to root only.
_FIRST = ("sh", "-c", 'umask 077 && exec "$@"', "serve", "nice", "-n", "-10")
_TOOLS = ("losetup", "blockdev", "umount", "kill", "tee")


def create(
    host: Host, spec: LabSpec, home: Path, *, keep: bool = False, detached: bool = False
) -> LabDevice:
    """Return a new lab disk whose files are in `home`, a folder of its own.

    A base in `home` that was frozen at this size since the host's boot is used again, and the
    disk begins `frozen`.  `keep`: that base outlives a dead owner.  `detached`: the lab outlives
    this process, until `down`.  Raise `SpecError` for an invalid disk, `RefusedError` where
    no lab can be made or the name is in use, `HostError` if making it fails.
    """
    check(spec)
    reason = available(host)
    if reason:
        raise RefusedError(f"lab {spec.lab}: {reason}")
    labs, home = registry(), resolved(host, home.absolute())
    folder = _clear(host, labs, spec.lab, Paths(home))
    owner = processes.identify(Local(), os.getpid())
    boot = processes.boot_of(host)
    state = LabState(spec, host.name, str(home), "starting", owner, keep=keep, boot=boot)
    state = _with_home(host, labs, replace(state, folder=folder))
    return _make(host, labs, state, detached=detached)


def listing(host: Host) -> Sequence[LabState]:
    """Return the labs on `host`, by name."""
    return tuple(state for state in registry().all() if state.host == host.name)


def sweep(host: Host) -> Sequence[str]:
    """Remove labs of dead owners on `host`; return a line for each.

    A frozen base is retained where the lab was created with `keep`.  Can be run at any time.
    Raise `InUseError`, after removing the others, where another process uses a lab's device.
    """
    removed, held = [], []
    clear_parts(registry().folder)
    for state in listing(host):
        if _orphaned(host, state):
            try:
                removed.append(_sweep_one(host, registry(), state))
            except HostError as error:
                held.append(str(error))
    if held:
        raise InUseError("; ".join((*held, *removed)))
    return tuple(removed)


def down(host: Host, lab: str) -> Sequence[str]:
    """Remove a lab and its base; return what was removed.

    Raise `SpecError` if there is none of that name, `RefusedError` if another process uses it.
    """
    labs = registry()
    state = _known(host, labs, lab)
    refuse_foreign(lab, state.owner)
    return tear_down(host, labs, state, base=True)


def _known(host: Host, labs: Registry, lab: str) -> LabState:
    state = labs.read(lab)
    if state is None or state.host != host.name:
        known = ", ".join(s.spec.lab for s in listing(host)) or "none"
        raise SpecError(f"lab {lab}: does not exist on {host.name}; known: {known}")
    return state


def refuse_foreign(lab: str, owner: Process | None) -> None:
    """Raise `RefusedError` where another process of this machine uses a lab."""
    if owner is not None and owner.pid != os.getpid() and processes.alive(Local(), owner):
        raise RefusedError(f"lab {lab}: in use by process {owner.pid}; end that first")


def _orphaned(host: Host, state: LabState) -> bool:
    if state.phase == "kept":
        return False
    if state.owner is None:
        return state.phase == "removing" or not processes.alive(host, state.daemon)
    return not processes.alive(Local(), state.owner)


def _sweep_one(host: Host, labs: Registry, state: LabState) -> str:
    keep = state.keep and device.is_frozen(host, state.paths.snapshot_marker, state.spec)
    removed = tear_down(host, labs, state, base=not keep)
    return f"lab {state.spec.lab}: leftover; removed {', '.join(removed)}"


def _clear(host: Host, labs: Registry, lab: str, paths: Paths) -> Mapping[str, str]:
    """Remove an older lab of this name, except its frozen base.

    Return the identity of its home folder, if that is used again.
    """
    old = labs.read(lab)
    if old is None:
        return {}
    if old.phase != "kept" and not _orphaned(host, old):
        raise RefusedError(f"lab {lab}: exists already; remove it with `mydyno lab down {lab}`")
    same = old.home == str(paths.home)
    tear_down(host, labs, old, base=not same)
    missing = host.run(Action(("test", "-e", old.home))).returncode
    return old.folder if same and not missing else {}


def _with_home(host: Host, labs: Registry, state: LabState) -> LabState:
    """Make the lab's folder, unless it has one; raise `RefusedError` if the path exists."""
    labs.write(state)
    try:
        folder = state.folder or make_home(host, Path(state.home))
    except RefusedError:
        labs.forget(state.spec.lab)
        raise
    return labs.write(replace(state, folder=folder))


def _make(host: Host, labs: Registry, state: LabState, *, detached: bool) -> LabDevice:
    """Start the daemon, attach the loop device, record; clean up on failure."""
    made: list[Running] = []
    try:
        return _bring_up(host, labs, state, made, detached=detached)
    except BaseException:
        try:
            tear_down(host, labs, labs.read(state.spec.lab) or state, base=not state.keep)
        finally:
            for running in made:
                running.stop()
        raise


def _bring_up(
    host: Host, labs: Registry, state: LabState, made: list[Running], *, detached: bool
) -> LabDevice:
    paths = state.paths
    frozen = device.is_frozen(host, paths.snapshot_marker, state.spec)
    host.run(Action(("mkdir", "--parents", "--mode=700", str(paths.mount)))).check()
    host.run(Action(("install", "-m", "600", "/dev/null", str(paths.log)))).check()
    if not frozen:
        stale = (*paths.bases(state.spec.stripe.disks), paths.snapshot_marker)
        host.run(Action(("rm", "--force", "--", *map(str, stale)))).check()
    serving = replace(state, owner=None) if detached else state
    running = _start(host, serving, frozen=frozen, made=made)
    daemon = processes.identify(host, running.pid)
    mount = mount_at(host, paths.mount)
    number = mount.number if mount else ""
    state = labs.write(replace(state, phase="attaching", daemon=daemon, mount=number))
    state = _attached(host, labs, state)
    # A device keeps the queue of its last user, but the baseline is the kernel's default: no
    # scheduler, as on every loop device since Linux 5.2.
    converge_made(host, Block(Path(state.device).name, owned=True), {"scheduler": "none"})
    # until here a detached one is ours, too, so that no other process takes it for a leftover
    state = labs.write(replace(state, phase="up", owner=serving.owner))
    return LabDevice(host, labs, state, running)


def _attached(host: Host, labs: Registry, state: LabState) -> LabState:
    """Attach a free loop device; record which of its queue settings to restore.

    If another program takes the free device in between, the next one is tried.
    """
    disk = str(state.paths.disk)
    for left in reversed(range(_ATTEMPTS)):
        found = host.run(Action(("losetup", "--find"))).check()
        device = found.stdout.decode().strip()
        was = teardown.seen(host, Path(device).name)
        state = labs.write(replace(state, loop=Loop(device, "", teardown.restorable(was, {}))))
        done = host.run(Action(("losetup", "--direct-io=on", device, disk)))
        if done.returncode == 0:
            break
        if not left:
            done.check()
    limits = teardown.restorable(was, teardown.seen(host, Path(device).name))
    return labs.write(replace(state, loop=Loop(device, diskseq(host, device), limits)))


def _start(host: Host, state: LabState, *, frozen: bool, made: list[Running]) -> Running:
    """Start the daemon and wait until it serves; raise its error message if it does not."""
    owner_pid = state.owner.pid if state.owner and host.name == Local().name else None
    paths = state.paths
    action = serve(state.spec, paths, owner_pid=owner_pid, frozen=frozen)
    running = host.start(uploaded(host, action, Path(binary())), stderr=paths.log)
    made.append(running)
    if next(running.lines(), b"").strip() == b"ready":
        return running
    code = running.stop()
    words = host.run(Action(("tail", "-c", str(_LOG_TAIL), str(paths.log)))).stdout
    message = words.decode(errors="replace").strip() or f"exit {code}"
    raise (SpecError if code == _WRONG else HostError)(f"lab {state.spec.lab}: {message}")


class _Cap(msgspec.Struct, frozen=True):
    base: float
    burst: float


class _Class(msgspec.Struct, frozen=True):
    name: str
    iops: _Cap | None = None


class _Classes(msgspec.Struct, frozen=True):
    disks: list[_Class]
    vms: list[_Class]


def binary() -> str:
    """Return the path of mydyno-disk: that of $MYDYNO_DISK, or ours, or ``""``."""
    return os.environ.get("MYDYNO_DISK") or packaged_program(_NAME)


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
    return "" if os.access(binary(), os.X_OK) else _NOT_BUILT


def classes(*, json: bool) -> str:
    """Return the tables of disk and VM classes; raise `RefusedError` without mydyno-disk."""
    if not binary():
        raise RefusedError(_NOT_BUILT)
    more = ("--json",) if json else ()
    return Local().run(Action((binary(), "classes", *more))).check().stdout.decode()


def class_names(*, vm: bool) -> list[str]:
    """Return the names of the classes of disks, or of VMs."""
    known = msgspec.json.decode(classes(json=True), type=_Classes)
    return [row.name for row in (known.vms if vm else known.disks)]


def bursts(disk_class: str) -> bool:
    """Return whether a class of disks does more I/Os for a while, by credits."""
    if not disk_class or not binary():
        return False
    known = msgspec.json.decode(classes(json=True), type=_Classes).disks
    caps = [row.iops for row in known if row.name == disk_class and row.iops]
    return any(cap.burst > cap.base for cap in caps)


def refuse_unknown_class(disk_class: str, vm: str = "") -> None:
    """Raise `SpecError` for a disk or VM class that mydyno-disk does not know, if it is built."""
    if not (disk_class or vm) or not binary():
        return
    for key, name in (("class", disk_class), ("vm", vm)):
        names = class_names(vm=key == "vm")
        if name and name not in names:
            raise SpecError(f"stack.device.{key}: {unknown_value(name, names, listed=False)}")


def serve(spec: LabSpec, paths: Paths, *, owner_pid: int | None, frozen: bool) -> Action:
    """Return the command that serves a lab device; rates in its units, MB/s and microseconds."""
    argv = [*_FIRST, binary(), "serve", "--mount", str(paths.mount), "--size", str(spec.size)]
    disks, caps = spec.stripe.disks, spec.caps
    for base, overlay in zip(paths.bases(disks), paths.overlays(disks), strict=True):
        argv += ["--base", str(base), "--overlay", str(overlay)]
    options = {
        "--chunk": spec.stripe.chunk,
        "--credits": level_text(spec.credits),
        "--class": spec.disk_class or None,
        "--vm": spec.vm or None,
        "--iops": caps.iops,
        "--mbps": caps.bytes_per_s and caps.bytes_per_s / _MEGA,
        "--burst-iops": caps.burst_iops,
        "--burst-mbps": caps.burst_bytes_per_s and caps.burst_bytes_per_s / _MEGA,
        "--burst-seconds": caps.burst_s,
        "--read-latency-us": round(spec.latency.read_s * _MEGA),
        "--write-latency-us": round(spec.latency.write_s * _MEGA),
        "--flush-latency-us": round(spec.latency.flush_s * _MEGA),
        "--owner-pid": owner_pid,
    }
    given = ((name, str(value)) for name, value in options.items() if value is not None)
    flags = {"--uncapped": not spec.capped, "--frozen": frozen}
    named = [flag for flag, on in flags.items() if on]
    return Action((*argv, *(word for pair in given for word in pair), *named))
