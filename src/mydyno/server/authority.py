"""A certificate authority of an instance's own, with certificates for its server and its load."""

from collections.abc import Iterator
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.identity import Identity

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


def ensure(host: Host, folder: Path, identity: Identity) -> None:
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
