"""Treatments that name the server they run on: which conditions hold, and whose data it is."""

import msgspec
import pytest

from mydyno.campaign.designs import plots
from mydyno.campaign.plan import plan
from mydyno.campaign.spec import StackTable, decode, program_of, programs
from mydyno.campaign.treatments import Environment
from mydyno.loads import tools
from mydyno.stack.protocol import split
from mydyno.stats import FIRST
from mydyno.testbed.stores import key_of, rebuilt

STACK = StackTable(servers={"new": "/opt/mysql-9.4", "same": "auto"})
ENVIRONMENT = Environment(
    2**30,
    2,
    "mariadb",
    (10, 11, 6),
    servers={"auto": ("mariadb", (10, 11, 6)), "/opt/mysql-9.4": ("mysql", (9, 4, 0))},
)
SPEC = """
[stack.servers]
new = "/opt/mysql-9.4"
{compared}
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
"""
LOG = """
[bundles.NEW]
"server.build" = "new"
[bundles.LOG]
when."mysql >= 8.0.30" = {{ "mysqld.innodb_redo_log_capacity" = "1G" }}
when."mariadb" = {{ "mysqld.innodb_log_file_size" = "1G" }}
[design]
rungs = {rungs}
"""
OLTP = tools()["sysbench-oltp"]
RW = OLTP.cells("rw", OLTP.params(script="oltp_read_write"), None)[0]
FIO = tools()["fio"]
FILES = FIO.cells("rr", FIO.params(options={"rw": "randread", "size": "1M"}), None)[0]


def planned(compared):
    text = SPEC.format(compared=compared)
    return plan(decode(text, "s.toml"), text, "s.toml", ENVIRONMENT)


@pytest.mark.parametrize(
    ("named", "program"),
    [(None, "auto"), ("new", "/opt/mysql-9.4"), ("same", "auto"), ("/opt/x", "/opt/x")],
)
def test_a_name_stands_for_its_basedir(named, program):
    settings = {} if named is None else {"db/server.build": named}
    assert program_of(settings, STACK) == program


@pytest.mark.parametrize("rungs", ['["STOCK", "NEW+LOG", "LOG"]', '["STOCK", "LOG+NEW", "LOG"]'])
def test_a_condition_is_asked_of_the_server_of_its_rung(rungs):
    found = planned(LOG.format(rungs=rungs)).treatments
    both = next(settings for name, settings in found.items() if "+" in name)
    assert both["db/mysqld.innodb_redo_log_capacity"] == "1G"
    assert "db/mysqld.innodb_log_file_size" not in both
    assert found["LOG"] == {"db/mysqld.innodb_log_file_size": "1G"}


def test_a_treatments_own_conditions_are_asked_of_its_server():
    condition = '[treatments.NEW.when."mysql >= 9"]\n"mysqld.sync_binlog" = 0'
    found = planned(f'[treatments.NEW]\n"server.build" = "new"\n{condition}').treatments
    assert found["NEW"] == {"db/server.build": "new", "db/mysqld.sync_binlog": "0"}


def test_every_program_is_found_once_its_own_first():
    spec = decode(SPEC.format(compared='[factors]\n"server.build" = ["new", "auto"]'), "s.toml")
    assert programs(spec, "s.toml", "") == ("auto", "/opt/mysql-9.4")


def test_each_server_has_data_of_its_own_and_files_have_none():
    new = {"db/server.build": "new"}
    stock, other = key_of(split({}), RW, STACK), key_of(split(new), RW, STACK)
    assert (stock.server, other.server) == ("auto", "/opt/mysql-9.4")
    assert stock.name != other.name
    assert stock.content != other.content
    assert key_of(split({"db/server.build": "same"}), RW, STACK) == stock
    assert key_of(split(new), FILES, STACK) == key_of(split({}), FILES, STACK)
    assert rebuilt(stock, stock) == []
    (change,) = rebuilt(other, stock)
    assert (change.key, change.before, change.after) == ("db/server.build", "auto", other.server)


def test_where_one_data_set_is_there_at_a_time_a_servers_trials_stay_together():
    treatments = {"A": {}, "B": {"db/server.build": "new"}, "C": {"db/mysqld.sync_binlog": "0"}}
    devices = plots(treatments, one_device=True)
    assert devices["A"] == devices["C"] != devices["B"]
    assert len(set(plots(treatments, one_device=False).values())) == 1


BUNDLES = {"A": "eq_range_index_dive_limit", "B": "table_open_cache", "C": "back_log"}
COMMON = """
[common]
"mysqld.max_connections" = 300
"mysqld.sync_binlog" = 1
when."mysql" = { "mysqld.innodb_flush_method" = "O_DIRECT" }
when."mariadb" = { "mysqld.thread_cache_size" = 64 }
[factors]
"mysqld.sync_binlog" = [0, 1]
"server.build" = ["new", "same"]
[stack.servers]
new = "/opt/mysql-9.4"
same = "auto"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
"""


def test_every_treatment_has_what_is_common_and_its_own_value_before_that():
    found = plan(decode(COMMON, "a.toml"), COMMON, "a.toml", ENVIRONMENT).treatments
    names = [name for name in found if name != "STOCK"]
    assert names == [f"sync_binlog={n},build={b}" for n in (0, 1) for b in ("new", "same")]
    new, same = (found[f"sync_binlog=0,build={build}"] for build in ("new", "same"))
    own = {"db/mysqld.max_connections": "300", "db/mysqld.sync_binlog": "0"}
    assert dict(new) == own | {
        "db/mysqld.innodb_flush_method": "O_DIRECT",
        "db/server.build": "new",
    }
    assert found["STOCK"]["db/mysqld.max_connections"] == "300", "no treatment of the spec has it"
    assert dict(same) == own | {"db/mysqld.thread_cache_size": "64", "db/server.build": "same"}


def test_levels_are_those_of_treatments_with_all_factors_and_the_first_is_resolved():
    found = plan(decode(COMMON, "a.toml"), COMMON, "a.toml", ENVIRONMENT)
    assert "STOCK" not in found.cells
    assert {len(levels) for levels in found.cells.values()} == {2}
    text = COMMON.replace('"mysqld.sync_binlog" = [0, 1]', '"mysqld.sync_binlog" = [false, true]')
    again = plan(decode(text, "a.toml"), text, "a.toml", ENVIRONMENT).cells
    assert (
        again[FIRST]["mysqld.sync_binlog"]
        == again["sync_binlog=False,build=new"]["mysqld.sync_binlog"]
    )


def test_a_design_knows_what_weakens_durability():
    text = COMMON.partition("[factors]")[0] + COMMON.partition("new = ")[2].partition("\n")[2]
    text = text.replace('same = "auto"\n', "")
    text += '[treatments.SAME]\n"mysqld.sort_buffer_size" = 7\n'
    text += '[treatments.LESS]\n"mysqld.sync_binlog" = 0\n'
    assert plan(decode(text, "a.toml"), text, "a.toml", ENVIRONMENT).rule.durability == {
        "LESS": "weaker"
    }


def test_what_a_ladder_adds_has_what_is_common_too():
    text = COMMON.partition("[factors]")[0] + COMMON.partition("new = ")[2].partition("\n")[2]
    text = text.replace('same = "auto"\n', "") + '[design]\nrungs = ["STOCK", "A+B+C"]\n'
    text += "".join(f'[bundles.{n}]\n"mysqld.{v}" = 7\n' for n, v in BUNDLES.items())
    found = plan(decode(text, "a.toml"), text, "a.toml", ENVIRONMENT).treatments
    assert {"A+B+C", "B+C", "A+C", "A+B"} <= found.keys()
    every = {settings.get("db/mysqld.max_connections") for settings in found.values()}
    assert every == {"300"}


def test_a_treatment_with_what_is_common_alone_is_the_baseline():
    text = COMMON.partition("[factors]")[0] + COMMON.partition("[stack.servers]")[2]
    text = text.replace('new = "/opt/mysql-9.4"\nsame = "auto"\n', "")
    text += '[treatments.MORE]\n"mysqld.sync_binlog" = 0\n[treatments.BARE]\n'
    found = plan(decode(text, "a.toml"), text, "a.toml", ENVIRONMENT)
    assert found.rule.baseline == "BARE"
    assert found.treatments["BARE"]["db/mysqld.sync_binlog"] == "1"


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("bundles.KERN.kernel.thp", ("bundles", "KERN", "kernel.thp")),
        ("common.mysqld.sync_binlog", ("common", "mysqld.sync_binlog")),
        (
            'bundles.LOG.when."mysql >= 8.0.30".mysqld.innodb_redo_log_capacity',
            ("bundles", "LOG", "when", "mysql >= 8.0.30", "mysqld.innodb_redo_log_capacity"),
        ),
    ],
)
def test_a_setting_that_is_new_in_a_table_is_no_table(path, keys):
    """A scale of a recipe gave a bundle settings that it did not have, which were refused."""
    text = LOG.format(rungs='["NEW", "LOG"]').replace(
        "[bundles.NEW]", "[bundles.KERN]\n[bundles.NEW]"
    )
    spec = decode(text, "a.toml", {path: '"1"'})
    table = msgspec.to_builtins(spec)
    for key in keys:
        table = table[key]
    assert table == "1"
