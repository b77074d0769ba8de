"""Tiny campaigns that change a host: a loop device, its filesystem, a load of milliseconds."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from command_line import COMMAND
from harm import snapshot

STATE = Path("/var/lib/mydyno")
TEMPORARY = Path("/var/tmp")  # noqa: S108 - what mydyno makes there is looked at
ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
ENVIRONMENT |= dict([snapshot.MARK.split("=")])
ENVIRONMENT["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"

QUICK = """
import json
for second in range(1, 40):
    print(json.dumps({"t_s": second, "tps": 100 + second % 3}), flush=True)
"""
ENDLESS = """
import json, pathlib, sys, time
pathlib.Path(sys.argv[1]).touch()
for second in range(1, 10**6):
    time.sleep(0.2)
    print(json.dumps({"t_s": second / 1000, "tps": 1}), flush=True)
"""
SETTINGS: Mapping[str, object] = {
    "kernel.sysctl.vm.swappiness": 43,
    "kernel.sysctl.vm.dirty_bytes": 268435456,
    "kernel.thp": "never",
    "block.scheduler": "mq-deadline",
    "block.nr_requests": 99,
    "fs.mount": "noatime,commit=60",
}


def run(*argv: object) -> str:
    """Return what a command prints; it must succeed."""
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class CampaignDisk:
    """A filesystem on a loop device of its own, with a spec and room for run directories."""

    def __init__(self, folder: Path, kind: str = "ext4") -> None:
        self.folder, self.image, self.mount = folder, folder / "image", folder / "mnt"
        with self.image.open("wb") as file:
            file.truncate(4 << 30)
        self.device = run("losetup", "--find", "--show", self.image)
        self.disk = self.device.rpartition("/")[2]
        self.scheduler = Path(f"/sys/block/{self.disk}/queue/scheduler")
        self.found = self.scheduler.read_text().partition("[")[2].partition("]")[0]
        try:
            self.scheduler.write_text("none")
            run(f"mkfs.{kind}", "-q", self.device)
            self.mount.mkdir(mode=0o755)
            run("mount", self.device, self.mount)
        except BaseException:
            self.down()
            raise
        self.out = self.mount / "run"
        self.begun = folder / "begun"

    def spec(
        self, settings: Mapping[str, object] = SETTINGS, load: str = QUICK, more: str = ""
    ) -> Path:
        """Return a spec of two treatments, STOCK and ONE, one block."""
        return self.written({"ONE": settings}, self.program(load, self.begun), more=more)

    def program(self, load: str, *arguments: object) -> list[str]:
        """Return the command that runs this Python text."""
        path = self.folder / "load.py"
        path.write_text(load)
        return [sys.executable, "-S", "-E", str(path), *(str(a) for a in arguments)]

    def written(
        self,
        treatments: Mapping[str, Mapping[str, object]],
        argv: list[str],
        *,
        blocks: int = 1,
        more: str = "",
    ) -> Path:
        """Return a spec of STOCK and these treatments under this load."""
        lines = ['[campaign]\nname = "harm"\n[stack]\nserver = "none"\ndevice = "here"']
        for name, settings in {"STOCK": {}, **treatments}.items():
            lines += [f"[treatments.{name}]"]
            lines += [f'"{key}" = {json.dumps(value)}' for key, value in settings.items()]
        lines += [f'[workloads.w]\ntool = "command"\nargv = {json.dumps(argv)}']
        lines += [f"[protocol]\nwarmup_s = 5\nwindow_s = 10\n[design]\nblocks = {blocks}", more]
        path = self.folder / "spec.toml"
        path.write_text("\n".join(lines) + "\n")
        return path

    def command(self, *arguments: object) -> list[str]:
        return [*COMMAND, *(str(a) for a in arguments)]

    def run_command(self, out: Path | None = None) -> list[str]:
        """Return the command that runs the spec there."""
        spec = self.folder / "spec.toml"
        return self.command("run", spec, "-o", out or self.out, "--allow", "host")

    def mydyno(
        self, *arguments: object, timeout_s: float = 300
    ) -> "subprocess.CompletedProcess[str]":
        argv = self.command(*arguments)
        return subprocess.run(
            argv, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=timeout_s
        )

    def snapshot(self) -> snapshot.Snapshot:
        """Return the picture of the host and of every folder that a campaign may write to."""
        folders = [TEMPORARY, Path("/etc"), STATE, Path("/run"), self.folder]
        folders += [Path("/usr/local/lib/systemd")]
        return snapshot.taken(*folders, aside=(self.out, self.mount / "lost+found"))

    def down(self) -> None:
        """Take down what was made, once; a load that was killed lets go a moment later."""
        if not self.device:
            return
        end = time.monotonic() + 60
        while self.mount.is_mount() and time.monotonic() < end:
            if subprocess.run(["umount", self.mount], check=False, capture_output=True).returncode:
                time.sleep(0.1)
        self.scheduler.write_text(self.found)
        subprocess.run(["losetup", "--detach", self.device], check=False)
        self.device = ""


@contextmanager
def campaign_disk(make: Callable[[Path], Any] = CampaignDisk) -> Iterator[Any]:
    """Yield a filesystem of our own, gone at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-harm-", dir=TEMPORARY))
    folder.chmod(0o755)
    try:
        made = make(folder)
        try:
            yield made
        finally:
            made.down()
    finally:
        shutil.rmtree(folder)


@cache
def use_once() -> None:
    """Use mydyno: what it makes on a host at its first use is part of each later picture."""
    with campaign_disk() as there:
        there.mydyno("inspect")
        there.spec({})
        done = there.mydyno("run", there.folder / "spec.toml", "-o", there.out)
        assert done.returncode in {0, 1}, done.stderr
        done = there.mydyno("rollback")
        assert done.returncode == 0, done.stderr
