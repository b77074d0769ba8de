"""The image of a VM lab: built once from the recipe, kept in the cache, read by every machine."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host
from mydyno.lab.vm import steps
from mydyno.lab.vm.recipe import digest
from mydyno.model import RefusedError, SpecError

TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "unshare": "util-linux",
    "mke2fs": "e2fsprogs",
    "dpkg-deb": "dpkg",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
}
_DONE = "recipe.toml"  # the last file that a build writes


@dataclass(frozen=True, slots=True)
class Bootable:
    """One kernel of an image: its release, and the files that QEMU boots."""

    release: str
    vmlinuz: Path
    initrd: Path


@dataclass(frozen=True, slots=True)
class Image:
    """A built image; `folder` is named by the recipe's digest."""

    folder: Path

    @property
    def root(self) -> Path:
        """Return the root filesystem, ext4 in a raw file; machines write over it elsewhere."""
        return self.folder / "root.ext4"

    @property
    def releases(self) -> Sequence[str]:
        """Return the kernels' releases, as ``uname -r`` prints them, sorted."""
        return sorted(p.name.removeprefix("vmlinuz-") for p in self.folder.glob("vmlinuz-*"))

    def kernel(self, wanted: str) -> Bootable:
        """Return a kernel by its release or by the words it begins with: ``6.1``.

        Raise `SpecError` if the image has none, or several.
        """
        found = [r for r in self.releases if r == wanted or r.startswith(f"{wanted}.")]
        if len(found) != 1:
            raise SpecError(
                f"kernel {wanted!r}: the VM lab has {', '.join(self.releases)}; name one of them, "
                "or an unambiguous beginning such as 6.1"
            )
        release = found[0]
        names = (f"vmlinuz-{release}", f"initrd.img-{release}")
        return Bootable(release, *(self.folder / name for name in names))


def cache() -> Path:
    """Return the folder of images: $MYDYNO_CACHE, else /var/cache/mydyno or ~/.cache/mydyno."""
    home = Path("/var/cache/mydyno") if os.geteuid() == 0 else Path.home() / ".cache/mydyno"
    return Path(os.environ.get("MYDYNO_CACHE") or home) / "vm"


def built() -> Image | None:
    """Return the image of this recipe, or None if it was not built yet."""
    image = Image(cache() / digest())
    return image if (image.folder / _DONE).is_file() else None


def build(host: Host, say: Callable[[str], None], sources: Path | None = None) -> Image:
    """Return the image of this recipe, built if there is none: that takes some minutes.

    `sources` names a file of apt sources; without it this system's own are used.  Raise
    `RefusedError` where no image can be built, `HostError` with a tool's words if one fails.
    """
    if image := built():
        return image
    refuse_lacking(host)
    with _alone(say) as folder:
        if image := built():
            return image
        part = folder / f"part-{digest()}"
        _discard(folder)
        steps.make(host, part, say, sources)
        shutil.copyfile(recipe_file(), part / _DONE)
        part.chmod(0o700)
        part.rename(folder / digest())
    return Image(folder / digest())


def recipe_file() -> Path:
    """Return the recipe that ships with mydyno."""
    return Path(__file__).with_name("recipe.toml")


def refuse_lacking(host: Host) -> None:
    """Raise `RefusedError` naming what is missing here to build or boot a machine."""
    if os.geteuid() != 0:
        raise RefusedError("a VM lab needs root: its image is made with mounts and device files")
    missing = {package for tool, package in TOOLS.items() if not shutil.which(tool)}
    if missing:
        words = " ".join(sorted(missing))
        raise RefusedError(
            f"a VM lab needs {words}: `make setup-vm`, or apt-get install --no-install-recommends "
            f"{words} on {host.name}"
        )


@contextmanager
def _alone(say: Callable[[str], None]) -> Iterator[Path]:
    """Lock the cache for one build at a time; the lock ends with its process."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that builds the image of the virtual machines")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _discard(folder: Path) -> None:
    """Remove leftovers of killed builds; none of them is mounted."""
    for part in folder.glob("part-*"):
        shutil.rmtree(part)
