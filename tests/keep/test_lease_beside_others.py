"""A lease beside what is not ours: other servers of the host, replication, an operator."""

import pytest

from keep.guest import until
from keep.test_lease import COLD, HOT

pytestmark = [pytest.mark.root, pytest.mark.mysqld]
SOURCE = """
mariadb-install-db --no-defaults --datadir=/var/lib/source --user=mysql >/dev/null
systemd-run --quiet --unit=source mariadbd --no-defaults --datadir=/var/lib/source --user=mysql \\
    --socket=/var/lib/source/s.sock --pid-file=/var/lib/source/pid --port=3307 \\
    --log-bin --server-id=9
until mariadb -S /var/lib/source/s.sock -e "SELECT 1"; do sleep 0.1; done >/dev/null 2>&1
mariadb -S /var/lib/source/s.sock -e "CREATE USER r@'127.0.0.1' IDENTIFIED BY 'r';
    GRANT REPLICATION SLAVE ON *.* TO r@'127.0.0.1'"
"""


@pytest.fixture
def replicating(desk):
    """Make the server a replica of another one of the guest; return the threads that run."""
    desk.guest.inside("sh", "-ec", SOURCE)
    login = "MASTER_HOST = '127.0.0.1', MASTER_PORT = 3307, MASTER_USER = 'r'"
    desk.guest.sql(f"CHANGE MASTER TO {login}, MASTER_PASSWORD = 'r'; START SLAVE")

    def threads():
        rows = desk.guest.inside("mariadb", "-e", "SHOW SLAVE STATUS\\G").splitlines()
        return [row.strip() for row in rows if "_Running:" in row]

    until(lambda: threads() == ["Slave_IO_Running: Yes", "Slave_SQL_Running: Yes"])
    return threads


def test_a_replica_replicates_after_the_restart_or_is_restored(desk, replicating):
    running, named = replicating(), ("--server", "/run/mysqld/mysqld.sock")
    desk.apply(COLD, *named)
    assert replicating() == running
    desk.run("rollback", desk.guest.ssh)
    until(lambda: replicating() == running)
    lines = "[mysqld]\nskip-slave-start\n"  # replication is not started with the server
    desk.guest.inside("tee", "/etc/mysql/mariadb.conf.d/replica.cnf", stdin=lines)
    words = desk.apply(COLD, *named, lease="20s", code=3)
    assert "slave_io_running ran before and does not; start it" in words
    assert "everything was restored" in words


def test_servers_that_read_the_same_option_files_are_not_changed(desk):
    script = SOURCE.replace("mariadbd --no-defaults", "mariadbd")
    script = script.replace("--no-defaults --datadir", "--datadir").partition("\nmariadb -S")[0]
    desk.guest.inside("sh", "-ec", f"{script}\n:")
    named = ("--server", "/run/mysqld/mysqld.sock")
    assert "reads the same option files" in desk.apply(HOT, *named, code=4)
    words = ("move", desk.guest.ssh, "/srv/data", "--yes-to", desk.guest.name, *named)
    assert "reads the same option files" in desk.run(*words, code=4)


def test_a_host_keeps_the_settings_of_one_server(desk):
    desk.apply(HOT)
    desk.run("confirm", desk.guest.ssh)
    desk.guest.inside("systemctl", "stop", "mariadb")
    desk.guest.inside("cp", "/lib/systemd/system/mariadb.service", "/etc/systemd/system/db.service")
    desk.guest.inside("systemctl", "daemon-reload")
    desk.guest.inside("systemctl", "start", "db")
    assert "keeps settings of mariadb.service" in desk.apply(COLD, code=4)


def test_what_an_operator_has_set_since_it_was_kept_is_left_and_named(desk):
    values = desk.values()
    desk.apply(HOT)
    desk.run("confirm", desk.guest.ssh)
    desk.guest.sql("SET GLOBAL max_connections = 222")
    words = desk.run("rollback", desk.guest.ssh, code=3)
    assert "mysqld.max_connections is 222, set by somebody else since it was kept" in words
    assert desk.guest.sql("SELECT @@max_connections") == "222"
    desk.guest.sql("SET GLOBAL max_connections = 151")
    assert desk.values() == values
