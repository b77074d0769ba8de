"""What is read from and written for people: unknown names, quantities, lines of option files."""

import difflib
import re
from collections.abc import Iterable
from math import isfinite

from mydyno.model.errors import SpecError

# what stands before a sign outside of quotes
_COMMENT = re.compile(r"""^((?:[^#"']|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')*)#.*$""")


def uncommented(line: str) -> str:
    """Return a line of an option file without the comment at its end, as the servers read it."""
    return _COMMENT.sub(r"\1", line).rstrip()


def unknown_value(
    name: str,
    known: Iterable[str],
    kind: str = "value",
    *,
    prefix: str = "",
    listed: bool = True,
    cutoff: float = 0.6,
) -> str:
    """Return ``unknown value 'gird'; did you mean 'grid'?``.

    Without a `known` name that is similar enough (`cutoff`, as difflib has it) all known names
    follow, unless `listed` is False.  `kind` replaces "value", and `prefix` is put before names.
    """
    known = tuple(known)
    near = difflib.get_close_matches(name, known, 1, cutoff)
    hint = f"; known: {', '.join(prefix + each for each in known)}" if listed and known else ""
    if near:
        hint = f"; did you mean {prefix + near[0]!r}?"
    return f"unknown {kind} {prefix + name!r}{hint}"


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


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def duration_s(text: str, place: str) -> float:
    """Return ``90s``, ``20m``, ``1.5h`` or ``1h30m`` in seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(n + u for n, u in parts) != text.replace(" ", ""):
        raise SpecError(f"{place}: {text!r} is not a duration; write 90s, 20m or 1h")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not isfinite(seconds):
        raise SpecError(f"{place}: the duration has too many digits; write 90s, 20m or 1h")
    return seconds


def size_bytes(text: str, place: str) -> int:
    """Return ``8G``, ``512M`` or ``4096`` in bytes; suffixes are powers of 1024."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise SpecError(f"{place}: {text!r} is not a size; write 512M or 8G")
    size = float(found[1]) * _BYTES[found[2].upper()]
    if not isfinite(size):
        raise SpecError(f"{place}: the size has too many digits; write 512M or 8G")
    return int(size)


def resolve(text: str, *, memory_bytes: int, cores: int) -> str:
    """Return a relative value for this host: ``70%`` of memory in MiB steps, ``1x`` cores."""
    if share := re.fullmatch(r"(\d+(?:\.\d+)?)%", text):
        mebibyte = 1 << 20
        return str(int(memory_bytes * float(share[1]) / 100) // mebibyte * mebibyte)
    if times := re.fullmatch(r"(\d+(?:\.\d+)?)x", text):
        return str(max(1, round(cores * float(times[1]))))
    return text


def quota_text(quota_us: int | None, period_us: int) -> dict[str, str]:
    """Return a CPU quota by the keys of `cgroup`; with None the `cpu` is ``unlimited``."""
    cpu = "unlimited" if quota_us is None else f"{round(100 * quota_us / period_us, 3):g}%"
    return {"cpu": cpu, "period": f"{period_us / 1000:g}ms"}


def chosen(value: str) -> str:
    """Return the choice in brackets: ``none [mq-deadline] kyber``, or the value itself."""
    found = re.search(r"\[([\w-]+)\]", value)
    return found[1] if found else value
