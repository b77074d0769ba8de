"""Whether the load's own session has the TLS that its treatment asks for."""

import re
from collections.abc import Mapping

_VERSION = "TLSv"


def tls_mismatch(asked: str, told: Mapping[str, str]) -> str:
    """Return what is wrong with a load's session, or ``""``.

    `asked` is a `net.tls`, `told` what the load's first connection said of itself.  What decides
    is the cipher: a client's option says what was meant, not what became of it (FACTS 7.4).
    """
    cipher, version = told.get("ssl_cipher", ""), told.get("ssl_version", "")
    if asked == "off":
        return f"net.tls is off, but the load's session has {cipher}" if cipher else ""
    if not cipher:
        return f"net.tls is {asked}, but the load's session has no cipher"
    has = version if asked.startswith(_VERSION) else cipher
    if asked == "on" or _plain(asked) == _plain(has):
        return ""
    return f"net.tls is {asked}, but the load's session has {has}"


def _plain(cipher: str) -> str:
    """Return a name that OpenSSL and wolfSSL agree on: wolfSSL's TLS13-AES128-GCM-SHA256."""
    return re.sub("[_-]", "", re.sub("^TLS_", "TLS13-", cipher))
