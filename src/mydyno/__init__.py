"""mydyno: a dynamometer for MySQL, MariaDB and Percona Server on Linux."""

__version__ = "0.1.0"
