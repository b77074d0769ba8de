"""`plan` asks the server program which variables it has; no server is started for that.

Without it, a misspelt variable costs the filling of a data set before `run` refuses it.
"""

import pytest

from command_line import mydyno
from integration.server_steps import HOST, MARIADB, SERVERS, build_of
from mydyno.server.programs import option_names

pytestmark = pytest.mark.mysqld

SPEC = """
[stack]
server = "{server}"

[treatments.STOCK]

[treatments.ONE]
"mysqld.{variable}" = "64M"

[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
threads = [2]
"""


def planned(tmp_path, name, variable):
    build = build_of(name)
    server = "auto" if name == MARIADB else build.basedir
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.format(server=server, variable=variable))
    return mydyno("plan", path)


@pytest.mark.parametrize("name", SERVERS)
def test_a_program_lists_its_variables(name):
    found = option_names(HOST, build_of(name))
    assert 400 < len(found) < 1000
    assert {"innodb_buffer_pool_size", "sync_binlog", "log_bin", "transaction_isolation"} <= found
    assert all(word == word.lower() for word in found)


@pytest.mark.parametrize("name", SERVERS)
def test_a_misspelt_variable_is_refused_by_the_plan(tmp_path, name):
    done = planned(tmp_path, name, "inodb_buffer_pool_size")
    assert done.returncode == 2, done.stdout
    flavour = name.partition("-")[0]
    assert done.stderr == (
        f"mydyno: {tmp_path}/spec.toml:8: ONE: unknown {flavour} variable "
        "'mysqld.inodb_buffer_pool_size'; did you mean 'mysqld.innodb_buffer_pool_size'?\n"
    )
    assert planned(tmp_path, name, "innodb_buffer_pool_size").returncode == 0


def test_the_plan_names_what_replaced_a_variable(tmp_path):
    done = planned(tmp_path, "mysql-8.0.33", "query_cache_size")
    assert done.returncode == 2
    assert "mysqld.query_cache_size" in done.stderr


def test_the_plan_refuses_what_mydyno_sets_itself(tmp_path):
    done = planned(tmp_path, MARIADB, "socket")
    assert done.returncode == 2
    assert "mydyno sets mysqld.socket for its private instance" in done.stderr
