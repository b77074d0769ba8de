"""`plan` asks the server program what it takes; no server is started for that.

Without it, a misspelt variable or a value out of range costs the filling of a data set before `run`
refuses it, or a server that changes the value in silence.
"""

import shutil

import pytest

from command_line import mydyno, shown
from integration.server_steps import HOST, MARIADB, MORE, SERVERS, build_of, open_folder
from mydyno.model import Action
from mydyno.server import find
from mydyno.server.programs import option_names, read_options
from mydyno.stack.known.variables import rejected
from mydyno.stack.mysqld import option_file

pytestmark = pytest.mark.mysqld

SPEC = """
[stack]
server = "{server}"

[treatments.STOCK]

[treatments.ONE]
"{key}" = "{value}"
{more}

[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
threads = [2]
"""


def planned(tmp_path, name, key, value="64M", more=""):
    build = build_of(name)
    server = "auto" if name == MARIADB else build.basedir
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.format(server=server, key=key, value=value, more=more))
    return shown("plan", path)


@pytest.mark.parametrize("name", [*SERVERS, *MORE])
def test_a_program_lists_its_variables(name):
    found = option_names(HOST, build_of(name))
    assert 400 < len(found) < 1000
    assert {"innodb_buffer_pool_size", "sync_binlog", "log_bin", "transaction_isolation"} <= found
    assert ("thread_pool_size" in found) is name.startswith(("mariadb", "percona"))
    assert all(word == word.lower() for word in found)


@pytest.mark.parametrize("name", SERVERS)
def test_a_misspelt_variable_is_refused_by_the_plan(tmp_path, name):
    done = planned(tmp_path, name, "mysqld.inodb_buffer_pool_size")
    assert done.returncode == 2, done.stdout
    flavour = name.partition("-")[0]
    assert done.stderr == (
        f"mydyno: {tmp_path}/spec.toml:8: ONE: unknown {flavour} variable "
        "'mysqld.inodb_buffer_pool_size'; did you mean 'mysqld.innodb_buffer_pool_size'?\n"
    )


def test_the_plan_names_what_replaced_a_variable(tmp_path):
    done = planned(tmp_path, "mysql-8.0.33", "mysqld.query_cache_size")
    assert done.returncode == 2
    assert "mysqld.query_cache_size" in done.stderr


def test_the_plan_refuses_what_mydyno_sets_itself(tmp_path):
    done = planned(tmp_path, MARIADB, "mysqld.socket")
    assert done.returncode == 2
    assert "mydyno sets mysqld.socket for its private instance" in done.stderr


RANGES = """
"mysqld.sort_buffer_size" = 10
"mysqld.max_connections" = 500000000
"mysqld.innodb_flush_log_at_trx_commit" = 7
"""


@pytest.mark.parametrize("name", SERVERS)
def test_a_value_that_the_server_would_change_is_refused_with_its_limit(tmp_path, name):
    done = planned(tmp_path, name, "mysqld.innodb_io_capacity", "5", RANGES)
    assert done.returncode == 2, done.stdout
    smallest, safest = (1024, 3) if name.startswith("mariadb") else (32768, 2)
    takes = "out of range; the nearest value that this server takes is"
    assert done.stderr == (
        f"mydyno: {tmp_path}/spec.toml:12: ONE: mysqld.innodb_io_capacity = 5: {takes} 100; "
        f"mysqld.sort_buffer_size = 10: {takes} {smallest}; "
        f"mysqld.max_connections = 500000000: {takes} 100000; "
        f"mysqld.innodb_flush_log_at_trx_commit = 7: {takes} {safest}\n"
    )


@pytest.mark.parametrize("name", SERVERS)
def test_a_value_that_is_not_of_the_variables_type_is_refused(tmp_path, name):
    done = planned(tmp_path, name, "mysqld.innodb_buffer_pool_size", "512Q")
    assert done.returncode == 2, done.stdout
    assert done.stderr == (
        f"mydyno: {tmp_path}/spec.toml:8: ONE: mysqld.innodb_buffer_pool_size = 512Q: this server "
        "does not take it; write a value of the variable's type\n"
    )


@pytest.mark.parametrize("name", [*SERVERS, *MORE])
@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("sync_binlog", "often"),
        ("binlog_format", "ROWS"),
        ("innodb_io_capacity", "99999999999999999999"),
    ],
)
def test_a_program_rejects_what_is_not_of_the_variables_type(name, variable, value):
    build, want = build_of(name), {variable: value}
    text = option_file(want, build.flavour, build.version)
    assert list(rejected(read_options(HOST, build, text), want)) == [variable]


@pytest.mark.parametrize("name", SERVERS)
def test_values_that_the_server_takes_or_rounds_to_its_unit_are_planned(tmp_path, name):
    more = """
"mysqld.join_buffer_size" = 1000001
"mysqld.log_bin" = "ON"
"mysqld.innodb_max_dirty_pages_pct" = 80
"mysqld.sql_mode" = ""
"mysqld.init_connect" = "SET @a = 'b # c'"
"""
    done = planned(tmp_path, name, "mysqld.innodb_buffer_pool_size", "70%", more)
    assert done.returncode == 0, done.stderr


def test_the_treatment_at_fault_is_named_among_several(tmp_path):
    more = """
[treatments.TWO]
"mysqld.innodb_io_capacity" = 5
"""
    done = planned(tmp_path, MARIADB, "mysqld.innodb_io_capacity", "300", more)
    assert "spec.toml:8: TWO: mysqld.innodb_io_capacity = 5: out of range" in done.stderr


@pytest.mark.parametrize(
    "name", ["mysql-5.6.14", "mysql-5.7.22", "mariadb-10.1.23", "mariadb-10.2.11"]
)
def test_tls_that_no_client_speaks_is_refused_by_the_servers_library(tmp_path, name):
    done = planned(tmp_path, name, "net.tls", "on", '"net.transport" = "tcp"')
    assert done.returncode == 2
    assert done.stderr == (
        f"mydyno: {tmp_path}/spec.toml:8: ONE: net.tls = 'on': this server is built with yaSSL, "
        "which speaks TLS 1.1 at the most, and client libraries refuse that; use a server built "
        "with OpenSSL, or net.tls = off\n"
    )


def test_tls_that_this_server_cannot_speak_is_refused(tmp_path):
    tcp = '"net.transport" = "tcp"'
    assert planned(tmp_path, "mysql-8.0.33", "net.tls", "TLSv1.3", tcp).returncode == 0
    done = planned(tmp_path, "mysql-8.0.33", "net.tls", "TLSv1.4", tcp)
    assert "net.tls = 'TLSv1.4': unknown value 'TLSv1.4'; did you mean" in done.stderr


@pytest.fixture
def program():
    """Return the basedir of a program that is linked against jemalloc, as some builds are."""
    basedir = open_folder()
    folder = basedir / "bin"
    folder.mkdir()
    source = b'#include <stdio.h>\nint main() { puts("mysqld  Ver 8.0.33 for Linux"); return 0; }\n'
    argv = ("cc", "-x", "c", "-", "-o", str(folder / "mysqld"), "-Wl,--no-as-needed")
    HOST.run(Action((*argv, "-l:libjemalloc.so.2"), source)).check()
    yield basedir
    shutil.rmtree(basedir)


def test_an_allocator_over_the_one_that_the_program_is_linked_against_is_refused(tmp_path, program):
    path = tmp_path / "spec.toml"
    path.write_text(SPEC.format(server=program, key="alloc.library", value="tcmalloc", more=""))
    done = mydyno("plan", path)
    assert done.stderr == (
        f"mydyno: {path}:8: ONE: alloc.library = 'tcmalloc': this server is linked to jemalloc, "
        "and a second allocator is not loaded over it: leave alloc.library out or name jemalloc\n"
    )


def test_a_library_that_a_library_brings_counts(program):
    """`ldd` lists those of the libraries too; a program's own list names the first alone."""
    mysqld, between = program / "bin/mysqld", program / "bin/libbetween.so"
    link = ("-Wl,--no-as-needed", "-l:libjemalloc.so.2")
    HOST.run(Action(("cc", "-shared", "-x", "c", "-", "-o", str(between), *link))).check()
    source = b'#include <stdio.h>\nint main() { puts("mysqld  Ver 8.0.33 for Linux"); return 0; }\n'
    needs = ("-Wl,--no-as-needed", "-x", "none", str(between))
    argv = ("cc", "-x", "c", "-", "-o", str(mysqld), *needs)
    HOST.run(Action(argv, source)).check()
    dynamic = HOST.run(Action(("readelf", "-d", str(mysqld)))).check().stdout
    assert b"libbetween" in dynamic
    assert b"jemalloc" not in dynamic
    assert find(HOST, str(program)).allocator == "jemalloc"


LIBRARIES = {
    "mariadb-10.11": ("OpenSSL", "glibc"),
    "mariadb-11.4.5": ("wolfSSL", "glibc"),
    "mysql-8.0.33": ("OpenSSL", "glibc"),
    "mysql-5.6.14": ("yaSSL", "glibc"),
}


@pytest.mark.parametrize("name", SERVERS)  # of the others, what a campaign on them records
def test_the_plan_names_flavour_tls_library_and_allocator(tmp_path, name):
    tls, allocator = LIBRARIES[name]
    done = planned(tmp_path, name, "mysqld.innodb_buffer_pool_size")
    assert done.returncode == 0, done.stderr
    flavour = name.partition("-")[0]
    assert f", flavour {flavour}, TLS by {tls}, allocator {allocator}\n" in done.stdout
