"""Records the real slow logs among the golden cases: each server, each verbosity, odd statements.

Run it as root with the servers of packaging/servers.sh there; then look at what changed.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from integration.server_steps import Bench, open_folder  # noqa: E402  # the path comes first

MARIADB = "long_query_time = 0\nlog_slow_filter =\nlog_slow_admin_statements = 1\n"
MYSQL = "long_query_time = 0\nlog_slow_admin_statements = 1\n"
CASES = {
    "real-mysql-5.6": ("mysql-5.6.14", MYSQL),
    "real-mysql-8.0": ("mysql-8.0.33", MYSQL),
    "real-mysql-8.0-extra": ("mysql-8.0.33", MYSQL + "log_slow_extra = ON\n"),
    "real-mysql-8.0-local-time": ("mysql-8.0.33", MYSQL + "log_timestamps = SYSTEM\n"),
    "real-mariadb-10.11": ("mariadb-10.11", MARIADB + "log_slow_verbosity =\n"),
    "real-mariadb-10.11-plan": ("mariadb-10.11", MARIADB + "log_slow_verbosity = query_plan\n"),
    "real-mariadb-10.11-full": ("mariadb-10.11", MARIADB + "log_slow_verbosity = full\n"),
    "real-mariadb-11.4": ("mariadb-11.4.5", MARIADB + "log_slow_verbosity =\n"),
    "real-mariadb-11.4-full": ("mariadb-11.4.5", MARIADB + "log_slow_verbosity = full\n"),
}
SETUP = """
CREATE USER app@localhost IDENTIFIED BY '';
GRANT ALL ON sbtest.* TO app@localhost;
USE sbtest;
CREATE TABLE things (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50), raw BLOB);
DELIMITER //
CREATE PROCEDURE fetch_things(IN least INT, IN word TEXT)
BEGIN
  SELECT id FROM things WHERE id > least;
  SELECT COUNT(*) FROM things WHERE name = word;
END//
"""
LONG_LIST = b"SELECT id FROM things WHERE id IN (" + b"1000, " * 300 + b"7);\n"
BINARY = b"INSERT INTO things (name, raw) VALUES ('blob', _binary 'a\0b\x01\xff\xfe\r\n\\'\\\\');\n"
CARRIAGE = b"SELECT name\r\nFROM things\r\nWHERE id = 2 -- by id\r\n;\n"


def ask(instance, sql, folder):
    """Send SQL through the client as it is: comments, NUL and CR too; errors are wanted."""
    words = ("--force", "--comments", "--binary-mode", "--local-infile=1", "--database=sbtest")
    argv = [*instance.client, *words]
    subprocess.run(argv, input=sql, cwd=folder, capture_output=True, check=False, timeout=60)


def sysbench(instance, test, *words):
    argv = ["sysbench", test, "--tables=2", "--table-size=100", "--time=0", "--mysql-user=app"]
    argv += [f"--mysql-socket={instance.place.socket}", *words]
    subprocess.run(argv, capture_output=True, check=True, timeout=120)


def settings(instance, lines):
    log = instance.place.data / "slow.log"
    if lines:
        lines += f"slow_query_log = 1\nslow_query_log_file = {log}\n"
    instance.place.owned.write_text(f"[mysqld]\nlocal_infile = 1\n{lines}")
    return log


def record(instance, lines, folder):
    """Return the log of one verbosity; the server starts twice within it."""
    log = settings(instance, lines)
    instance.start()
    sysbench(instance, "oltp_read_write", "--events=2", "--db-ps-mode=disable", "run")
    ask(instance, (HERE / "statements.sql").read_bytes(), folder)
    instance.stop()
    instance.start()
    ask(instance, LONG_LIST + BINARY + CARRIAGE, folder)
    sysbench(instance, "oltp_point_select", "--events=2", "--db-ps-mode=auto", "run")
    instance.stop()
    written = log.read_bytes()
    log.unlink()
    return written


def restock(instance, folder):
    """Bring the tables to one state without a log; the first time they are made."""
    settings(instance, "")
    instance.start()
    if not instance.query("SELECT 1 FROM mysql.user WHERE user = 'app'"):
        ask(instance, SETUP.encode(), folder)
        sysbench(instance, "oltp_read_write", "prepare")
    ask(instance, b"TRUNCATE things;", folder)
    instance.stop()


def main(names):
    folder = open_folder()
    bench = Bench(folder)
    (folder / "rows.txt").write_text("seven\tx\neight\ty\n")
    try:
        for case in names or CASES:
            server, lines = CASES[case]
            instance = bench.take(server).instance
            restock(instance, folder)
            log = record(instance, lines, folder)
            (HERE / case).mkdir(exist_ok=True)
            (HERE / case / "input.log").write_bytes(log)
            sys.stdout.write(f"{case}: {len(log)} bytes\n")
    finally:
        bench.close()


if __name__ == "__main__":
    main(sys.argv[1:])
