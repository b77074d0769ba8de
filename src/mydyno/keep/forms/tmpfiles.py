"""A file of tmpfiles.d: values below /sys that systemd writes at each boot."""

from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile, prefixed

PATH = "/etc/tmpfiles.d/mydyno.conf"
_RELOAD = ("systemd-tmpfiles", "--create", PATH)
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"


def places(kept: Kept) -> dict[str, str]:
    """Return the file below /sys of each key."""
    found = {"kernel.thp": _THP} if "kernel.thp" in kept.settings else {}
    for name in kept.of("kernel.module"):
        module, _, parameter = name.partition(".")
        found[f"kernel.module.{name}"] = f"/sys/module/{module}/parameters/{parameter}"
    return found


def _write(kept: Kept) -> Sequence[KeptFile]:
    values = {f"kernel.{key}": value for key, value in kept.of("kernel").items()}
    lines = [f"w {place} - - - - {values[key]}" for key, place in places(kept).items()]
    return [KeptFile(PATH, "\n".join([*kept.heading(), *lines]) + "\n", _RELOAD)]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    lines = []
    for key, place in places(kept).items():
        first = kept.before(key)
        line = f"w {place} - - - - {first}" if first else f"# {place}: no first value is recorded"
        lines.append(line)
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


FORM = Form(
    "tmpfiles",
    "a file of tmpfiles.d",
    prefixed("kernel.thp", "kernel.module."),
    _write,
    _inverse,
    f"copy it to the host, then systemd-tmpfiles --create {PATH}",
)
