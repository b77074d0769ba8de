"""What is known of server variables: spelling, ranges, durability, shape; and plans of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.model import Cost, Durability
from mydyno.stack import mysqld
from mydyno.stack.known import normalise, same, variables
from mydyno.stack.known.variables import Variable, refusals, rejected
from mydyno.stack.mysqld import durability
from mydyno.testbed.stores import data_shape

STOCK = {
    "innodb_io_capacity": "200",
    "innodb_log_buffer_size": "16777216",
    "innodb_flush_method": "O_DIRECT",
    "log_bin": "0",
    "sql_mode": "ANSI_QUOTES,STRICT_TRANS_TABLES",
    "version": "10.11.19-MariaDB",
}
KNOWN = {
    "innodb_io_capacity": Variable(dynamic=True, low=100, high=2**32),
    "innodb_log_buffer_size": Variable(low=2**18, high=2**31),
    "innodb_flush_method": Variable(choices=("fsync", "O_DIRECT")),
    "log_bin": Variable(),
    "sql_mode": Variable(dynamic=True),
}
WANTS = st.fixed_dictionaries(
    {},
    optional={
        "innodb_io_capacity": st.integers(100, 2**32).map(str) | st.just("1K"),
        "innodb_log_buffer_size": st.sampled_from(["1M", "16M", "16777216", "64m", "1G"]),
        "innodb_flush_method": st.sampled_from(["fsync", "O_DIRECT"]),
        "log_bin": st.sampled_from(["ON", "off", "1", "0", "/data/binlog"]),
        "sql_mode": st.sampled_from(["", "STRICT_TRANS_TABLES,ANSI_QUOTES", "ANSI_QUOTES"]),
    },
)


def layer(flavour="mariadb", version=(10, 11, 19)):
    return mysqld.Mysqld(("client",), Path("/h/zz-mydyno.cnf"), flavour, version, KNOWN, STOCK)


def applied(now, changes):
    """Return what a server shows after a restart with the file that the changes write."""
    if not changes:
        return now
    written = mysqld.parse(changes[0].action.stdin)
    file = {key: value for key, value in written.items() if key != "owned"}
    if file.get("log_bin", "0") != "0":
        file["log_bin"] = "1"
    return {**STOCK, **written, **file}


@given(WANTS)
def test_a_wanted_setting_that_is_in_force_is_no_change(want):
    seen = {**STOCK, **{key: normalise(value) for key, value in want.items()}}
    if seen["log_bin"] not in ("0", "1"):
        seen["log_bin"] = "1"
    assert layer().plan(seen, want) == []


@given(WANTS, WANTS)
def test_a_plan_once_applied_leaves_nothing_to_plan(first, second):
    now = applied(STOCK, layer().plan(STOCK, first))
    assert layer().plan(now, first) == []
    then = applied(now, layer().plan(now, second))
    assert layer().plan(then, second) == []
    back = applied(then, layer().plan(then, {}))
    assert layer().plan(back, {}) == []
    assert all(same(key, back[key], STOCK[key]) for key in STOCK)


@given(WANTS)
def test_all_changes_share_one_action(want):
    assert len({change.action for change in layer().plan(STOCK, want)}) <= 1


@given(st.text(), st.text())
def test_no_text_breaks_the_comparison(one, other):
    assert normalise(normalise(one)) == normalise(one)
    assert same("sql_mode", one, other) == same("sql_mode", other, one)


@given(st.binary())
def test_any_output_of_a_client_is_read(raw):
    assert all(isinstance(part, str) for pair in mysqld.parse(raw).items() for part in pair)


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("1G", "1073741824"),
        ("128m", "134217728"),
        ("ON", "1"),
        ("off", "0"),
        ("TRUE", "1"),
        ("90.000000", "90"),
        ("0.500000", "0.5"),
        (" O_DIRECT ", "O_DIRECT"),
        ("ibdata1:12M:autoextend", "ibdata1:12M:autoextend"),
    ],
)
def test_values_have_one_spelling(written, plain):
    assert normalise(written) == plain


@pytest.mark.parametrize(
    ("key", "before", "after", "weaker"),
    [
        ("innodb_flush_log_at_trx_commit", "1", "2", True),
        ("innodb_flush_log_at_trx_commit", "1", "0", True),
        ("innodb_flush_log_at_trx_commit", "2", "0", True),
        ("innodb_flush_log_at_trx_commit", "1", "3", False),
        ("innodb_flush_log_at_trx_commit", "3", "1", False),
        ("innodb_flush_log_at_trx_commit", "0", "2", False),
        ("sync_binlog", "1", "0", True),
        ("sync_binlog", "1", "100", True),
        ("sync_binlog", "100", "0", True),
        ("sync_binlog", "100", "1000", True),
        ("sync_binlog", "0", "1", False),
        ("sync_binlog", "0", "1000", False),
        ("innodb_doublewrite", "ON", "OFF", True),
        ("innodb_doublewrite", "1", "DETECT_ONLY", True),
        ("innodb_doublewrite", "ON", "fast", True),
        ("innodb_doublewrite", "OFF", "ON", False),
        ("innodb_doublewrite", "ON", "DETECT_AND_RECOVER", False),
        ("innodb_flush_method", "fsync", "O_DIRECT", False),
        ("innodb_flush_method", "O_DIRECT", "nosync", True),
        ("innodb_flush_method", "O_DIRECT", "littlesync", True),
        ("innodb_flush_method", "O_DIRECT", "O_DIRECT_NO_FSYNC", True),
        ("innodb_checksum_algorithm", "crc32", "none", True),
        ("innodb_checksum_algorithm", "none", "crc32", False),
        ("innodb_buffer_pool_size", "134217728", "1", False),
    ],
)
def test_durability_is_weaker_only_than_the_baseline(key, before, after, weaker):
    assert durability(key, before, after) is (Durability.WEAKER if weaker else Durability.SAME)


def test_only_shaping_settings_ask_for_data_of_their_own():
    wanted = {"innodb_page_size": "4K", "innodb_io_capacity": "1", "lower_case_table_names": "1"}
    assert data_shape(wanted) == {"innodb_page_size": "4096", "lower_case_table_names": "1"}


def test_mariadb_lists_ranges_words_and_what_is_read_only():
    raw = (
        b"INNODB_IO_CAPACITY\t100\t4294967295\t0\tNULL\tNO\tREQUIRED\n"
        b"INNODB_DOUBLEWRITE\tNULL\tNULL\tNULL\tOFF,ON,fast\tYES\tNONE\n"
        b"VERSION\tNULL\tNULL\tNULL\tNULL\tYES\tNULL\n"
        b"LOG_BIN\tNULL\tNULL\tNULL\tOFF,ON\tYES\tNULL\n"
        b"TX_ISOLATION\tNULL\tNULL\tNULL\tREAD-COMMITTED,SERIALIZABLE\tNO\tNULL\n"
    )
    found = variables.parse_system_variables(raw)
    assert found["innodb_io_capacity"] == Variable(dynamic=True, low=100, high=4294967295)
    assert found["innodb_doublewrite"] == Variable(choices=("OFF", "ON", "fast"))
    assert not found["version"].settable
    assert found["log_bin"].settable
    assert "tx_isolation" not in found
    assert not found["transaction_isolation"].dynamic


def test_mysql_lists_ranges_and_refuses_what_is_read_only():
    raw = (
        b"range\tsync_binlog\t0\t4294967295\n"
        b"range\tdatadir\t0\t0\n"
        b"Error\t1238\tVariable 'datadir' is a read only variable\n"
        b"Error\t1193\tUnknown system variable 'transaction_isolation'\n"
    )
    names = ["datadir", "gtid_purged", "sync_binlog", "transaction_isolation"]
    found = variables.parse_tried(raw, names, ["datadir", "sync_binlog", "transaction_isolation"])
    assert found["sync_binlog"] == Variable(dynamic=True, low=0, high=4294967295)
    assert found["datadir"] == Variable()
    assert not found["gtid_purged"].dynamic
    assert not found["transaction_isolation"].dynamic


def test_nothing_that_acts_is_assigned_its_own_value():
    names = {"gtid_purged": "", "innodb_buffer_pool_dump_now": "0", "sync_binlog": "1"}
    text = variables.describe(("client",), "mysql", (5, 6, 14), names).action.stdin
    assert text == b"SET GLOBAL sync_binlog = @@GLOBAL.sync_binlog; SHOW ERRORS;\n"


@pytest.mark.parametrize(
    ("flavour", "key", "word"),
    [
        ("mysql", "innodb_log_file_size", "innodb_redo_log_capacity"),
        ("mysql", "query_cache_type", "removed in 8.0"),
        ("percona", "expire_logs_days", "binlog_expire_logs_seconds"),
        ("mariadb", "innodb_redo_log_capacity", "innodb_log_file_size"),
        ("mariadb", "innodb_buffer_pool_instances", "leave it out"),
        ("mysql", "tx_isolation", "transaction_isolation"),
        ("mariadb", "innodb_support_xa", "leave it out"),
        ("mysql", "skip_log_bin", "log_bin = OFF"),
    ],
)
def test_a_name_the_server_does_not_know_is_answered_with_its_replacement(flavour, key, word):
    (sentence,) = refusals(flavour, KNOWN, {key: "1"})
    assert f"mysqld.{key}" in sentence
    assert word in sentence


def test_every_replacement_names_a_flavour_and_has_a_text():
    table = variables._table()  # noqa: SLF001 - the table's own shape is what is held here
    for name, texts in table.items():
        assert set(texts) <= {"any", "mysql", "mariadb"}, name
        assert all(texts.values()), name


def test_a_bound_that_the_server_moved_along_has_its_first_value_again():
    """Servers raise innodb_io_capacity_max with innodb_io_capacity, and leave it there."""
    stock = {**STOCK, "innodb_io_capacity_max": "2000"}
    known = {**KNOWN, "innodb_io_capacity_max": Variable(dynamic=True)}
    made = mysqld.Mysqld(("c",), Path("/h/z"), "mariadb", (10, 11, 19), known, stock)
    raised = {"innodb_io_capacity": "4000", "innodb_io_capacity_max": "8000"}
    now = {**stock, **raised, "owned": "innodb_io_capacity"}

    def aims(want):
        return {change.key: change.after for change in made.plan(now, want)}

    assert aims({}) == {"innodb_io_capacity": "200", "innodb_io_capacity_max": "2000"}
    assert aims({"innodb_io_capacity": "1K"})["innodb_io_capacity_max"] == "2000"
    assert aims({"innodb_io_capacity": "4000"}) == {}, "a start would raise it, too"
    assert aims({"innodb_io_capacity": "100", "innodb_io_capacity_max": "8000"}) == {
        "innodb_io_capacity": "100"
    }


def test_a_pool_below_its_chunk_waits_for_a_restart():
    stock = {**STOCK, "innodb_buffer_pool_size": "134217728"}
    known = {**KNOWN, "innodb_buffer_pool_size": Variable(dynamic=True, low=1, high=2**40)}
    mysql8 = {**stock, "innodb_buffer_pool_chunk_size": "134217728"}
    made = mysqld.Mysqld(("c",), Path("/h/z"), "mysql", (8, 0, 33), known, mysql8)
    (smaller,) = made.plan(mysql8, {"innodb_buffer_pool_size": "64M"})
    (larger,) = made.plan(mysql8, {"innodb_buffer_pool_size": "256M"})
    assert (smaller.cost, larger.cost) == (Cost.RESTART, Cost.ONLINE)


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("[Warning] option 'x_y': unsigned value 10 adjusted to 1024", "takes is 1024"),
        ("[Warning] [MY-000081] [Server] option 'x-y': value -4 adjusted to 0.", "takes is 0"),
        ("option 'x-y': value 200 adjusted to 99.999", "takes is 99.999"),
        ("Unknown suffix 'Q' used for variable 'x-y' (value '512Q')", "variable's type"),
        ("[ERROR] mysqld: Error while setting value 'FOO' to 'x_y'", "variable's type"),
        ("mysqld: ignoring option '--x-y' due to invalid value 'maybe'", "variable's type"),
        ("[ERROR] Option --x-y or --admin-x-y is set to an invalid value v.", "variable's type"),
    ],
)
def test_a_program_that_rejects_or_changes_a_value_is_understood(line, ending):
    found = rejected(f"Changed limits: x_y\n{line}\n".encode(), {"x_y": "10", "other": "1"})
    assert list(found) == ["x_y"]
    assert found["x_y"].startswith("mysqld.x_y = 10: ")
    assert found["x_y"].endswith(ending)


@given(st.binary())
def test_whatever_a_program_prints_nothing_else_is_rejected(raw):
    assert rejected(raw, {}) == {}
