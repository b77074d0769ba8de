"""The complete lines of a live stream, numbered, and the error for an invalid one."""

from collections.abc import Iterable, Iterator

from mydyno.host import LONGEST_LINE

_SHOWN = 160  # characters of a bad line that a person can still read


def numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each complete line that is not blank.

    A line without its newline is the torn end of a tool that was killed, and is left out.
    Raises `ValueError` for one of more than `LONGEST_LINE` bytes.
    """
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE or (len(line) == LONGEST_LINE and not line.endswith(b"\n")):
            raise ValueError(
                f"line {number}: is longer than {LONGEST_LINE} bytes; print one report a line"
            )
        if line.endswith(b"\n") and line.strip():
            yield number, line


def text_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that `numbered` yields."""
    for number, line in numbered(lines):
        yield number, line.decode(errors="replace").rstrip("\r\n")


def no_report(tool: str, number: int, text: str, why: str = "") -> ValueError:
    """Return the error for a line that cannot be a report of `tool`, with its number and text."""
    reason = f" ({why})" if why else ""
    return ValueError(f"line {number} is no report of {tool}{reason}: {text[:_SHOWN]!r}")


def failure(tool: str, text: str, following: Iterator[tuple[int, str]]) -> ValueError:
    """Return the error for a tool's own complaint and the line after it, which says more."""
    _, more = next(following, (0, ""))
    return ValueError(f"{tool}: {text}; {more}" if more else f"{tool}: {text}")
