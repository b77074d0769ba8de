"""The certificate of a MariaDB that would else make one at every start."""

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.build import Build
from mydyno.server.place import Place

_TLS_UNASKED = (11, 3, 0)  # the first MariaDB that generates a key of its own (FACTS 7.1)
_SUBJECT = "/CN=MariaDB Server"


def ensure(host: Host, build: Build, place: Place) -> bool:
    """Return whether the home holds a self-signed certificate for this build to use.

    MariaDB 11.4 makes an RSA key of 4096 bits in memory at every start, which takes from 3 to
    15 seconds of a core.  One of the same kind, kept, leaves TLS as it is by default.  Without
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
