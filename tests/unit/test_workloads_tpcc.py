"""The cells, commands and refusals of the TPC-C adapter, and what its lines are read as."""

import re

import msgspec
import pytest
from hdrh.histogram import HdrHistogram

from mydyno.loads import Target, Verifies, sysbench_tpcc
from mydyno.loads.sysbench import LUA, parse
from mydyno.model import SpecError, Window
from mydyno.stats.estimates import summarise


@pytest.fixture
def target(tmp_path):
    password_file = tmp_path / "client.cnf"
    password_file.write_text("[client]\nuser=u\npassword=secret\n")
    return Target(
        work=tmp_path,
        directory=tmp_path / "files",
        socket="/run/x.sock",
        password_file=password_file,
        database="sbtest",
    )


def tpcc(response=None, **keys):
    return sysbench_tpcc.cells("c", msgspec.convert(keys, sysbench_tpcc.TpccParams), response)


def test_each_thread_count_is_a_cell_of_its_own():
    assert [cell.info.name for cell in tpcc(threads=[16, 32])] == ["c/16", "c/32"]
    assert {cell.info.response for cell in tpcc()} == {"tps"}


@pytest.mark.parametrize(
    "response", ["new_orders", "errors", "latency_p99_s", "latency_p99_new_order_s"]
)
def test_the_response_may_be_any_metric_it_reports(response):
    assert tpcc(response)[0].info.response == response


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tables": 0}, "workloads.c.tables = 0: must be from 1"),
        ({"scale": 0}, "workloads.c.scale = 0: must be from 1"),
        ({"check": -1}, "workloads.c.check = -1"),
        ({"threads": [4, 4]}, "each count once"),
        ({"options": {"foreign-kyes": True}}, "did you mean 'foreign_keys'?"),
        ({"options": {"think_times": "yes"}}, "think_times = 'yes': must be true or false"),
        ({"options": {"history_key": 1}}, "history_key = 1: must be true or false"),
        ({"options": {"seed": 4}}, "mydyno sets itself"),
        ({"options": {"range_size": 4}}, "range_size: unknown option"),
        ({"options": {"mysql-password": "x"}}, "mysql_password: unknown option"),
        (
            {"options": {"think_times": True}, "threads": [4, 21], "scale": 2},
            "are 20, ten a warehouse",
        ),
    ],
)
def test_a_wrong_key_is_named(keys, words):
    with pytest.raises(SpecError, match=re.escape(words)):
        tpcc(**keys)


def test_unknown_keys_do_not_decode():
    with pytest.raises(msgspec.ValidationError, match="warehouses"):
        tpcc(warehouses=5)


def test_an_unknown_response_is_refused():
    with pytest.raises(SpecError, match=r"must be one of tps, .*latency_p99_new_order_s"):
        tpcc("tpmc")


def test_think_times_may_use_every_terminal():
    assert len(tpcc(options={"think_times": "on"}, threads=20, scale=2)) == 1


@pytest.mark.parametrize(
    "keys",
    [
        {"tables": 2},
        {"scale": 2},
        {"options": {"foreign-keys": True}},
        {"options": {"history_key": "on"}},
        {"options": {"repeated_text": True}},
        {"options": {"create_table_options": "ROW_FORMAT=COMPRESSED"}},
        {"options": {"mysql_storage_engine": "rocksdb"}},
    ],
)
def test_what_shapes_the_rows_shapes_the_data_key(keys):
    assert tpcc(**keys)[0].info.data_key != tpcc()[0].info.data_key


def test_what_does_not_shape_the_rows_leaves_the_data_key():
    keys = {"threads": 9, "check": 0, "options": {"mysql_ssl": True, "think_times": True}}
    assert tpcc(**keys)[0].info.data_key == tpcc()[0].info.data_key
    two_and_three = tpcc(tables=2, scale=3)[0].info.data_key
    assert two_and_three != tpcc(tables=3, scale=2)[0].info.data_key


def test_data_are_dropped_loaded_indexed_and_checked(target):
    (cell,) = tpcc(tables=2, scale=3, options={"foreign_keys": True, "mysql-ssl": "on"})
    actions = cell.prepare(target)
    assert [a.argv[-1] for a in actions] == ["cleanup", "create", "load", "finish", "check"]
    for action in actions:
        assert {"--tables=2", "--scale=3", "--foreign_keys=on", "--mysql_ssl=on"} <= {*action.argv}
    assert not any(word.startswith("--warehouses") for word in actions[-1].argv)  # all of them


def test_the_load_is_endless_seeded_and_reports_every_second(target):
    (cell,) = tpcc(threads=3, options={"think_times": True})
    argv = cell.run(target, 7, {"LD_PRELOAD": "/x.so"}).argv
    assert argv[:4] == ("env", "LD_PRELOAD=/x.so", "MYDYNO_SCRIPT=tpcc", "LC_ALL=C")
    assert set(argv) >= {
        "--threads=3", "--seed=7", "--think_times=on", "--time=0", "--events=0",
        "--report-interval=1", "run",
    }  # fmt: skip


def test_after_a_load_the_seed_draws_the_warehouses_that_are_checked(target):
    (cell,) = tpcc(tables=2, scale=5, check=3)
    assert isinstance(cell, Verifies)
    first = {cell.verify(target, seed)[0].argv for seed in range(100)}
    drawn = {word for argv in first for word in argv if word.startswith("--first-warehouse=")}
    assert drawn == {f"--first-warehouse={w}" for w in range(1, 11)}
    assert all("--warehouses=3" in argv and argv[-1] == "check" for argv in first)
    assert tpcc(check=0)[0].verify(target, 1) == ()


def test_no_argument_holds_the_user_or_the_password(target):
    (cell,) = tpcc()
    actions = [*cell.prepare(target), cell.run(target, 1, {}), *cell.verify(target, 1)]
    words = " ".join(word for action in actions for word in action.argv)
    assert "secret" not in words
    assert not any(action.stdin for action in actions)


SECOND = (
    '{{"event": "second", "t_s": {t_s}, "tps": 6, "reads": 1, "writes": 1, "other": 1, "errors": 0,'
    ' "reconnects": 0, "queue_length": 0, "p99_s": 0.5, "kinds": {{"new_order": [{slow},3,900,1],'
    ' "payment": [500,2], "stock_level": []}}}}\n'
)


def test_kinds_have_rates_and_histograms_and_sum_up_to_the_total():
    lines = [SECOND.format(t_s=t_s, slow=slow).encode() for t_s, slow in ((2, 10000), (3, 80000))]
    first, second = parse(lines)
    assert (first.values["new_orders"], second.values["new_orders"]) == (2.0, 4.0)
    assert (first.values["payments"], first.values["stock_levels"]) == (1.0, 0.0)
    assert HdrHistogram.decode(first.latency).get_total_count() == 6
    assert {k: bool(v) for k, v in first.kinds.items()} == {
        "new_order": True, "payment": True, "stock_level": False}  # fmt: skip
    assert first.values["latency_p99_payment_s"] == pytest.approx(0.0005, rel=0.01)
    assert "latency_p99_stock_level_s" not in first.values


def test_percentiles_of_a_kind_are_merged_over_the_window():
    """Three of eight take 80 ms: the 50th percentile of all is 10 ms, not a mean of two."""
    lines = [SECOND.format(t_s=t_s, slow=slow).encode() for t_s, slow in ((2, 10000), (3, 80000))]
    metrics = {m.name: m for m in summarise(list(parse(lines)), Window(0, 3), "tps")}
    assert metrics["latency_p50_new_order_s"].value == pytest.approx(0.010, rel=0.01)
    assert metrics["latency_p99_new_order_s"].value == pytest.approx(0.080, rel=0.01)
    assert metrics["latency_p99_payment_s"].value == pytest.approx(0.0005, rel=0.01)
    assert metrics["latency_p99_new_order_s"].unit == "s"
    assert metrics["new_orders"].unit == "/s"
    assert metrics["new_orders"].value == pytest.approx(8 / 3)


def test_a_terminal_that_thinks_sleeps_rather_than_polls():
    """A sample takes a thread in `poll` for one that waits for its reply."""
    text = (LUA / "tpcc" / "terminal.lua").read_text()
    assert "ffi.C.usleep(" in text
    assert "poll(" not in text
