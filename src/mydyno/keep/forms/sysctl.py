"""A file of sysctl.d."""

from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile, prefixed

PATH = "/etc/sysctl.d/90-mydyno.conf"
_RELOAD = ("sysctl", "--load", PATH)


def _write(kept: Kept) -> Sequence[KeptFile]:
    lines = [f"{name} = {value}" for name, value in kept.of("kernel.sysctl").items()]
    return [KeptFile(PATH, "\n".join([*kept.heading(), *lines]) + "\n", _RELOAD)]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    """Return a file of the first values: a value does not vanish with the file that set it."""
    lines = []
    for name in kept.of("kernel.sysctl"):
        first = kept.before(f"kernel.sysctl.{name}")
        lines.append(f"{name} = {first}" if first else f"# {name}: the run recorded no first value")
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


FORM = Form(
    "sysctl",
    "a file of sysctl.d",
    prefixed("kernel.sysctl."),
    _write,
    _inverse,
    f"copy it to the host, then sysctl --load {PATH}",
)
