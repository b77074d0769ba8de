"""Removal of a lab in any state, limited to what its record identifies; its loop device's queue."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from mydyno.host import Host, ask, processes
from mydyno.host.files import distrust, identity, is_same, resolved
from mydyno.host.processes import Mount, mount_at, number_of
from mydyno.host.processes import mounts as all_mounts
from mydyno.lab.values import LabState, Registry
from mydyno.model import Action, HostError, MydynoError, Probe
from mydyno.stack import restore_made
from mydyno.stack.block import Block
from mydyno.stack.protocol import IDENTITY

_LOOPS = Action(("losetup", "--json", "--list", "--output", "NAME,BACK-FILE"))
_POLL_S = 0.02


def parse_loops(raw: bytes) -> Sequence[tuple[str, str]]:
    """Return device and backing file of ``losetup --json``, which may print nothing."""
    if not raw.strip():
        return ()
    rows = msgspec.json.decode(raw, type=dict[str, list[dict[str, str | None]]])
    return tuple((row["name"] or "", row["back-file"] or "") for row in rows["loopdevices"])


def loops_on(host: Host, backing: Path) -> Sequence[str]:
    """Return the loop devices with exactly this backing file.

    After its daemon has died the kernel shows the file as deleted.
    """
    loops = ask(host, Probe(_LOOPS, parse_loops))
    ours = (str(backing), f"{backing} (deleted)")
    return tuple(device for device, file in loops if file in ours)


def diskseq(host: Host, device: str) -> str:
    """Return the kernel's number of a loop device's attachment, or ``""`` before Linux 5.15."""
    file = f"/sys/block/{Path(device).name}/diskseq"
    return host.run(Action(("cat", file))).stdout.decode().strip()


def mounts_of(host: Host, source: str) -> Sequence[str]:
    """Return where a device is mounted, the oldest first; btrfs shows only its name."""
    number = number_of(host, source)
    return tuple(
        mount.target
        for mount in all_mounts(host)
        if (mount.number == number if mount.kind != "btrfs" else mount.source == source)
    )


def mounted_elsewhere(host: Host, device: str) -> Sequence[int]:
    """Return the processes in whose mount namespace a device is still mounted.

    A namespace that was made while it was mounted has a copy of the mount, which stays after
    `umount` here.
    """
    files = ("find", "/proc", "-mindepth", "2", "-maxdepth", "2", "-name", "mountinfo")
    found = host.run(Action((*files, "-exec", "grep", "-ls", "--", f" {device} ", "{}", "+")))
    return sorted(
        {int(n) for n in re.findall(r"^/proc/(\d+)/", found.stdout.decode(), re.MULTILINE)}
    )


def detach(host: Host, device: str, backing: Path, *, within_s: float = 10.0) -> bool:
    """Detach a loop device that stands on `backing`; return whether it is gone."""
    until = time.monotonic() + within_s
    while device in loops_on(host, backing):
        if time.monotonic() > until:
            return False
        host.run(Action(("losetup", "--detach", device)))
        time.sleep(_POLL_S)
    return True


# A value written to one of these stays in the kernel as a user's limit, for every later file.
# A device that never had a file shows `write through` and 0 discards: written back, they would lose
# all flushes of the next user, and disable discards permanently.
_USER_LIMITS = (
    "discard_max_bytes",
    "max_sectors_kb",
    "write_cache",
    "write_zeroes_unmap_max_bytes",
)


def seen(host: Host, disk: str) -> dict[str, str]:
    """Return all settings of a disk's queue."""
    now = ask(host, Block(disk, owned=True).observe())
    return {key: value for key, value in now.items() if key != IDENTITY}


def restorable(was: Mapping[str, str], attached: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a free loop device's queue that are restored after its use.

    A limit that attaching changed was set by the kernel for the file, not by a user.
    """
    return {k: v for k, v in was.items() if k not in _USER_LIMITS or attached.get(k) == v}


_SHOWN = 3  # processes; a namespace may have hundreds
_DAEMON = "mydyno-disk"  # what its mount names as its source
# Freeing gigabytes takes a busy filesystem minutes, also with `discard` at its next commit.
REMOVAL_S = 900.0


class InUseError(HostError):
    """Another process holds a lab's device; the kernel frees it when that process ends."""


@dataclass(slots=True)
class _Done:
    """What the steps removed and failed to remove; each step runs even if others fail."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)

    def attempt(self, step: Callable[[], Sequence[str]]) -> None:
        try:
            self.removed += step()
        except InUseError as error:
            self.held.append(str(error))
        except MydynoError as error:
            self.failed.append(str(error))


def tear_down(host: Host, labs: Registry, state: LabState, *, base: bool) -> Sequence[str]:
    """Remove a lab's mounts, loop device, daemon and files; return what was removed.

    Only what the record identifies is removed: after a reboot that is files only.  Can be
    interrupted and run again.  With `base` False the base is retained, and the phase is `kept`.
    Raise `HostError` with all that was not removed and why, `InUseError` if a device is in use.
    """
    paths = state.paths
    with suppress(OSError):  # on a full disk the record that is there is enough
        labs.step(state, "removing")
    done = _Done()
    if problem := _not_ours(host, state):
        done.attempt(partial(_kill_daemon, host, state))
        done.failed.append(problem)
    else:
        if state.boot == processes.boot_of(host):
            done.attempt(partial(_kill_daemon, host, state))
            done.attempt(partial(_abort_mount, host, state))
            for device in loops_on(host, paths.disk):
                done.attempt(partial(_detach, host, state, device))
            done.attempt(partial(_restore_queue, host, state))
            done.attempt(partial(_unmount, host, state))
        done.attempt(partial(_delete, host, state, base=base))
    if done.held or done.failed:
        kind = InUseError if done.held and not done.failed else HostError
        raise kind(f"lab {state.spec.lab}: {'; '.join((*done.held, *done.failed))}")
    if base:
        labs.forget(state.spec.lab)
    else:
        with suppress(OSError):
            labs.step(state, "kept")
    return tuple(done.removed)


def _not_ours(host: Host, state: LabState) -> str:
    """Return why a lab's home is not the folder that was made, or ``""`` (also if it is gone)."""
    home = Path(state.home)
    if host.run(Action(("test", "-e", str(home), "-o", "-L", str(home)))).returncode:
        return ""
    left = "left as it is; inspect it, and remove it yourself"
    if (real := resolved(host, home)) != home:
        return f"{home}: is a link to {real}, {left}"
    if problem := distrust(host, home):
        return f"{home}: {problem}, so what is in it may not be ours: {left}"
    if state.folder and not is_same(identity(host, home), state.folder):
        return f"{home}: is not the folder that was made there, {left}"
    return ""


def _kill_daemon(host: Host, state: LabState) -> list[str]:
    """Kill the daemon first, so that umount cannot wait for it.

    Its data is discarded in any case; flushing it would be slowed by the caps, and hang if the
    daemon hangs.  A daemon whose pid was not recorded yet ends with its mount.
    """
    daemon = state.daemon
    if daemon is not None and processes.kill(host, daemon):
        return [f"process {daemon.pid}"]
    return []


def _abort_mount(host: Host, state: LabState) -> list[str]:
    """Force the umount: it fails as busy while the loop device uses it, but ends the daemon."""
    place = state.paths.mount
    mount = mount_at(host, place)
    if mount is not None and _served(state, mount):
        host.run(Action(("umount", "--force", str(place))))
    return []


def _served(state: LabState, mount: Mount) -> bool:
    """Return whether a mount is the daemon's, by its device number if that was recorded."""
    ours = mount.kind.startswith("fuse") and mount.source == _DAEMON
    return ours and state.mount in {"", mount.number}


def _detach(host: Host, state: LabState, device: str) -> list[str]:
    """Unmount and detach a loop device of the lab disk.

    The backing file is compared by path, and the attachment by its diskseq.  The file's inode is
    not read, as a hanging daemon would never answer.
    """
    loop, removed = state.loop, []
    number = diskseq(host, device)
    if loop.device == device and loop.diskseq not in {"", number}:
        raise HostError(
            f"{device}: left attached: not the attachment of this lab (diskseq {number}, "
            f"not {loop.diskseq}); see `losetup --list`"
        )
    for target in reversed(mounts_of(host, device)):
        host.run(Action(("umount", "--lazy", target))).check()
        removed.append(f"mount {target}")
    if not detach(host, device, state.paths.disk):
        raise InUseError(_held(host, device))
    return [*removed, device]


def _restore_queue(host: Host, state: LabState) -> list[str]:
    """Restore the queue settings of the loop device that the lab had, once that is free.

    Not before: a queue with I/O that hangs would never change.  It may be somebody else's by now.
    """
    there = Path("/sys/block", Path(state.loop.device).name)
    free = ("test", "-d", str(there), "-a", "!", "-e", f"{there}/loop/backing_file")
    if state.loop.queue and host.run(Action(free)).returncode == 0:
        restore_made(host, Block(there.name, owned=True), state.loop.queue)
    return []


def _held(host: Host, device: str) -> str:
    """Return the message for a device in use, with the next step."""
    if pids := mounted_elsewhere(host, device):
        shown = ", ".join(map(str, pids[:_SHOWN])) + (" and others" if pids[_SHOWN:] else "")
        return (
            f"{device} is mounted in another mount namespace, that of process {shown}: "
            f"`nsenter --target {pids[0]} --mount umount {device}`, then run again"
        )
    return f"{device} still in use: end what uses it (`fuser -vm {device}`), then run again"


def _unmount(host: Host, state: LabState) -> list[str]:
    place = state.paths.mount
    removed = []
    while mount := mount_at(host, place):
        if not _served(state, mount):
            raise HostError(
                f"{place}: left mounted: {mount.source} ({mount.kind}, {mount.number}) is not the "
                f"mount of this lab; inspect it with `findmnt {place}`"
            )
        host.run(Action(("umount", "--lazy", str(place)))).check()
        removed.append(f"mount {place}")
        time.sleep(_POLL_S)
    return removed


def _delete(host: Host, state: LabState, *, base: bool) -> list[str]:
    """Remove the lab's files by name, then its folders if they are empty."""
    paths, disks = state.paths, state.spec.stripe.disks
    if state.folder:  # else it was not made yet
        snapshot = (*paths.bases(disks), paths.snapshot_marker) if base else ()
        doomed = map(str, (*snapshot, *paths.overlays(disks), paths.log))
        host.run(Action(("rm", "--force", "--", *doomed)), timeout_s=REMOVAL_S).check()
    for folder in (paths.mount, paths.home):
        argv = ("rmdir", "--ignore-fail-on-non-empty", "--", str(folder))
        host.run(Action(argv), timeout_s=REMOVAL_S)
    return [f"files in {paths.home}"]
