"""What a page that is sent to others leaves out: names of hosts and users, paths, literals."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")

# Names that many hosts and users have, or that settings and units share: they identify nobody.
_COMMON = re.compile(
    "admin|baseline|cpu|database|debian|demo|disk|fs|host|kernel|load|local|localhost|main|mariadb"
    "|mydyno|mysqld?|net|nobody|none|ops|psi|report|root|server|sysctl|test|trial|ubuntu|user|vm"
)
_SHORTEST = 3  # characters of a name that can be recognised in a text
_PART = r"[^\s/\"'`,;:()\[\]{}<>|]"
# Folders that are alike on all hosts, and so no names; unless below one that is not.
_PUBLIC = re.compile(
    r"/(?:usr/(?!local\b|home\b)|proc\b|sys\b|lib\d*\b|s?bin\b|dev/(?!disk|mapper)|usr$|dev$)"
)
_UNIT = re.compile(r"/(?:s|min|h|op|sec|day|hour)\.?$")
_QUOTED = re.compile(r"(?P<quote>[\"'`])(?P<path>~?/[^\"'`\n]*)(?P=quote)")
_PATH = re.compile(rf"(?<![\w./~\]])(?:~\w*)?/{_PART}+(?:/{_PART}*)*")
_FILE_URL = re.compile(r"\b(file|unix)://[^\s\"']+")
_SSH = re.compile(r"(?<=ssh://|tcp://)(?!\[)(?:[^\s/@\"']+@)?[^\s/:\"']+")
_ACCOUNT = re.compile(r"'[^'\s]+'@'[^'\s]+'")
_AT = re.compile(r"\b[\w.+-]+@[A-Za-z][\w.-]*\w")
# `psi.io` is a curve of ours, which its panel finds by this name.
_DOMAIN = re.compile(
    r"\b(?!psi\.io\b|(?:[\w-]+\.)*(?:mysql|mariadb|percona|github|debian|kernel)\.(?:com|org)\b)(?:[\w-]+\.)+(?:com|org|net|io|dev|local|localdomain|lan|internal|intra|corp|home|cloud"
    r"|example|invalid|test|eu|de|uk|fr|us)\b(?![\w.-])"
)
_IPV4 = re.compile(r"(?<![\w.])(?!127\.0\.0\.1\b)\d{1,3}(?:\.\d{1,3}){3}(?:/\d+)?(?![\w.]*\w)")
_IPV6 = re.compile(
    r"(?<![\w:])(?:(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}|[0-9a-f]{1,4}(?::[0-9a-f]{0,4}){2,7})"
    r"(?![\w:])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\d\d?:\d\d:\d\d")
_ID = re.compile(r"\b[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\b", re.IGNORECASE)
_SERIAL = re.compile(r"(?i)\b(serial(?: ?(?:number|no\.?))?|wwn|eui|nguid)(\W+)[\w.-]{4,}")
_SECRET = re.compile(
    r"(?i)((?:pass(?:word|wd)?|pwd|secret|token)\"?\s*[=:]\s*)([\"']?)[^\s\"',;]+(?:[^\"'\n]*(?=\2))?"
)
_STRINGS = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'", re.DOTALL
)  # of TOML
_LITERAL = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\\?\"(?:[^\"\\]|\\[^\"])*\\?\"|"
    r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b"
)
_STATEMENT = re.compile(
    r"(?is)\b(?:select\b[^\n]*?\bfrom\b|(?:insert|replace)\s+(?:ignore\s+)?into\b|delete\s+from\b"
    r"|update\s+\S+\s+set\b|call\s+\w+\s*\().*"
)
_BEGINS = re.compile(r"(?i)\s*(?:select|call|do|values)\b")  # a statement
_VALUE = re.compile(r"(?i)\b(entry|value:?|near|row) '.*?'(?= |$|\.|,|\))")


@dataclass(slots=True, eq=False)
class Redactor:
    """Replaces what identifies a host or a person by a token: the same text by the same token."""

    hosts: Iterable[str] = ()
    found: dict[str, list[str]] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return a text without names, paths and literals."""
        text = _literals(secrets_hidden(text))
        text = _FILE_URL.sub(lambda m: f"{m[1]}://{self._token('path', m[0])}", text)
        text = _QUOTED.sub(lambda m: f"{m[1]}{self._path(m['path'])}{m[1]}", text)
        text = _PATH.sub(lambda m: self._path(m[0]), text)
        text = _SSH.sub(lambda m: self._token("host", m[0].rpartition("@")[2]), text)
        text = _ACCOUNT.sub("'[user]'@'[host]'", text)
        text = _AT.sub(lambda m: f"[user]@{self._token('host', m[0].partition('@')[2])}", text)
        for name in sorted({*self.hosts}, key=len, reverse=True):
            if len(name) >= _SHORTEST and not _COMMON.fullmatch(name.lower()):
                known = re.compile(rf"(?i)(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])")
                text = known.sub(lambda m: self._token("name", m[0].lower()), text)
        text = _DOMAIN.sub(lambda m: self._token("host", m[0]), text)
        text = _ID.sub("[id]", text)
        text = _SERIAL.sub(r"\1\2[id]", text)
        text = _IPV4.sub(lambda m: self._token("address", m[0]), text)
        return _IPV6.sub(self._ipv6, text)

    def _path(self, path: str) -> str:
        end = path[len(path.rstrip(".")) :]
        if (_PUBLIC.match(path) and ".." not in path) or _UNIT.match(path) or path in {"/", "~/"}:
            return path
        return self._token("path", path.rstrip(".")) + end

    def _ipv6(self, match: re.Match[str]) -> str:
        plain = _CLOCK.fullmatch(match[0]) or match[0].count(":") < 2  # noqa: PLR2004
        return match[0] if plain else self._token("address", match[0])

    def _token(self, kind: str, text: str) -> str:
        if text in {"local", "localhost"}:
            return text
        known = self.found.setdefault(kind, [])
        if text not in known:
            known.append(text)
        number = known.index(text) + 1
        return f"[{kind}]" if number == 1 else f"[{kind} {number}]"


def redacted(result: T, names: Iterable[str] = ()) -> T:
    """Return a value without names, paths and literals; `names` are those of its hosts, users."""
    return mapped(result, cache(Redactor(names)))


def secrets_hidden(text: str) -> str:
    """Return a text without the values of passwords; they are in no page, whatever was asked."""
    return _SECRET.sub(r"\1\2[hidden]", text)


def _literals(text: str) -> str:
    """Return a message without the literals of statements, and without the rows it names."""
    text = _VALUE.sub(r"\1 '?'", text)
    return _STATEMENT.sub(lambda m: _LITERAL.sub("?", m[0]), text)


def spec_without_literals(text: str) -> str:
    """Return a spec whose strings that hold a statement have ``?`` for each of its literals."""
    return _STRINGS.sub(_string, text)


def _string(match: re.Match[str]) -> str:
    string = match[0]
    mark = string[:3] if string[:3] in {'"""', "'''"} else string[0]
    inner = string[len(mark) : -len(mark)]
    return (
        f"{mark}{_LITERAL.sub('?', inner)}{mark}"
        if _STATEMENT.search(inner) or _BEGINS.match(inner)
        else string
    )


def mapped(value: T, text: Callable[[str], str]) -> T:
    """Return a value with `text` applied to all strings in it, the keys of mappings too."""
    return _mapped(value, text)  # type: ignore[no-any-return]


def _mapped(value: Any, text: Callable[[str], str]) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Struct):
        return structs.replace(
            value, **{n: _mapped(getattr(value, n), text) for n in value.__struct_fields__}
        )
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{f.name: _mapped(getattr(value, f.name), text) for f in fields(value)}
        )
    if isinstance(value, dict):
        return {_mapped(k, text): _mapped(v, text) for k, v in value.items()}
    if isinstance(value, list | tuple) and value and not isinstance(value[0], int | float):
        return type(value)(_mapped(each, text) for each in value)
    return value
