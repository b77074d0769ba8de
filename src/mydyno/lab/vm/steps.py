"""The steps of building an image: ZFS compiled, the guest made, the filesystem written."""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mydyno.host import Host
from mydyno.lab.vm import sources as apt
from mydyno.lab.vm.recipe import GUEST, GUEST_HOOK, MODULES_HOOK, PINS_HOOK, digest, recipe
from mydyno.model import Action, SpecError

_STEP_S = 4 * 3600.0  # ZFS compiles for minutes on a fast machine, for hours on a busy one
# The image's own identity: the same in every build of a recipe.
_UUID = "6d796479-6e6f-4c61-6253-00000000{:.4}"


def make(host: Host, part: Path, say: Callable[[str], None], sources: Path | None) -> None:
    """Fill the folder `part` with the image's files."""
    part.mkdir()
    text = sources.read_text("utf-8") if sources else apt.known(host)
    (part / "sources.list").write_text(apt.widened(apt.parse(text), recipe()), encoding="utf-8")
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
