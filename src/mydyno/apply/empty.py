"""Whether a block device is empty, by several independent checks; a failed check means no."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mydyno.host import Completed, Host
from mydyno.model import Action, RefusedError

_NOTHING = 2  # the exit code of blkid where it knows nothing on a device
_EDGE = 1 << 20  # bytes at both ends that must be zero: where data without a signature begins
_BLOCK = 4096  # bytes of a sample
_EVEN, _RANDOM = 2048, 2048  # samples: docs/reference/spec.md says what they can miss
_SAMPLES_S = 300.0
# Block numbers come in on standard input; what is read goes to cmp, which names the first byte.
_SAMPLE = (
    'while read -r n; do dd if="$1" bs=4096 count=1 skip="$n" iflag=fullblock status=none '
    '</dev/null; done | cmp --bytes="$2" - /dev/zero'
)
# Every process shows the mounts of its namespace; processes end while we look.
_MOUNTED = 'cat /proc/[0-9]*/mountinfo 2>/dev/null | grep -F -e "$1" -e "$2" | cut -d" " -f5; :'
_COLUMNS = "PATH,TYPE,FSTYPE,PTTYPE,MOUNTPOINTS,RO,SIZE"


def require_empty(host: Host, device: str) -> None:
    """Raise `RefusedError` with all reasons not to write to `device`.

    Nothing is written.  A check that cannot be made counts as a reason.
    """
    if held := holds(host, device):
        raise RefusedError(
            f"{device} is not empty: {'; '.join(held)}. Nothing was touched. If all of it may go, "
            f"erase it yourself (`wipefs --all {device}`, then "
            f"`blkdiscard --force --zeroout {device}`)"
        )


def holds(host: Host, device: str) -> Sequence[str]:
    """Return what a device holds or is used by, in words; nothing if it is empty and free."""
    found = host.run(Action(("readlink", "--canonicalize-existing", device)))
    real = found.stdout.decode(errors="replace").strip()
    if found.returncode or host.run(Action(("test", "-b", real))).returncode:
        return ("it is no block device",)
    problems = [*_blkid(host, real), *_wipefs(host, real), *_lsblk(host, real), *_users(host, real)]
    return tuple(dict.fromkeys(problems or _contents(host, real)))


def _blkid(host: Host, device: str) -> list[str]:
    """Ask libblkid for any signature, by reading the device and not its cache."""
    done = host.run(Action(("blkid", "--probe", "--output", "export", device)))
    if done.returncode == _NOTHING:
        return []
    if done.returncode:
        return [_failed("blkid", done)]
    pairs = dict(line.split("=", 1) for line in _lines(done) if "=" in line)
    kinds = [pairs[key] for key in ("TYPE", "PTTYPE") if key in pairs]
    return [f"blkid finds {', '.join(kinds) or 'something'}"]


def _wipefs(host: Host, device: str) -> list[str]:
    """Ask for every signature at every offset, and open the device for itself alone.

    With `--no-act` wipefs writes nothing, but opens the device as it would: exclusively, which
    fails where the kernel, an array or another program holds it.
    """
    listed = host.run(Action(("wipefs", "--noheadings", "--output", "TYPE,OFFSET", device)))
    if listed.returncode:
        return [_failed("wipefs", listed)]
    problems = [f"wipefs finds {' at '.join(line.split())}" for line in _lines(listed)]
    alone = host.run(Action(("wipefs", "--all", "--no-act", device)))
    return problems + (
        [_failed("it cannot be opened exclusively", alone)] if alone.returncode else []
    )


def _lsblk(host: Host, device: str) -> list[str]:
    done = host.run(Action(("lsblk", "--json", "--bytes", "--output", _COLUMNS, device)))
    return [_failed("lsblk", done)] if done.returncode else read_lsblk(done.stdout)


def read_lsblk(raw: bytes) -> list[str]:
    """Return the reasons against a device in ``lsblk --json``: contents, partitions, users."""
    rows = json.loads(raw)["blockdevices"]
    if len(rows) != 1:
        return [f"lsblk reports {len(rows)} devices"]
    row: Mapping[str, Any] = rows[0]
    problems = [
        f"it carries {child['path']} ({child['type']})" for child in row.get("children", ())
    ]
    problems += [f"lsblk finds {row[key]}" for key in ("fstype", "pttype") if row.get(key)]
    problems += [f"it is in use at {where}" for where in row.get("mountpoints") or () if where]
    if row.get("ro") in {True, "1"}:
        problems.append("it can only be read")
    if not row.get("size"):
        problems.append("it has no size")
    return problems


def _users(host: Host, device: str) -> list[str]:
    """Ask the kernel who stands on it: holders, mounts of any namespace, swap."""
    name = device.rpartition("/")[2]
    holders = host.run(Action(("ls", f"/sys/class/block/{name}/holders")))
    swaps = host.run(Action(("cat", "/proc/swaps")))
    problems = [_failed("its holders", holders)] if holders.returncode else []
    problems += [f"{holder} stands on it" for holder in _lines(holders)]
    problems += [f"it is mounted on {target}" for target in _mounts(host, device)]
    problems += [_failed("/proc/swaps", swaps)] if swaps.returncode else []
    return problems + ["it is swap" for line in _lines(swaps) if line.split()[0] == device]


def _mounts(host: Host, device: str) -> list[str]:
    """Return where it is mounted, in whatever namespace, by its number and by its name."""
    name = device.rpartition("/")[2]
    number = host.run(Action(("cat", f"/sys/class/block/{name}/dev"))).check().stdout.decode()
    words = (f" {number.strip()} ", f" {device} ")
    done = host.run(Action(("sh", "-c", _MOUNTED, "mounts", *words)))
    return list(dict.fromkeys(_lines(done)))


def _contents(host: Host, device: str) -> list[str]:
    """Look for data without a signature: raw volumes of databases, headerless encryption."""
    asked = host.run(Action(("blockdev", "--getsize64", device)))
    if asked.returncode:
        return [_failed("blockdev", asked)]
    size = int(asked.stdout)
    return _edges(host, device, size) or _samples(host, device, size)


def _edges(host: Host, device: str, size: int) -> list[str]:
    length = min(size, _EDGE)
    problems = []
    for words, at in (("first", 0), ("last", size - length)):
        window = (f"--bytes={length}", f"--ignore-initial={at}:0")
        done = host.run(Action(("cmp", *window, device, "/dev/zero")))
        if done.returncode:
            problems.append(f"its {words} MiB is not all zeroes: {_where(done, at)}")
    return problems


def _samples(host: Host, device: str, size: int) -> list[str]:
    """Read blocks evenly over the whole device and at random; it stops at the first with data."""
    blocks = sample(size // _BLOCK)
    lines = "".join(f"{block}\n" for block in blocks).encode()
    argv = ("sh", "-c", _SAMPLE, "sample", device, str(len(blocks) * _BLOCK))
    done = host.run(Action(argv, lines), timeout_s=_SAMPLES_S)
    if not done.returncode:
        return []
    if found := re.search(rb"byte (\d+)", done.stdout):
        number, rest = divmod(int(found[1]) - 1, _BLOCK)
        return [f"it holds data: byte {blocks[number] * _BLOCK + rest} is not zero"]
    return [_failed("it cannot be read", done)]


def sample(blocks: int) -> list[int]:
    """Return the numbers of the blocks to be read, in order; all, where there are only few."""
    if blocks <= _EVEN + _RANDOM:
        return list(range(blocks))
    even = {number * blocks // _EVEN for number in range(_EVEN)}
    chance = random.SystemRandom()
    return sorted(even | {chance.randrange(blocks) for _ in range(_RANDOM)})


def _where(done: Completed, at: int) -> str:
    """Return the byte that cmp names, counted from the device's first, which is 0."""
    found = re.search(rb"byte (\d+)", done.stdout)
    return f"byte {at + int(found[1]) - 1}" if found else _failed("cmp", done)


def _lines(done: Completed) -> list[str]:
    return done.stdout.decode(errors="replace").splitlines() if done.returncode == 0 else []


def _failed(what: str, done: Completed) -> str:
    words = done.stderr.decode(errors="replace").strip().splitlines()
    return f"{what}: {words[-1] if words else f'exit {done.returncode}'}"
