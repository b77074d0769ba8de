"""All native files of a host, as they lie there: option file, sysctl.d, tmpfiles.d, udev, unit."""

from collections.abc import Sequence

from mydyno.keep.forms import mycnf, sysctl, systemd, tmpfiles, udev
from mydyno.keep.kept import Form, Kept, KeptFile

PARTS = (mycnf.FORM, sysctl.FORM, tmpfiles.FORM, udev.FORM, systemd.FORM)


def parts(kept: Kept) -> list[tuple[Form, Kept]]:
    """Return the forms that carry something of it, each with what it carries."""
    found = []
    for form in PARTS:
        keys = [key for key in kept.settings if form.carries(key)]
        if keys:
            found.append((form, kept.only(keys)))
    return found


def carries(key: str) -> bool:
    """Return whether one of the native forms carries a key."""
    return any(form.carries(key) for form in PARTS)


def write(kept: Kept) -> Sequence[KeptFile]:
    """Return the files of all parts."""
    return [file for form, part in parts(kept) for file in form.write(part)]


def inverse(kept: Kept) -> Sequence[KeptFile]:
    """Return the files of the inverses of all parts."""
    return [file for form, part in parts(kept) for file in form.inverse(part)]


def refusal(kept: Kept) -> str:
    """Return the first reason why a part cannot be written."""
    return next(filter(None, (form.refusal(part) for form, part in parts(kept))), "")


def restarts(kept: Kept) -> bool:
    """Return whether the server must be restarted."""
    return any(form in {mycnf.FORM, systemd.FORM} for form, _ in parts(kept))


FORM = Form(
    "native",
    "all files of a host, in their places",
    carries,
    write,
    inverse,
    "copy the tree to /, reload what changed (README), then restart the server",
    refusal,
)
