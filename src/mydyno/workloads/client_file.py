"""The connection options of sysbench in a file that only its owner can read."""

import os
from collections.abc import Mapping
from pathlib import Path

from mydyno.model import SpecError
from mydyno.workloads.environment import prefix
from mydyno.workloads.protocol import Target

_LINE_BYTES = 255  # sysbench reads a config file through a buffer of 256 bytes
_TLS = "ssl-ca"  # an option file that names an authority asks for TLS
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " "}


def connection_file(target: Target) -> Path:
    """Write ``sysbench.cfg`` (mode 0600) into the target's work directory and return its path.

    User and password come from the target's client option file, so that neither is ever in an
    argument vector or in the environment.  The file is made on the machine we run on.  Raises
    `SpecError` for a value that sysbench's config file cannot hold.
    """
    path = target.work / "sysbench.cfg"
    text = "".join(_line(name, value) for name, value in _settings(target).items() if value)
    part = path.with_suffix(f".{os.getpid()}")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)
    return path


def client_section(text: str) -> Mapping[str, str]:
    """Return the ``[client]`` options of a MySQL option file, unquoted and unescaped."""
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "client" and "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            found[name.strip().replace("_", "-")] = _unquoted(value.strip())
    return found


def sysbench(target: Target, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that starts sysbench with an environment, where it can speak TLS.

    Version 1.0 reads ``cacert.pem``, ``client-cert.pem`` and ``client-key.pem`` by these names
    from the folder that it is started in.
    """
    given = client_section(_read(target.password_file))
    folder = Path(given[_TLS]).parent if _TLS in given else None
    return (*prefix(env, directory=folder), "sysbench")


def _settings(target: Target) -> dict[str, str]:
    given = client_section(_read(target.password_file))
    address = (
        {"mysql-socket": target.socket}
        if target.socket
        # the client libraries take "localhost" to mean the default socket
        else {
            "mysql-host": "127.0.0.1" if target.tcp_host == "localhost" else target.tcp_host,
            "mysql-port": str(target.tcp_port),
        }
    )
    return {
        "mysql-ssl": "on" if _TLS in given else "",
        "mysql-user": target.user or given.get("user", ""),
        "mysql-password": given.get("password", ""),
        "mysql-db": target.database,
        **address,
    }


def _read(path: Path) -> str:
    if path == Path():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot read the client option file: {error.strerror}") from error


def _line(name: str, value: str) -> str:
    quote = next((mark for mark in "\"'" if mark not in value), "")
    line = f"{name}={quote}{value}{quote}\n"
    if not quote or "\n" in value or len(line.encode()) > _LINE_BYTES:
        raise SpecError(
            f"{name}: sysbench cannot read a value with both kinds of quotes, a line end, or a "
            f"line of more than {_LINE_BYTES} bytes; choose another value for the load's user"
        )
    return line


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    parts = value.split("\\\\")
    return "\\".join(_unescaped(part) for part in parts)


def _unescaped(text: str) -> str:
    for mark, meant in _ESCAPES.items():
        text = text.replace(f"\\{mark}", meant)
    return text
