"""The image of a VM lab: built once from the recipe, stored in the cache, read by every machine."""

import fcntl
import hashlib
import os
import re
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from mydyno.host import Host
from mydyno.model import Action, RefusedError, SpecError

FOLDER = Path(__file__).parent
GUEST = FOLDER / "guest"
MODULES_HOOK = FOLDER / "modules.sh"
GUEST_HOOK = FOLDER / "guest.sh"
PINS_HOOK = FOLDER / "pins.sh"
_RECIPE = FOLDER / "recipe.toml"


@dataclass(frozen=True, slots=True)
class KernelPackages:
    """The packages of one kernel; ``a|b`` is the first that the archive has."""

    image: str
    headers: str


@dataclass(frozen=True, slots=True)
class Packages:
    """What is installed where ZFS is compiled, and in the guest."""

    builder: Sequence[str]
    guest: Sequence[str]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The recipe as written; `epoch` in seconds, `root_bytes` in bytes."""

    suite: str
    later: str
    components: Sequence[str]
    epoch: int
    zfs: str
    root_bytes: int
    kernels: Mapping[str, KernelPackages]
    packages: Packages


@cache
def recipe() -> Recipe:
    """Return the recipe that ships with mydyno."""
    return msgspec.convert(tomllib.loads(_RECIPE.read_text("utf-8")), Recipe)


@cache
def digest() -> str:
    """Return a short name for what the recipe gives: 16 hexadecimal digits."""
    total = hashlib.sha256()
    for path in _parts():
        total.update(f"{path.relative_to(FOLDER)}\0".encode())
        total.update(path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def _parts() -> Iterator[Path]:
    yield from (_RECIPE, MODULES_HOOK, GUEST_HOOK, PINS_HOOK)
    yield from sorted(path for path in GUEST.rglob("*") if path.is_file())


_FILES = Action(
    (
        *("find", "/etc/apt/sources.list", "/etc/apt/sources.list.d", "-type", "f"),
        *("(", "-name", "*.list", "-o", "-name", "*.sources", ")"),
        *("-exec", "awk", "1", "{}", ";", "-exec", "echo", ";"),
    )
)
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)")
_FIELD = re.compile(r"(?P<name>[\w-]+):\s*(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class AptSource:
    """One archive and one suite of it; `signed_by` is a key file, or empty."""

    uri: str
    suite: str
    signed_by: str = ""

    def line(self, components: Sequence[str]) -> str:
        """Return it in the one-line style of sources.list(5)."""
        options = f"[signed-by={self.signed_by}] " if self.signed_by else ""
        return f"deb {options}{self.uri} {self.suite} {' '.join(components)}"


def parse(text: str) -> Sequence[AptSource]:
    """Return the sources of binary packages in files of either style, joined."""
    found = list(_one_line(text))
    for stanza in re.split(r"\n\s*\n", text):
        found += _deb822(stanza)
    return tuple(dict.fromkeys(found))


def widened(sources: Sequence[AptSource], recipe: Recipe) -> str:
    """Return a sources.list of the recipe's suite and what belongs to it.

    Components are the recipe's, and the later suite is looked for beside the plain one.  Raise
    `SpecError` where this system knows no archive of that suite.
    """
    suites = {recipe.suite, f"{recipe.suite}-updates", f"{recipe.suite}-security", recipe.later}
    here = [source for source in sources if source.suite in suites]
    plain = [source for source in here if source.suite == recipe.suite]
    if not plain:
        raise SpecError(
            f"this system's apt configuration has no archive of Debian {recipe.suite}; name a "
            "file of apt sources that has one with --sources FILE"
        )
    later = [AptSource(s.uri, recipe.later, s.signed_by) for s in plain]
    return "".join(f"{s.line(recipe.components)}\n" for s in dict.fromkeys([*here, *later]))


def known(host: Host) -> str:
    """Return the text of the apt sources of `host`."""
    return host.run(_FILES).stdout.decode(errors="replace")


def _one_line(text: str) -> Iterator[AptSource]:
    for line in text.splitlines():
        if found := _ONE_LINE.match(line.strip()):
            options = dict(o.partition("=")[::2] for o in (found["options"] or "").split())
            yield AptSource(found["uri"], found["suite"], options.get("signed-by", ""))


def _deb822(stanza: str) -> Iterator[AptSource]:
    fields: dict[str, str] = {}
    for line in stanza.splitlines():
        if found := _FIELD.fullmatch(line.strip()):
            fields[found["name"].lower()] = found["value"]
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
        return
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield AptSource(uri, suite, fields.get("signed-by", ""))


_STEP_S = 4 * 3600.0  # ZFS compiles for minutes on a fast machine, for hours on a busy one
# The image's own identity: the same in every build of a recipe.
_UUID = "6d796479-6e6f-4c61-6253-00000000{:.4}"


def make(host: Host, part: Path, say: Callable[[str], None], sources: Path | None) -> None:
    """Fill the folder `part` with the image's files."""
    part.mkdir()
    text = sources.read_text("utf-8") if sources else known(host)
    (part / "sources.list").write_text(widened(parse(text), recipe()), encoding="utf-8")
    kernels = _available(host, part)
    for words, step in (
        ("compiling ZFS for each kernel", _modules),
        ("installing the guest", _guest),
        ("writing its filesystem", _filesystem),
    ):
        began_s = time.monotonic()
        say(f"image {digest()}: {words}")
        step(host, part, kernels)
        say(f"image {digest()}: {words}: {time.monotonic() - began_s:.0f} s")


def _modules(host: Host, part: Path, kernels: Sequence[tuple[str, str]]) -> None:
    names = (*recipe().packages.builder, *(headers for _, headers in kernels))
    out = part / "modules"
    out.mkdir()
    _chroot(host, part / "builder", part, names, (f"MYDYNO_ZFS={recipe().zfs}", str(MODULES_HOOK)))
    shutil.rmtree(part / "builder")


def _guest(host: Host, part: Path, kernels: Sequence[tuple[str, str]]) -> None:
    names = (*recipe().packages.guest, *(image for image, _ in kernels))
    modules = f"MYDYNO_MODULES={part / 'modules'}"
    _chroot(host, part / "guest", part, names, (modules, str(GUEST_HOOK)))


def _filesystem(host: Host, part: Path, kernels: Sequence[tuple[str, str]]) -> None:
    """Write the guest's tree into an image, which takes no mount and no loop device."""
    del kernels
    root = part / "root.ext4"
    identity = _UUID.format(digest())
    argv = (
        *("env", f"E2FSPROGS_FAKE_TIME={recipe().epoch}", "mke2fs", "-q", "-t", "ext4"),
        *("-U", identity, "-E", f"hash_seed={identity},nodiscard", "-m", "0"),
        *("-d", str(part / "guest"), str(root), f"{recipe().root_bytes // 1024}k"),
    )
    host.run(Action(argv), timeout_s=_STEP_S).check()
    shutil.rmtree(part / "guest")


def _chroot(
    host: Host, tree: Path, part: Path, names: Sequence[str], hook: tuple[str, str]
) -> None:
    """Make a Debian tree with these packages, then run the hook in it.

    In a mount namespace of its own: whatever ends us, no mount is left.
    """
    variable, program = hook
    out = part / "modules" if program == str(MODULES_HOOK) else part
    argv = (
        *("env", f"SOURCE_DATE_EPOCH={recipe().epoch}", f"MYDYNO_GUEST={GUEST}"),
        *(f"MYDYNO_OUT={out}", variable),
        *("unshare", "--mount", "--propagation", "private", "mmdebstrap", "--quiet"),
        *("--mode=root", "--variant=apt", "--format=directory", f"--include={','.join(names)}"),
        *("--aptopt=APT::Install-Recommends false", "--dpkgopt=path-exclude=/usr/share/doc/*"),
        *("--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*"),
        *(f"--setup-hook={PINS_HOOK}", f"--customize-hook={program}"),
        *(recipe().suite, str(tree), str(part / "sources.list")),
    )
    host.run(Action(argv), timeout_s=_STEP_S).check()


def _available(host: Host, part: Path) -> Sequence[tuple[str, str]]:
    """Return image and headers of each kernel: of several names the first that the archive has."""
    known = _archive(host, part)
    found = []
    for word, kernel in recipe().kernels.items():
        images, headers = kernel.image.split("|"), kernel.headers.split("|")
        pairs = zip(images, headers, strict=True)
        pair = next((p for p in pairs if "/" in p[0] or set(p) <= known), None)
        if pair is None:
            raise SpecError(f"kernel {word}: the archive has none of {', '.join(images)}")
        found.append(pair)
    return found


def _archive(host: Host, part: Path) -> set[str]:
    """Return the names of the kernel packages that the sources offer."""
    state = part / "apt"
    (state / "lists/partial").mkdir(parents=True)
    (state / "cache/archives/partial").mkdir(parents=True)
    options = (
        *("-o", f"Dir::Etc::sourcelist={part / 'sources.list'}", "-o", "Dir::Etc::sourceparts=-"),
        *("-o", f"Dir::State::lists={state / 'lists'}", "-o", f"Dir::Cache={state / 'cache'}"),
    )
    host.run(Action(("apt-get", *options, "--quiet", "update")), timeout_s=_STEP_S).check()
    names = host.run(Action(("apt-cache", *options, "pkgnames", "linux-"))).check().stdout
    shutil.rmtree(state)
    return set(names.decode().split())


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


def image_cache() -> Path:
    """Return the folder of images: $MYDYNO_CACHE, else /var/cache/mydyno or ~/.cache/mydyno."""
    home = Path("/var/cache/mydyno") if os.geteuid() == 0 else Path.home() / ".cache/mydyno"
    return Path(os.environ.get("MYDYNO_CACHE") or home) / "vm"


def built() -> Image | None:
    """Return the image of this recipe, or None if it was not built yet."""
    image = Image(image_cache() / digest())
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
        make(host, part, say, sources)
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
    folder = image_cache()
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
