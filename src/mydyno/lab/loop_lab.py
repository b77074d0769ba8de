"""Lab disks on loop devices: creating, finding and removing them, also for dead owners."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mydyno.host import Host, Local, Process, Running, processes, uploaded
from mydyno.host.files import make_home, resolved
from mydyno.host.processes import mount_at
from mydyno.lab import device, teardown
from mydyno.lab.binary import available, binary, serve
from mydyno.lab.device import LabDevice
from mydyno.lab.registry import LabState, Loop, Registry, clear_parts, registry
from mydyno.lab.teardown import InUseError, diskseq, tear_down
from mydyno.lab.values import LabSpec, Paths, check
from mydyno.model import Action, HostError, RefusedError, SpecError

_ATTEMPTS = 10  # to get a free loop device
_LOG_TAIL = 400  # bytes; the daemon's errors are one line long
_WRONG = 2  # the daemon's exit code for an option it cannot accept


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
    owner = None if detached else processes.identify(Local(), os.getpid())
    boot = processes.boot_of(host)
    state = LabState(spec, host.name, str(home), "starting", owner, keep=keep, boot=boot)
    return _make(host, labs, _with_home(host, labs, replace(state, folder=folder)))


def attach(host: Host, lab: str) -> LabDevice:
    """Return a running lab; raise `SpecError` if there is none of that name."""
    labs = registry()
    return LabDevice(host, labs, _known(host, labs, lab))


def listing(host: Host | None = None) -> Sequence[LabState]:
    """Return the labs on `host`, or on every host, by name."""
    return tuple(s for s in registry().all() if host is None or s.host == host.name)


def sweep(host: Host | None = None) -> Sequence[str]:
    """Remove labs of dead owners on `host` (default: local); return a line for each.

    A frozen base is retained where the lab was created with `keep`.  Can be run at any time.
    Raise `InUseError`, after removing the others, where another process uses a lab's device.
    """
    here = host or Local()
    removed, held = [], []
    clear_parts(registry().folder)
    for state in listing(here):
        if _orphaned(here, state):
            try:
                removed.append(_sweep_one(here, registry(), state))
            except HostError as error:
                held.append(str(error))
    if held:
        raise InUseError("; ".join((*held, *removed)))
    return tuple(removed)


def down(lab: str, host: Host | None = None) -> Sequence[str]:
    """Remove a lab and its base; return what was removed.

    Raise `SpecError` if there is none of that name, `RefusedError` if another process uses it.
    """
    here, labs = host or Local(), registry()
    state = _known(here, labs, lab)
    _refuse_foreign(state)
    return tear_down(here, labs, state, base=True)


def _known(host: Host, labs: Registry, lab: str) -> LabState:
    state = labs.read(lab)
    if state is None or state.host != host.name:
        known = ", ".join(s.spec.lab for s in listing(host)) or "none"
        raise SpecError(f"lab {lab}: does not exist on {host.name}; known: {known}")
    return state


def _refuse_foreign(state: LabState) -> None:
    owner = state.owner
    if owner is not None and owner.pid != os.getpid() and processes.alive(Local(), owner):
        raise RefusedError(f"lab {state.spec.lab}: in use by process {owner.pid}; end that first")


def _orphaned(host: Host, state: LabState) -> bool:
    if state.phase == "kept":
        return False
    if state.owner is None:
        return state.phase == "removing" or not processes.alive(host, state.daemon)
    return not processes.alive(Local(), state.owner)


def _sweep_one(host: Host, labs: Registry, state: LabState) -> str:
    paths = Paths(Path(state.home))
    keep = state.keep and device.is_frozen(host, paths.snapshot_marker, state.spec)
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


def _make(host: Host, labs: Registry, state: LabState) -> LabDevice:
    """Start the daemon, attach the loop device, record; clean up on failure."""
    made: list[Running] = []
    try:
        return _bring_up(host, labs, state, made)
    except BaseException:
        try:
            tear_down(host, labs, labs.read(state.spec.lab) or state, base=not state.keep)
        finally:
            for running in made:
                running.stop()
        raise


def _bring_up(host: Host, labs: Registry, state: LabState, made: list[Running]) -> LabDevice:
    paths = Paths(Path(state.home))
    frozen = device.is_frozen(host, paths.snapshot_marker, state.spec)
    host.run(Action(("mkdir", "--parents", "--mode=700", str(paths.mount)))).check()
    host.run(Action(("install", "-m", "600", "/dev/null", str(paths.log)))).check()
    if not frozen:
        stale = (*paths.bases(state.spec.stripe.disks), paths.snapshot_marker)
        host.run(Action(("rm", "--force", "--", *map(str, stale)))).check()
    running = _start(host, paths, state, frozen=frozen, made=made)
    daemon = processes.identify(host, running.pid)
    mount = mount_at(host, paths.mount)
    number = mount.number if mount else ""
    state = labs.write(replace(state, phase="attaching", daemon=daemon, mount=number))
    state = _attached(host, labs, state)
    teardown.begin(host, Path(state.device).name)
    state = labs.write(replace(state, phase="up"))
    return LabDevice(host, labs, state, running)


def _attached(host: Host, labs: Registry, state: LabState) -> LabState:
    """Attach a free loop device; record which of its queue settings to restore.

    If another program takes the free device in between, the next one is tried.
    """
    disk = str(Paths(Path(state.home)).disk)
    for left in reversed(range(_ATTEMPTS)):
        found = host.run(Action(("losetup", "--find"))).check()
        device = found.stdout.decode().strip()
        was = teardown.seen(host, Path(device).name)
        state = labs.write(replace(state, loop=Loop(device, "", teardown.kept(was, {}))))
        done = host.run(Action(("losetup", "--direct-io=on", device, disk)))
        if done.returncode == 0:
            break
        if not left:
            done.check()
    kept = teardown.kept(was, teardown.seen(host, Path(device).name))
    return labs.write(replace(state, loop=Loop(device, diskseq(host, device), kept)))


def _start(
    host: Host, paths: Paths, state: LabState, *, frozen: bool, made: list[Running]
) -> Running:
    """Start the daemon and wait until it serves; raise its error message if it does not."""
    local_owner: Process | None = state.owner if host.name == Local().name else None
    owner_pid = local_owner.pid if local_owner else None
    action = serve(state.spec, paths, owner_pid=owner_pid, frozen=frozen)
    running = host.start(uploaded(host, action, Path(binary())), stderr=paths.log)
    made.append(running)
    if next(running.lines(), b"").strip() == b"ready":
        return running
    code = running.stop()
    words = host.run(Action(("tail", "-c", str(_LOG_TAIL), str(paths.log)))).stdout
    message = words.decode(errors="replace").strip() or f"exit {code}"
    raise (SpecError if code == _WRONG else HostError)(f"lab {state.spec.lab}: {message}")
