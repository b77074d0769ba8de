"""Two users on one host: one who attacks, and what belongs to another, which must stay as it is."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harm import snapshot
from harm.campaigns import CampaignDisk, run

ATTACKER, VICTIM = 61601, 61602  # numbers of nobody: no account is made
LINKS = ("/proc/sys/fs/protected_symlinks", "/proc/sys/fs/protected_hardlinks")


def as_user(user: int, script: str, *arguments: object) -> list[str]:
    """Return the command that runs a shell script as this user and nobody else."""
    identity = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", *identity, "sh", "-c", script, "attack", *(str(a) for a in arguments)]


@dataclass
class Others:
    """What belongs to somebody else: a process, a mount, a device, and files of root's."""

    folder: Path
    process: "subprocess.Popen[bytes]"
    mount: Path
    device: str
    image: Path
    shadow: Path
    file: Path

    def picture(self) -> dict[str, str]:
        """Return what must be the same after an attack."""
        found = dict(snapshot.files(self.folder))
        found["process"] = str(self.process.poll())
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        found["mount"] = "\n".join(line for line in lines if f" {self.mount} " in line)
        found["device"] = hashlib.sha256(Path(self.device).read_bytes()).hexdigest()
        for place in ("/etc", "/etc/shadow", "/etc/passwd", "/usr/bin"):
            state = Path(place).lstat()
            found[place] = f"{state.st_mode:o} {state.st_uid}:{state.st_gid} {state.st_size}"
        return found


@contextmanager
def others(folder: Path) -> Iterator[Others]:
    """Yield what belongs to somebody else, below `folder`; it is gone at the end."""
    folder.mkdir(mode=0o755)
    image, mount = folder / "disk", folder / "mounted"
    shadow, file, home = folder / "shadow", folder / "letter", folder / "home"
    image.write_bytes(os.urandom(1 << 20))
    device = run("losetup", "--find", "--show", image)
    argv = as_user(VICTIM, "exec sleep 3600")
    process = subprocess.Popen(argv)
    try:
        mount.mkdir()
        run("mount", "-t", "tmpfs", "-o", "size=1M", "victim", mount)
        (mount / "held").write_text("held")
        shadow.write_text("root:secret\n")
        shadow.chmod(0o600)
        file.write_text("a letter\n")
        home.mkdir(mode=0o750)
        (home / "diary").write_text("dear diary\n")
        for path in (file, home, home / "diary"):
            os.chown(path, VICTIM, VICTIM)
        yield Others(folder, process, mount, device, image, shadow, file)
    finally:
        process.kill()
        process.wait()
        subprocess.run(["umount", mount], check=False)
        subprocess.run(["losetup", "--detach", device], check=False)


@contextmanager
def links_protected(value: int) -> Iterator[None]:
    """Set what the kernel refuses of links in shared folders; as it was at the end."""
    found = {path: Path(path).read_text() for path in LINKS}
    try:
        for path in LINKS:
            Path(path).write_text(str(value))
        yield
    finally:
        for path, text in found.items():
            Path(path).write_text(text)


@contextmanager
def attacking(script: str, *arguments: object) -> Iterator[None]:
    """Run a script of the attacker's in the background, again and again, until the end."""
    argv = as_user(ATTACKER, f"while :; do {script}\ndone 2>/dev/null", *arguments)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def shared_folder(there: CampaignDisk) -> Path:
    """Return a folder as /tmp is, on the filesystem of the campaign disk."""
    folder = there.mount / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    there.mount.chmod(0o755)
    return folder
