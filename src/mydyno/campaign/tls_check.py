"""Checks whether the load's session has the TLS of its treatment."""

import re
from collections.abc import Mapping

_VERSION = "TLSv"


def tls_mismatch(wanted: str, session: Mapping[str, str]) -> str:
    """Return how a load's session differs from its treatment, or ``""``.

    `wanted` is a value of `net.tls`; `session` holds the status variables of the load's first
    connection.  The cipher decides: a client's option does not show whether TLS is in use.
    """
    cipher, version = session.get("ssl_cipher", ""), session.get("ssl_version", "")
    if wanted == "off":
        return f"net.tls is off, but the load's session has {cipher}" if cipher else ""
    if not cipher:
        return f"net.tls is {wanted}, but the load's session has no cipher"
    has = version if wanted.startswith(_VERSION) else cipher
    if wanted == "on" or _plain(wanted) == _plain(has):
        return ""
    return f"net.tls is {wanted}, but the load's session has {has}"


def _plain(cipher: str) -> str:
    """Return a name that OpenSSL and wolfSSL agree on: wolfSSL's TLS13-AES128-GCM-SHA256."""
    return re.sub("[_-]", "", re.sub("^TLS_", "TLS13-", cipher))
