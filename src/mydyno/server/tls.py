"""TLS options of an instance and its clients, by flavour and version."""

from collections.abc import Iterator
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.place import NO_TLS, Build, Identity, Place

# the first MariaDB that generates a key of its own (docs/reference/method.md)
_TLS_UNASKED = (11, 3, 0)
_SUBJECT = "/CN=MariaDB Server"


def ensure_certificate(host: Host, build: Build, place: Place) -> bool:
    """Return whether the home holds a self-signed certificate for this build to use.

    MariaDB 11.4 makes an RSA key of 4096 bits in memory at every start, which takes from 3 to
    15 seconds of a core.  One of the same kind, saved, leaves TLS as it is by default.  Without
    `openssl` on the host the server goes on making its own.
    """
    if not build.mariadb or build.version < _TLS_UNASKED:
        return False
    if host.run(Action(("test", "-s", str(place.certificate)))).returncode == 0:
        return True
    argv = ("openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "3650")
    files = ("-keyout", str(place.key), "-out", str(place.certificate), "-subj", _SUBJECT)
    try:
        done = host.run(Action((*argv, *files)), timeout_s=120.0)
    except HostError:
        return False
    # openssl keeps a key to its owner; the server's user reads it by its group
    readable = ("chmod", "640", str(place.key), str(place.certificate))
    return done.returncode == 0 and host.run(Action(readable)).returncode == 0


# the names that sysbench 1.0 expects in the folder it is started in
CA, CERTIFICATE, KEY = "cacert.pem", "client-cert.pem", "client-key.pem"
SERVER_CERTIFICATE, SERVER_KEY = "server-cert.pem", "server-key.pem"
_KIND = "rsa:2048"  # as MySQL 8 makes its own
_DAYS = "3650"
_CA_KEY = "ca-key.pem"
_EXTENSIONS = "extensions.txt"
_TIMEOUT_S = 60.0
# An extension makes the certificates of version 3, the only one that wolfSSL takes.
_VERSION_3 = b"basicConstraints = CA:FALSE\n"


def ensure_authority(host: Host, folder: Path, identity: Identity) -> None:
    """Fill `folder` with an authority, and certificates and keys signed by it, where missing.

    They are root's; the server's user can read its own key, and neither the client's nor the
    authority's.  Raises `HostError` where `openssl` is missing or fails.
    """
    if host.run(Action(("test", "-s", str(folder / CERTIFICATE)))).returncode:
        _make(host, folder, identity)
    # openssl keeps a key to its owner; the server's user reads it by its group
    of_server = (str(folder / name) for name in (CA, SERVER_CERTIFICATE, SERVER_KEY))
    host.run(Action(("chmod", "640", *of_server))).check()


def _make(host: Host, folder: Path, identity: Identity) -> None:
    host.run(Action(("mkdir", "-p", "-m", "2710" if identity.name else "700", str(folder)))).check()
    written = ("install", "-m", "640", "/dev/stdin", str(folder / _EXTENSIONS))
    host.run(Action(written, _VERSION_3)).check()
    for action in _made(folder):
        try:
            done = host.run(Action(action), timeout_s=_TIMEOUT_S)
        except HostError as error:
            raise HostError(f"net.tls: no certificate could be made: {error}") from error
        done.check()


def _made(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the commands, the client's certificate last: it marks the folder as complete."""
    ca, key = str(folder / CA), str(folder / _CA_KEY)
    request = ("openssl", "req", "-newkey", _KIND, "-nodes")
    yield (*request, "-x509", "-days", _DAYS, "-keyout", key, "-out", ca, "-subj", "/CN=mydyno CA")
    signing = ("openssl", "x509", "-req", "-days", _DAYS, "-CA", ca, "-CAkey", key)
    signed = (*signing, "-extfile", str(folder / _EXTENSIONS))
    pairs = ((SERVER_CERTIFICATE, SERVER_KEY, "server"), (CERTIFICATE, KEY, "client"))
    for serial, (certificate, own_key, name) in enumerate(pairs, start=1):
        asked = str(folder / f"{name}.csr")
        keys = ("-keyout", str(folder / own_key), "-out", asked)
        yield (*request, *keys, "-subj", f"/CN=mydyno {name}")
        made = ("-in", asked, "-out", str(folder / certificate), "-set_serial", str(serial))
        yield (*signed, *made)


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
