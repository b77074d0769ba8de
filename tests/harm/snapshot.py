"""A generic picture of this host: what it is set to, what runs, and what lies in folders.

Nothing here knows what mydyno changes.  `volatile.toml` names what moves by itself, each with its
reason; all else must be as it was.
"""

import fnmatch
import hashlib
import json
import os
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

Snapshot = dict[str, str]
MARK = "MYDYNO_HARM=1"
_SMALL_BYTES = 1 << 16
_CGROUPS = Path("/sys/fs/cgroup")
_SETTINGS = ("/sys/kernel/mm/transparent_hugepage", "/sys/kernel/mm/ksm", "/sys/module/zswap")


def taken(*folders: Path, aside: tuple[Path, ...] = ()) -> Snapshot:
    """Return the picture of the host and of what lies below `folders`, the paths `aside` left out.

    A key is ``kind:place``, a value what is there, as text.
    """
    found: Snapshot = {}
    for part in (_queues, _sysctls, _settings, _mounts, _loops, _net, _cgroups, _processes):
        found.update(part())
    found["users:passwd"] = _hash(Path("/etc/passwd"))
    found["users:group"] = _hash(Path("/etc/group"))
    for folder in folders:
        found.update(files(folder, aside))
    return found


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each thing that is not as it was and is not known to move by itself."""
    return [
        f"{key}: {before.get(key, '(absent)')!r} -> {after.get(key, '(absent)')!r}"
        for key in sorted({*before, *after})
        if before.get(key) != after.get(key) and not _volatile(key)
    ]


def _volatile(key: str) -> bool:
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in _PATTERNS)


def patterns() -> dict[str, str]:
    """Return the keys that move by themselves, each with its reason."""
    table = tomllib.loads(Path(__file__).with_name("volatile.toml").read_text())
    return {entry["key"]: entry["reason"] for entry in table["volatile"]}


_PATTERNS = tuple(patterns())


def _read(path: Path) -> str:
    try:
        return path.read_bytes()[:4096].decode(errors="replace").strip()
    except OSError as error:
        return f"({error.errno})"


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        return f"({error.errno})"


def _mode(path: Path) -> int:
    """Return a file's mode, none where it has vanished: a device or module may go at any time."""
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def _queues() -> Iterator[tuple[str, str]]:
    """Yield every readable attribute of every disk's queue, its scheduler's among them."""
    for queue in Path("/sys/block").glob("*/queue"):
        for path in (*queue.glob("*"), *queue.glob("iosched/*")):
            if path.is_file() and _mode(path) & 0o444:
                yield f"queue:{path}", _read(path)
    for path in Path("/sys/block").glob("*/*"):
        if path.name in {"ro", "size"}:
            yield f"disk:{path}", _read(path)


def _sysctls() -> Iterator[tuple[str, str]]:
    """Yield each sysctl that can be written and read."""
    for root, _, names in os.walk("/proc/sys"):
        for name in names:
            path = Path(root, name)
            if (mode := _mode(path)) & 0o222 and mode & 0o444:
                yield f"sysctl:{path}", _read(path)


def _settings() -> Iterator[tuple[str, str]]:
    for top in _SETTINGS:
        for path in sorted(Path(top).rglob("*")):
            if path.is_file() and (mode := _mode(path)) & 0o200 and mode & 0o444:
                yield f"setting:{path}", _read(path)
    for path in Path("/sys/module").glob("*/parameters/*"):
        if (mode := _mode(path)) & 0o200 and mode & 0o444:
            yield f"module:{path}", _read(path)
    yield "swap:/proc/swaps", "\n".join(line.split()[0] for line in _read_lines("/proc/swaps"))


def _read_lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _mounts() -> Iterator[tuple[str, str]]:
    """Yield each mount with its source, type, own options and those of its superblock."""
    for line in _read_lines("/proc/self/mountinfo"):
        fields, _, more = line.partition(" - ")
        parts = fields.split()
        yield f"mount:{parts[4]}:{parts[2]}:{parts[3]}", f"{' '.join(parts[5:])} - {more}"


def _loops() -> Iterator[tuple[str, str]]:
    for path in Path("/sys/block").glob("loop*/loop/*"):
        yield f"loop:{path}", _read(path)


def _net() -> Iterator[tuple[str, str]]:
    names = Path("/run/netns")
    for path in names.iterdir() if names.is_dir() else ():
        yield f"netns:{path}", "there"
    for what in ("link", "qdisc", "route"):
        argv = ["tc", "qdisc", "show"] if what == "qdisc" else ["ip", "-o", "-j", what, "show"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        yield f"net:{what}", done.stdout if what == "qdisc" else _links(done.stdout)


def _links(text: str) -> str:
    return json.dumps(json.loads(text or "[]"), sort_keys=True)


def _cgroups() -> Iterator[tuple[str, str]]:
    """Yield each control group; where others work at the same time, only those with our name."""
    shared = "MYDYNO_HARM_SHARED" in os.environ
    for root, _, _ in os.walk(_CGROUPS):
        if not shared or "mydyno" in root:
            yield f"cgroup:{root}", "there"


def _processes() -> Iterator[tuple[str, str]]:
    """Yield each process by its number and start time; those of the test itself are left out.

    Where others work at the same time (`MYDYNO_HARM_SHARED`), only those with our mark are shown.
    """
    ours, shared = _ancestors(), "MYDYNO_HARM_SHARED" in os.environ
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            start = _stat(folder)[19]
            exe = (folder / "exe").readlink()
            argv = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            owner = folder.stat().st_uid
            if shared and MARK.encode() not in (folder / "environ").read_bytes():
                continue
        except OSError:
            continue  # gone, or a thread of the kernel
        if int(folder.name) not in ours:
            yield f"process:{exe}:{folder.name}:{start}", f"uid {owner}: {argv[:200]}"


def _stat(folder: Path) -> list[str]:
    return (folder / "stat").read_text().rpartition(")")[2].split()


def _ancestors() -> set[int]:
    found, pid = set(), os.getpid()
    while pid > 1:
        found.add(pid)
        pid = int(_stat(Path(f"/proc/{pid}"))[1])
    return found


def files(folder: Path, aside: tuple[Path, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield each path with type, mode, owner, size, and a hash where it is small."""
    if not folder.exists():
        yield f"file:{folder}", "(absent)"
        return
    for root, folders, names in os.walk(folder):
        here = Path(root)
        folders[:] = [name for name in folders if here / name not in aside and not _others(name)]
        for path in (here, *(here / name for name in names)):
            try:
                yield f"file:{path}", _file(path)
            except FileNotFoundError:
                continue


def _others(name: str) -> bool:
    """Return whether another test, at work at the same time, has this folder."""
    return "MYDYNO_HARM_SHARED" in os.environ and "-test-" in name


def _file(path: Path) -> str:
    found = path.lstat()
    text = f"{found.st_mode:o} {found.st_uid}:{found.st_gid}"
    if path.is_symlink():
        return f"{text} -> {path.readlink()}"
    if path.is_file():
        small = found.st_size <= _SMALL_BYTES
        return f"{text} {found.st_size} {_hash(path) if small else ''}".rstrip()
    return text
