"""Taking a lab apart, whatever state it is in, and never anything that is not ours."""

import time
from collections.abc import Sequence
from pathlib import Path

from mydyno.host import Host
from mydyno.lab import process
from mydyno.lab.devices import detach, loops_on, mounted_at, mounted_elsewhere, mounts_of
from mydyno.lab.paths import Paths
from mydyno.lab.process import Process
from mydyno.lab.queue import put_back
from mydyno.lab.registry import LabState, Registry
from mydyno.model import Action, HostError

_POLL_S = 0.02
_SHOWN = 3  # processes; a namespace may have hundreds
# Giving gigabytes back takes a busy filesystem its time; one that tells its disk (`discard`) does
# so when it commits, and whatever comes next waits for that: minutes were seen.
REMOVAL_S = 900.0


class InUseError(HostError):
    """Something that is not ours holds a lab's device; the kernel frees it when that ends."""


def take_apart(host: Host, labs: Registry, state: LabState, *, base: bool) -> Sequence[str]:
    """Remove a lab's mounts, loop device, daemon and files; return what of it was removed.

    Can be cut short and run again.  Its base stays if `base` is False, and the lab is `kept`.
    Raise `InUseError` if something else still uses a device of its.
    """
    paths = Paths(Path(state.home))
    labs.step(state, "removing")
    removed = _silence(host, paths, state.daemon)
    freed, stuck = _detach_all(host, paths)
    if state.device in freed:  # not before: a queue with I/O that hangs would never change
        put_back(host, Path(state.device).name, state.loop.queue)
    removed += freed
    removed += _unmount(host, paths.mount)
    removed += _delete(host, paths, state.spec.stripe.disks, base=base)
    if stuck:
        raise InUseError(f"lab {state.spec.lab}: {'; '.join(_held(host, d) for d in stuck)}")
    if base:
        labs.forget(state.spec.lab)
    else:
        labs.step(state, "kept")
    return tuple(removed)


def _silence(host: Host, paths: Paths, daemon: Process | None) -> list[str]:
    """End the daemon before anything else, so that what is unmounted cannot wait for it.

    What was written is thrown away in any case; written out first, it would pass the caps, and
    for ever if the daemon hangs.  A daemon whose id was not recorded yet ends with its mount.
    """
    removed = []
    if daemon is not None and process.kill(host, daemon):
        removed.append(f"process {daemon.pid}")
    if mounted_at(host, paths.mount):
        # Refused as busy while the loop device stands on it, but it cuts the daemon off first.
        host.run(Action(("umount", "--force", str(paths.mount))))
    return removed


def _detach_all(host: Host, paths: Paths) -> tuple[list[str], list[str]]:
    """Unmount and detach every loop device on our disk; return what was removed, what was not."""
    removed: list[str] = []
    stuck: list[str] = []
    for device in loops_on(host, paths.disk):
        for target in reversed(mounts_of(host, device)):
            host.run(Action(("umount", "--lazy", target))).check()
            removed.append(f"mount {target}")
        gone = detach(host, device, paths.disk)
        (removed if gone else stuck).append(device)
    return removed, stuck


def _held(host: Host, device: str) -> str:
    """Say who holds a device, and what to do: another namespace keeps a copy of our mounts."""
    if pids := mounted_elsewhere(host, device):
        shown = ", ".join(map(str, pids[:_SHOWN])) + (" and others" if pids[_SHOWN:] else "")
        return (
            f"{device} is mounted in another mount namespace, that of process {shown}: "
            f"`nsenter --target {pids[0]} --mount umount {device}`, then run again"
        )
    return f"{device} still in use: end what uses it (`fuser -vm {device}`), then run again"


def _unmount(host: Host, mount: Path) -> list[str]:
    removed = []
    while mounted_at(host, mount):
        host.run(Action(("umount", "--lazy", str(mount)))).check()
        removed.append(f"mount {mount}")
        time.sleep(_POLL_S)
    return removed


def _delete(host: Host, paths: Paths, disks: int, *, base: bool) -> list[str]:
    golden = (*paths.bases(disks), paths.golden) if base else ()
    doomed = map(str, (*golden, *paths.overlays(disks), paths.log))
    host.run(Action(("rm", "--force", "--", *doomed)), timeout_s=REMOVAL_S).check()
    for folder in (paths.mount, paths.home):
        argv = ("rmdir", "--ignore-fail-on-non-empty", "--", str(folder))
        host.run(Action(argv), timeout_s=REMOVAL_S)
    return [f"files in {paths.home}"]
