"""What `net.tls` can be, and on which servers (FACTS 7.1, 7.3)."""

from mydyno.model import unknown_value

ON = "on"
OFF = "off"
VERSIONS = ("TLSv1.2", "TLSv1.3")
SUITES = (  # of TLS 1.3
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
CIPHERS = (  # of TLS 1.2, for a server with an RSA certificate
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-RSA-AES256-SHA384",
    "DHE-RSA-AES128-GCM-SHA256",
    "DHE-RSA-AES256-GCM-SHA384",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES256-SHA256",
)
_ALL = (OFF, ON, *VERSIONS, *SUITES, *CIPHERS)
_OPENSSL = (5, 7, 10)  # before it, MySQL's own TLS ended at 1.1, which clients now refuse
_TLS_1_3 = (8, 0, 16)


def refusal(tls: str, flavour: str, version: tuple[int, ...]) -> str:
    """Return why this server cannot do so, or ``""``."""
    if tls not in _ALL:
        return unknown_value(tls, _ALL, cutoff=0.5)
    if tls == OFF or flavour in ("", "mariadb"):
        return ""
    if version < _OPENSSL:
        return "MySQL before 5.7.10 speaks TLS 1.1 at the most, which client libraries refuse"
    if version < _TLS_1_3 and (tls == "TLSv1.3" or tls in SUITES):
        return "MySQL speaks TLS 1.3 from 8.0.16 on"
    return ""
