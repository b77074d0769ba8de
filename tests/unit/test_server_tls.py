"""The TLS options of each server and its clients, and where a server listens."""

from pathlib import Path

import pytest

from mydyno.loads.sysbench import client_section
from mydyno.server import place
from mydyno.server.place import Build, Place, client_options, options, password_in

FOLDER = Path("/srv/h/tls")
FILES = [
    ("ssl_ca", "/srv/h/tls/cacert.pem"),
    ("ssl_cert", "/srv/h/tls/server-cert.pem"),
    ("ssl_key", "/srv/h/tls/server-key.pem"),
]
SECURE = ("require_secure_transport", "1")
SUITE, CIPHER = "TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES128-GCM-SHA256"


def build(flavour, version):
    base = Path("/opt/s")
    return Build(flavour, version, "text", base / "bin/mysqld", base, base / "bin/mysql")


@pytest.mark.parametrize(
    ("flavour", "version", "asked", "wanted"),
    [
        ("mysql", (8, 0, 33), "off", [("tls_version", "")]),
        ("mysql", (9, 7, 4), "off", [("tls_version", "")]),
        ("mysql", (8, 0, 15), "off", [("skip_ssl", "1")]),
        ("mysql", (5, 6, 14), "off", [("skip_ssl", "1")]),
        ("mariadb", (11, 4, 5), "off", [("skip_ssl", "1")]),
        ("mysql", (8, 0, 33), "on", [*FILES, SECURE]),
        ("mysql", (5, 6, 14), "on", FILES),
        ("mariadb", (10, 4, 8), "on", FILES),
        ("mariadb", (10, 11, 19), "TLSv1.2", [*FILES, SECURE, ("tls_version", "TLSv1.2")]),
        (
            "mysql",
            (8, 0, 33),
            SUITE,
            [*FILES, SECURE, ("tls_version", "TLSv1.3"), ("tls_ciphersuites", SUITE)],
        ),
        (
            "mariadb",
            (11, 4, 5),
            SUITE,
            [
                *FILES,
                SECURE,
                ("tls_version", "TLSv1.3"),
                ("ssl_cipher", f"{SUITE}:TLS13-AES256-GCM-SHA384"),
            ],
        ),
        (
            "percona",
            (8, 0, 33),
            CIPHER,
            [*FILES, SECURE, ("tls_version", "TLSv1.2"), ("ssl_cipher", CIPHER)],
        ),
    ],
)
def test_each_server_gets_options_in_its_own_form(flavour, version, asked, wanted):
    assert place.server_options(build(flavour, version), FOLDER, asked) == wanted


def test_a_clients_file_asks_for_the_same():
    text = client_options("mydyno", "My1-abc", None, place.client_lines(FOLDER, "on"))
    assert client_section(text)["ssl-ca"] == "/srv/h/tls/cacert.pem"
    assert password_in(text) == "My1-abc"
    plain = client_options("mydyno", "My1-abc", None, place.client_lines(FOLDER, "off"))
    assert "ssl-ca" not in client_section(plain)
    assert client_section(plain)["loose-ssl"] == "0"


def test_a_comment_is_no_part_of_a_password():
    text = "[client]\npassword = a1  # of the bench\nuser='x#1' # b\nsocket=\"/a b\"\n"
    assert client_section(text) == {"password": "a1", "user": "x#1", "socket": "/a b"}


def test_only_a_load_from_elsewhere_is_not_looked_up():
    files = Place(Path("/srv/h"), Path("/srv/d"), Path("/srv/h"))
    server = build("mariadb", (10, 11, 19))
    near = options(server, files, "127.0.0.1", 21000)
    far = options(server, files, "198.18.0.1", 21000, [("tls_version", "")])
    assert "skip_name_resolve" not in near
    assert "bind_address = 198.18.0.1\nport = 21000\nskip_name_resolve\n" in far
    assert 'tls_version = ""\n' in far
    assert "skip_networking" in options(server, files)
