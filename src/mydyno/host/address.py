"""Where an ``ssh://`` host is: user, name and port, as a spec writes them."""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from mydyno.model import SpecError

_SCHEME = "ssh://"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:%-]*")  # a leading dash would be an option of ssh
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.$@\\-]*")


@dataclass(frozen=True, slots=True)
class Address:
    """A host by name or ssh alias; port 0 is the default of the ssh configuration."""

    host: str
    user: str = ""
    port: int = 0

    @property
    def text(self) -> str:
        """Return it as a spec writes it."""
        user = f"{self.user}@" if self.user else ""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"{_SCHEME}{user}{name}" + (f":{self.port}" if self.port else "")

    @property
    def words(self) -> tuple[str, ...]:
        """Return the arguments of ssh that name it."""
        login = ("-l", self.user) if self.user else ()
        port = ("-p", str(self.port)) if self.port else ()
        return (*login, *port, "--", self.host)


def parse(text: str) -> Address:
    """Return the address; raise `SpecError` for text that is not ``ssh://[user@]host[:port]``."""
    wrong = SpecError(f"invalid host {_hidden(text)!r}; expected local or ssh://user@host[:port]")
    if not text.startswith(_SCHEME):
        raise wrong
    try:
        parts = urlsplit(text)
        host, port = parts.netloc.rpartition("@")[2], parts.port or 0
    except ValueError as error:
        raise wrong from error
    if parts.password is not None:
        raise SpecError(
            f"invalid host {_hidden(text)!r}: contains a password; use a key or ssh-agent"
        )
    name = host.partition("]")[0][1:] if host.startswith("[") else host.partition(":")[0]
    user = parts.username or ""
    rest = parts.path.strip("/") or parts.query or parts.fragment
    if not _NAME.fullmatch(name) or (user and not _USER.fullmatch(user)) or rest:
        raise wrong
    return Address(name, user, port)


def _hidden(text: str) -> str:
    """Return the text with a password replaced by ***."""
    return re.sub(r":[^:@/]*@", ":***@", text)
