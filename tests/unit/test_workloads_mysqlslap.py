"""The cells, commands and refusals of the adapter to mysqlslap."""

from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from mydyno.campaign.spec import decode
from mydyno.host import Completed
from mydyno.loads import Target, mysqlslap
from mydyno.model import SpecError
from mydyno.testbed.bench_setup import Hosts
from mydyno.testbed.preflight import preflight

TARGET = Target(Path("/w"), Path("/d"), socket="/run/x.sock", password_file=Path("/w/load.cnf"),
                user="u", database="sbtest")  # fmt: skip
CELL = SimpleNamespace(needs_server=True, data_key="mysqlslap")


def cells(**keys):
    return mysqlslap.cells("slap", msgspec.convert(keys, mysqlslap.SlapParams))


def argv(target=TARGET, **keys):
    return cells(**keys)[0].run(target, 7, {"TZ": "UTC"}).argv


def test_each_thread_count_is_a_cell_of_its_own():
    found = cells(auto_generate=True, threads=[2, 50])
    assert [cell.name for cell in found] == ["slap/2", "slap/50"]
    assert {cell.response for cell in found} == {"qps"}
    assert all(cell.needs_server for cell in found)


def test_the_options_file_comes_first_and_the_password_never():
    words = argv(auto_generate=True)
    assert words[:3] == ("env", "TZ=UTC", "LC_ALL=C")
    after = words[words.index("mysqlslap") + 1 :]
    assert after[0] == "--defaults-file=/w/load.cnf"
    assert {"--protocol=socket", "--socket=/run/x.sock", "--create-schema=sbtest"} < set(after)
    assert not any("password" in word for word in words)


def test_over_tcp_it_is_told_the_port():
    there = Target(Path("/w"), Path("/d"), tcp_host="127.0.0.1", tcp_port=3307, user="u")
    words = argv(there, auto_generate=True)
    assert {"--protocol=tcp", "--host=127.0.0.1", "--port=3307", "--no-defaults",
            "--create-schema=mysqlslap"} < set(words)  # fmt: skip


@pytest.mark.parametrize("threads", [1, 64, 65536])
def test_it_goes_on_for_thousands_of_iterations_within_one_argument(threads):
    words = argv(auto_generate=True, threads=threads, queries=65536)
    (listed,) = (word for word in words if word.startswith("--concurrency="))
    counts = listed.removeprefix("--concurrency=").split(",")
    assert set(counts) == {str(threads)}
    assert len(counts) > 10_000
    assert len(listed) < 128 * 1024 - 1
    assert "--iterations=1" in words


def test_generated_sql_takes_the_tools_own_options():
    options = {"number-int-cols": 10, "auto_generate_sql_guid_primary": True}
    words = argv(auto_generate=True, load_type="write", queries=500, options=options)
    assert {
        *("--auto-generate-sql", "--auto-generate-sql-load-type=write", "--number_int_cols=10"),
        *("--auto_generate_sql_guid_primary=1", "--number-of-queries=500"),
    } < set(words)
    assert not any(word.startswith(("--query", "--create=", "--no-drop")) for word in words)


def test_given_sql_is_divided_at_semicolons_and_its_tables_made_anew():
    words = argv(query="SELECT 1; SELECT 2", create="CREATE TABLE a (i int)")
    assert {"--delimiter=;", "--query=SELECT 1; SELECT 2"} < set(words)
    assert "--create=CREATE TABLE a (i int)" in words
    assert "--no-drop" not in words
    assert "--delimiter=;" not in argv(query="SELECT 1", options={"delimiter": "$"})


def test_without_tables_of_its_own_it_leaves_the_schema():
    assert "--no-drop" in argv(query="SELECT 1")
    kept, remade = cells(query="SELECT 1")[0], cells(auto_generate=True)[0]
    assert kept.data_key != remade.data_key
    assert remade.data_key == cells(query="SELECT 1", create="CREATE TABLE a (i int)")[0].data_key


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({}, "either auto_generate = true or query"),
        ({"auto_generate": True, "query": "SELECT 1"}, "either auto_generate = true or query"),
        ({"auto_generate": True, "create": "CREATE"}, r"slap\.create: auto_generate makes its own"),
        ({"auto_generate": True, "load_type": "key"}, "guid_primary and .*autoincrement to true"),
        ({"auto_generate": True, "threads": 9, "queries": 8}, "queries = 8: must be from 9"),
        ({"auto_generate": True, "options": {"enginee": "x"}}, "enginee: .*did you mean 'engine'"),
        ({"auto_generate": True, "options": {"engine": "innodb,myisam"}}, "one engine"),
        ({"auto_generate": True, "options": {"password": "x"}}, "password: unknown option"),
        (
            {"query": "SELECT 1", "options": {"number_int_cols": 2}},
            "number_int_cols: unknown option",
        ),
        ({"query": "a.sql"}, "give the file's absolute path"),
        ({"query": "SELECT 1", "program": "slap"}, "must be mysqlslap or mariadb-slap, or"),
    ],
)
def test_what_makes_no_sense_is_refused(keys, said):
    with pytest.raises(SpecError, match=said):
        cells(**keys)


def test_only_the_rate_can_be_decided_on():
    with pytest.raises(SpecError, match="must be one of qps"):
        mysqlslap.cells("x", mysqlslap.SlapParams(auto_generate=True), "latency_p99_s")


@pytest.mark.parametrize(
    ("here", "said"),
    [((), "apt-get install mariadb-client"), (("mariadb-slap",), 'program = "mariadb-slap"')],
)
def test_a_missing_program_may_be_here_under_its_other_name(tmp_path, here, said):
    host = SimpleNamespace(
        name="db", run=lambda asked: Completed(asked, 0, b"/" * (asked.argv[1] in here), b"")
    )
    spec = decode('[workloads.w]\ntool = "mysqlslap"\n', "s.toml")
    campaign = SimpleNamespace(spec=spec, workloads={"w/1": CELL}, treatments={})
    with pytest.raises(SpecError, match=f"mysqlslap is not installed; .*{said}"):
        preflight(Hosts(host, host), campaign, tmp_path)
