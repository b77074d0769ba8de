"""A file of sysctl.d."""

from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile, prefixed
from mydyno.stack.known import twin

PATH = "/etc/sysctl.d/90-mydyno.conf"
_RELOAD = ("sysctl", "--load", PATH)


def _write(kept: Kept) -> Sequence[KeptFile]:
    lines = [f"{name} = {value}" for name, value in kept.of("kernel.sysctl").items()]
    return [KeptFile(PATH, "\n".join([*kept.heading(), *lines]) + "\n", _RELOAD)]


def first_values(kept: Kept) -> dict[str, str]:
    """Return what each sysctl was before, ``""`` for one that is not recorded.

    Of two that have one meaning in two units, it is the one that was not zero.
    """
    found = {}
    for name in kept.of("kernel.sysctl"):
        first, other = kept.before(f"kernel.sysctl.{name}"), twin(f"sysctl.{name}")
        if first == "0" and other:
            found[other.removeprefix("sysctl.")] = kept.before(f"kernel.{other}")
        else:
            found[name] = first
    return found


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    """Return a file of the first values: a value does not vanish with the file that set it."""
    lines = [
        f"{name} = {first}" if first else f"# {name}: the run recorded no first value"
        for name, first in first_values(kept).items()
    ]
    return [KeptFile(PATH, "\n".join(lines) + "\n", _RELOAD)]


FORM = Form(
    "sysctl",
    "a file of sysctl.d",
    prefixed("kernel.sysctl."),
    _write,
    _inverse,
    f"copy it to the host, then sysctl --load {PATH}",
)
