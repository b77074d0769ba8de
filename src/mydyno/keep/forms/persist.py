"""SET PERSIST: statements that MySQL writes to its own mysqld-auto.cnf."""

import re
from collections.abc import Sequence

from mydyno.keep.kept import Form, Kept, KeptFile
from mydyno.model.text import size_bytes
from mydyno.stack.flavours import flavours, quirks

_NUMBER = re.compile(r"\d+(\.\d+)?([KMGT])?")
# Settings of a file only: MySQL 8.0.33 and 9.7 answer that they are non persistent.
_OF_FILES = {
    "default_authentication_plugin",
    "innodb_buffer_pool_load_at_startup",
    "innodb_data_file_path",
    "innodb_dedicated_server",
    "innodb_doublewrite",
    "innodb_page_size",
    "innodb_temp_data_file_path",
    "innodb_undo_tablespaces",
    "log_bin",
    "skip_external_locking",
    "skip_networking",
}


def carries(key: str) -> bool:
    """Return whether a server keeps this setting itself."""
    return key.startswith("mysqld.") and key.removeprefix("mysqld.") not in _OF_FILES


def literal(name: str, value: str) -> str:
    """Return a value as SQL takes it: sizes as numbers, words quoted."""
    if value.upper() in {"ON", "OFF"}:
        return value.upper()
    if number := _NUMBER.fullmatch(value.upper()):
        plain = number[1] and not number[2]  # a share of something, and no size
        return f"{float(value):g}" if plain else str(size_bytes(value, name))
    text = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


def _write(kept: Kept) -> Sequence[KeptFile]:
    lines = [
        f"SET PERSIST_ONLY {name} = {literal(name, value)};"
        for name, value in kept.of("mysqld").items()
    ]
    return [KeptFile("persist.sql", "\n".join([*kept.heading("--"), *lines]) + "\n")]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    lines = [f"RESET PERSIST IF EXISTS {name};" for name in kept.of("mysqld")]
    return [KeptFile("reset.sql", "\n".join(lines) + "\n")]


def _refusal(kept: Kept) -> str:
    if quirks(kept.flavour, kept.version).persists:
        return ""
    title = flavours()[kept.flavour].title
    version = ".".join(map(str, kept.version))
    return f"{title} {version} has no SET PERSIST; choose --format mycnf"


FORM = Form(
    "persist",
    "SET PERSIST statements",
    carries,
    _write,
    _inverse,
    "mysql < persist.sql, then restart the server",
    _refusal,
)
