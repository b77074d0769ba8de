"""TLS options of an instance and its clients, by flavour and version."""

from pathlib import Path

from mydyno.server.authority import CA, CERTIFICATE, KEY, SERVER_CERTIFICATE, SERVER_KEY
from mydyno.server.build import Build
from mydyno.server.place import NO_TLS

OFF = "off"
_SUITE = "TLS_"  # how the ciphers of TLS 1.3 begin
_VERSION = "TLSv"
_EMPTY_VERSION = (8, 0, 16)  # the first MySQL that tls_version = '' keeps from TLS
_REQUIRES = {True: (10, 5, 2), False: (5, 7, 8)}  # MariaDB, MySQL: require_secure_transport


def server_options(build: Build, folder: Path, tls: str) -> list[tuple[str, str]]:
    """Return the server's options for `tls`: off, on, a version, or a cipher.

    With TLS on, a session over TCP without it is refused, where the server can do so.
    """
    if tls == OFF:
        modern = not build.mariadb and build.version >= _EMPTY_VERSION
        return [("tls_version", "")] if modern else [("skip_ssl", "1")]
    files = {"ssl_ca": CA, "ssl_cert": SERVER_CERTIFICATE, "ssl_key": SERVER_KEY}
    options = [(name, str(folder / file)) for name, file in files.items()]
    if build.version >= _REQUIRES[build.mariadb]:
        options.append(("require_secure_transport", "1"))
    return options + _narrowed(build, tls)


def client_lines(folder: Path, tls: str) -> list[str]:
    """Return the lines of a client's option file, for the clients of every flavour."""
    if tls == OFF:
        return [NO_TLS, "loose-ssl-mode = DISABLED"]
    files = {"ssl-ca": CA, "ssl-cert": CERTIFICATE, "ssl-key": KEY}
    lines = [f'{name} = "{folder / file}"' for name, file in files.items()]
    return [*lines, "loose-ssl-mode = REQUIRED"]


def _narrowed(build: Build, tls: str) -> list[tuple[str, str]]:
    """Return the options that leave one version or one cipher."""
    if tls.startswith(_VERSION):
        return [("tls_version", tls)]
    if tls.startswith(_SUITE):
        # MariaDB's own packages stand on wolfSSL, which has names of its own
        both = f"{tls}:{tls.replace(_SUITE, 'TLS13-', 1).replace('AES_', 'AES').replace('_', '-')}"
        name, value = ("ssl_cipher", both) if build.mariadb else ("tls_ciphersuites", tls)
        return [("tls_version", "TLSv1.3"), (name, value)]
    return [] if tls == "on" else [("tls_version", "TLSv1.2"), ("ssl_cipher", tls)]
