"""Steps that the tests of lab disks share: what could be left of one, and one that is removed."""

import hashlib
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from mydyno.host import Local
from mydyno.lab import LabSpec, create

MIB = 1 << 20
SIZE = 320 * MIB  # the least that mkfs.xfs accepts is 300 MiB
HOST = Local()


@contextmanager
def lab_maker(folder):
    """Give a function that makes labs below `folder`; they are removed at the end."""
    made = []

    def make(name="lab", size=SIZE, **more):
        made.append(create(HOST, LabSpec(name, size, **more), folder / name))
        return made[-1]

    try:
        yield make
    finally:
        for device in made:
            device.remove()


def run(*argv, check=True):
    return subprocess.run([str(a) for a in argv], capture_output=True, check=check).stdout


def traces(home):
    """All that could be left of a lab: loop devices, mounts, processes, files."""
    home = str(home)
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if home in line]
    found += [
        f for f in run("losetup", "--list", "--noheadings").decode().splitlines() if home in f
    ]
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = cmdline.read_bytes()
            found += [str(cmdline)] if home.encode() in words and b"mydyno-disk" in words else []
    return found + [str(path) for path in Path(home).glob("**/*")]


def within(seconds, question):
    until = time.monotonic() + seconds
    while not question() and time.monotonic() < until:
        time.sleep(0.02)
    return question()


def digest(device):
    """The entire disk past the page cache, so that the disk itself is read."""
    with subprocess.Popen(
        ["dd", f"if={device}", "bs=4M", "iflag=direct", "status=none"], stdout=subprocess.PIPE
    ) as reader:
        return hashlib.file_digest(reader.stdout, "sha256").hexdigest()
