"""The reading of a server's `--version` line, for existing flavours and versions, and others."""

import pytest

from mydyno.model import SpecError
from mydyno.server.place import parse
from mydyno.server.programs import parse_options

CASES = [
    (
        "mysqld  Ver 5.6.14 for linux-glibc2.5 on x86_64 (MySQL Community Server (GPL))",
        "mysql",
        (5, 6, 14),
    ),
    (
        "mysqld  Ver 5.7.44-log for Linux on x86_64 (MySQL Community Server (GPL))",
        "mysql",
        (5, 7, 44),
    ),
    (
        "/opt/mysql/bin/mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)",
        "mysql",
        (8, 0, 33),
    ),
    (
        "/usr/sbin/mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))",
        "mysql",
        (8, 0, 36),
    ),
    (
        "mysqld  Ver 8.4.3 for Linux on aarch64 (MySQL Community Server - GPL)",
        "mysql",
        (8, 4, 3),
    ),
    (
        "/usr/sbin/mysqld  Ver 9.7.4-1 for Linux on x86_64 ((Debian))",
        "mysql",
        (9, 7, 4),
    ),
    (
        "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
        "mariadb",
        (10, 11, 19),
    ),
    (
        "mysqld  Ver 10.3.39-MariaDB-0ubuntu0.20.04.2 for debian-linux-gnu on x86_64 (Ubuntu)",
        "mariadb",
        (10, 3, 39),
    ),
    (
        "/srv/bin/mariadbd  Ver 11.4.5-MariaDB for linux-systemd on x86_64 (MariaDB Server)",
        "mariadb",
        (11, 4, 5),
    ),
    (
        "mariadbd  Ver 12.1.2-MariaDB-ubu2404 for debian-linux-gnu on x86_64 (mariadb.org binary)",
        "mariadb",
        (12, 1, 2),
    ),
    (
        "mysqld  Ver 8.0.33-25 for Linux on x86_64 (Percona Server (GPL), Revision 60c9e2c5)",
        "percona",
        (8, 0, 33),
    ),
    (
        "mysqld  Ver 5.6.51-91.0 for debian-linux-gnu on x86_64 (Percona Server (GPL))",
        "percona",
        (5, 6, 51),
    ),
    ("mysqld  Ver 23.4 for Plan9 on riscv64 (a server nobody has seen)", "mysql", (23, 4, 0)),
]


@pytest.mark.parametrize(("text", "flavour", "version"), CASES)
def test_a_version_line_names_flavour_and_version(text, flavour, version):
    assert parse(text.encode() + b"\n") == (flavour, version, text)


@pytest.mark.parametrize(
    "text", [b"", b"bash: syntax error", b"psql (PostgreSQL) 15.4", b"\xff\x00"]
)
def test_what_is_no_server_is_refused(text):
    with pytest.raises(SpecError, match="not a MySQL, MariaDB or Percona server"):
        parse(text)


def test_options_are_read_from_the_table_of_values_only():
    """Words of the help's prose, and of the sentences after the table, are no options."""
    text = b"""Usage: mysqld [OPTIONS]
  --sort-buffer-size=# Each thread allocates this

Variables (--variable-name=value)
and boolean options {FALSE|TRUE}  Value (after reading options)
--------------------------------- -----------------------------
innodb-buffer-pool-size           134217728
sync-binlog                       0

To see what values a running MySQL server is using, type
"""
    assert parse_options(text) == {"innodb_buffer_pool_size", "sync_binlog"}
    assert parse_options(b"mysqld: unknown option '--help'\n") == set()
