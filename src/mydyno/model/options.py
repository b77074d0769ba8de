"""Values in the option files of MySQL and MariaDB."""

from mydyno.model.errors import SpecError


def one_line(place: str, value: str) -> str:
    """Return a value that can stand in an option file; raise `SpecError` naming its `place`.

    After a line break the rest of it would be an option of its own.
    """
    if any(mark in value for mark in "\n\r\0"):
        raise SpecError(f"{place}: the value has a line break or a NUL; write it in one line")
    return value


def quoted(place: str, value: str) -> str:
    """Return a value in quotes, as an option file takes it; raise `SpecError` as `one_line`."""
    text = one_line(place, value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
