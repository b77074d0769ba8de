"""An option file of the server, read last in its folder of includes."""

from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile, prefixed
from mydyno.model import quoted
from mydyno.stack.known import switch

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:,/+-")


def section(kept: Kept) -> list[str]:
    """Return ``[mysqld]`` with each variable, quoted where a server would misread it."""
    return [
        "[mysqld]",
        *(switch(name, value) or _line(name, value) for name, value in kept.of("mysqld").items()),
    ]


def _line(name: str, value: str) -> str:
    return f"{name} = {value if value and set(value) <= _PLAIN else quoted(name, value)}"


def _write(kept: Kept) -> Sequence[KeptFile]:
    text = "\n".join([*kept.heading(), *section(kept)]) + "\n"
    return [KeptFile(f"{kept.include}/zz-mydyno.cnf", text)]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    text = "# empty on purpose: what was set before is in force again after a restart\n[mysqld]\n"
    return [KeptFile(f"{kept.include}/zz-mydyno.cnf", text)]


FORM = Form(
    "mycnf",
    "an option file of the server",
    prefixed("mysqld."),
    _write,
    _inverse,
    "copy it to the host, check it with mysqld --validate-config or mariadbd --verbose --help, "
    "then restart the server",
)
