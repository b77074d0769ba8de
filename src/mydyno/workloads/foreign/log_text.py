"""A text that holds logs: its lines as a tool wrote them, whatever has wrapped them since."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_MARKS = {0xA0: " ", 0x2009: " ", 0x202F: " ", 0x3000: " ", 0xFEFF: None, 0x200B: None}
_QUOTES = {0x201C: '"', 0x201D: '"', 0x201E: '"', 0xAB: '"', 0xBB: '"', 0x2018: "'", 0x2019: "'"}
_TYPED = _MARKS | _QUOTES | {0xFF1A: ":", 0x2026: "..."}
_DASHES = re.compile(r"(?<=\s)[\u2012-\u2015](?=[A-Za-z])")  # typographers join two hyphens
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_QUOTED = re.compile(r"^(?:> ?)+")
_SECRETS = re.compile(
    r"(?P<name>--?(?:[a-z-]*password|mysql-passwd|pgsql-password)[= ]|"
    r"(?<=\s)-p(?=[^\s-])|MYSQL_PWD=)(?P<value>'[^']*'|\"[^\"]*\"|[^\s'\"\\]+)"
)
_WIDE = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of one text: `lines` to be read, `kept` as they came, but for passwords."""

    lines: tuple[str, ...]
    kept: tuple[str, ...]

    def without(self, numbers: Collection[int]) -> "Text":
        """Return the text with these lines blank to its readers."""
        lines = ("" if n in numbers else line for n, line in enumerate(self.lines))
        return Text(tuple(lines), self.kept)

    def excerpt(self, numbers: Iterable[int]) -> bytes:
        """Return the lines at these places, counted from 0, as they came."""
        return "".join(f"{self.kept[n]}\n" for n in sorted(set(numbers))).encode()


def text_of(data: bytes) -> Text:
    """Return the text in `data`; raise `ValueError` where there is none.

    UTF-8, UTF-16 with its mark, else Latin-1.  Passwords in commands become ``***``.
    """
    if not data.strip():
        raise ValueError("empty")
    if data.startswith(_WIDE):
        whole = data.decode("utf-16", errors="replace")
    elif b"\0" in data:
        raise ValueError("binary, no text")
    else:
        whole = _narrow(data)
    kept = [_without_secrets(line.rstrip("\r")) for line in whole.split("\n")]
    if kept and not kept[-1]:
        kept.pop()
    return Text(tuple(map(_plain, kept)), tuple(kept))


def _narrow(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _without_secrets(line: str) -> str:
    return _SECRETS.sub(lambda found: f"{found['name']}***", line)


def _plain(line: str) -> str:
    """Return the line without colours, typography, quotation marks and what was overwritten."""
    line = _ESCAPES.sub("", line).translate(_TYPED)
    line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    return _DASHES.sub("--", _QUOTED.sub("", line)).rstrip()
