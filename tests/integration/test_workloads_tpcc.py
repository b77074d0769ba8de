"""TPC-C on real servers: the data, the mix, the counts, and every consistency condition."""

import json
import re
import subprocess
import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec
import pytest

from integration.load_steps import HOST, live, prepare
from integration.server_steps import MARIADB, SERVERS, SMALL, applied
from mydyno.loads import sysbench_tpcc
from mydyno.loads.sysbench import KIND_RATES, parse_session
from mydyno.model import Action, HostError
from mydyno.testbed.server_runner import target_of

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]

LUA = Path(sysbench_tpcc.__file__).parent / "lua"
QUICK = SMALL | {"innodb_flush_log_at_trx_commit": "2", "innodb_lock_wait_timeout": "1"}
MIX = {"new_order": 0.45, "payment": 0.43, "order_status": 0.04, "delivery": 0.04,
       "stock_level": 0.04}  # fmt: skip
ROWS = {"warehouse": 1, "district": 10, "item": 100_000, "stock": 100_000, "customer": 30_000,
        "history": 30_000, "orders": 30_000, "new_order": 9_000}  # fmt: skip


def tpcc(**keys):
    return sysbench_tpcc.cells("tpcc", msgspec.convert(keys, sysbench_tpcc.TpccParams))[0]


@pytest.fixture(scope="module")
def load_of(bench, tmp_path_factory):
    """Return a running server with one warehouse and what a load on it needs, by its name."""
    with ExitStack() as ends:

        @cache
        def taken(name):
            work = tmp_path_factory.mktemp("load")
            instance = ends.enter_context(applied(bench.take(name), mysqld=QUICK))
            target = target_of(instance, work, work)
            prepare(tpcc(), target)
            return instance, target

        yield taken


@pytest.fixture(params=SERVERS)
def loaded(request, load_of):
    return load_of(request.param)


@pytest.fixture
def mariadb(load_of):
    return load_of(MARIADB)


def one(instance, what, table, database="sbtest"):
    return instance.query(" ".join(("SELECT", what, "FROM", f"{database}.{table}")))[0][0]


def count(instance, table):
    return int(one(instance, "COUNT(*)", f"{table}1"))


def verify(cell, target, *more):
    """Raise `HostError` with what is violated; `more` options go before the command."""
    for action in cell.verify(target, 1):
        HOST.run(Action((*action.argv[:-1], *more, action.argv[-1])), timeout_s=600).check()


def test_load_run_and_check_on_every_server(loaded):
    instance, target = loaded
    cell = tpcc(threads=2)
    before = {table: count(instance, table) for table in ("orders", "history")}
    seconds = [interval for _, interval in live(cell, target, 6)]
    verify(cell, target)
    assert [i.t_s for i in seconds] == sorted(i.t_s for i in seconds)
    spans = [end.t_s - start for end, start in zip(seconds, [0, *(i.t_s for i in seconds)],
                                                   strict=False)]  # fmt: skip
    done = {
        kind: round(sum(i.values[rate] * s for i, s in zip(seconds, spans, strict=True)))
        for kind, rate in KIND_RATES.items()
    }
    total = sum(done.values())
    assert total > 20
    for kind, share in MIX.items():  # a deck of a hundred for each thread
        assert abs(done[kind] - share * total) <= 4 * (share * min(total, 200)) ** 0.5 + 2, kind
    assert sum(i.values["tps"] * s for i, s in zip(seconds, spans, strict=True)) == pytest.approx(
        total, abs=4)  # fmt: skip
    # the last moments of a load that was stopped are counted by nobody
    more = {table: count(instance, table) - was for table, was in before.items()}
    assert done["payment"] <= more["history"] <= done["payment"] * 1.5 + 20
    assert done["new_order"] * 0.9 - 5 <= more["orders"] <= done["new_order"] * 1.5 + 20


def test_the_population_is_that_of_the_specification(loaded):
    instance, _ = loaded
    fixed = {table: count(instance, table) for table in ("warehouse", "district", "item", "stock",
                                                         "customer")}  # fmt: skip
    assert fixed == {table: ROWS[table] for table in fixed}
    first = instance.query("""
        SELECT COUNT(*), SUM(o_ol_cnt), COUNT(DISTINCT o_d_id, o_c_id), SUM(o_id <= 2100)
        FROM sbtest.orders1 WHERE o_id <= 3000""")[0]  # fmt: skip
    assert (int(first[0]), int(first[2]), int(first[3])) == (30_000, 30_000, 21_000)
    assert int(first[1]) == pytest.approx(300_000, rel=0.005)
    (names,) = instance.query("SELECT COUNT(DISTINCT c_last), COUNT(DISTINCT c_id), "
                              "AVG(c_credit = 'BC') FROM sbtest.customer1")  # fmt: skip
    assert (int(names[0]), int(names[1])) == (1000, 3000)
    assert float(names[2]) == pytest.approx(0.1, abs=0.01)
    (shares,) = instance.query("SELECT AVG(s_data LIKE '%ORIGINAL%'), MIN(LENGTH(s_data)), "
                               "MAX(LENGTH(s_data)) FROM sbtest.stock1")  # fmt: skip
    assert float(shares[0]) == pytest.approx(0.1, abs=0.01)
    assert shares[1:] == ("26", "50")


# Of a load by one thread: what is drawn depends on the seed alone.
SUMS = {
    "item": ("i_id, i_im_id, i_name, i_price, i_data", "214530067025667"),
    "stock": ("s_i_id, s_w_id, s_dist_01, s_dist_10, s_data", "215318107802807"),
    "customer": ("c_id, c_d_id, c_first, c_last, c_phone, c_credit, c_discount", "64629112160483"),
}


def test_every_server_and_every_number_of_threads_loads_the_same_rows(loaded):
    instance, _ = loaded
    sums = {
        table: one(instance, f"SUM(CRC32(CONCAT_WS(',', {columns})))", f"{table}1")
        for table, (columns, _) in SUMS.items()
    }
    assert sums == {table: known for table, (_, known) in SUMS.items()}


# What breaks one condition and none before it: table, change, the change back, rows, words.
BROKEN = {
    1: ("district1", "d_ytd = d_ytd + 1", "d_ytd = d_ytd - 1", "d_id = 3", "w_ytd = "),
    2: ("district1", "d_next_o_id = d_next_o_id + 1", "d_next_o_id = d_next_o_id - 1",
        "d_id = 3", "district = 3"),
    3: ("new_order1", "no_d_id = 11", "no_d_id = 5", "no_o_id = 2999 AND no_d_id IN (5, 11)",
        "district = 5"),
    4: ("order_line1", "ol_d_id = 11", "ol_d_id = 5",
        "ol_o_id = 7 AND ol_number = 2 AND ol_d_id IN (5, 11)", "district = 5"),
    5: ("orders1", "o_carrier_id = NULL", "o_carrier_id = 4", "o_id = 9 AND o_d_id = 2",
        "order = 9, o_carrier_id = NULL, no_o_id = NULL"),
    6: ("orders1", "o_ol_cnt = o_ol_cnt + IF(o_id = 8, 1, -1)",
        "o_ol_cnt = o_ol_cnt - IF(o_id = 8, 1, -1)", "o_id IN (8, 9) AND o_d_id = 6",
        "order = 8"),
    7: ("order_line1", "ol_delivery_d = NULL", "ol_delivery_d = NOW()",
        "ol_d_id = 4 AND ol_o_id = 7 AND ol_number = 1", "line = 1"),
    8: ("history1", "h_amount = 11", "h_amount = 10",
        "h_c_id = 77 AND h_c_d_id = 2 AND h_amount IN (10, 11)", "w_ytd = "),
    9: ("history1", "h_d_id = 3", "h_d_id = 2",
        "h_c_id = 78 AND h_c_d_id = 2 AND h_amount = 10", "district = 2"),
    10: ("customer1", "c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1",
         "c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1",
         "c_id = 5 AND c_d_id = 1", "customer = 5"),
    11: ("customer1", "c_delivery_cnt = c_delivery_cnt + 1", "c_delivery_cnt = c_delivery_cnt - 1",
         "c_id = 5 AND c_d_id = 7", "district = 7"),
    12: ("customer1", "c_ytd_payment = c_ytd_payment + 1", "c_ytd_payment = c_ytd_payment - 1",
         "c_id = 5 AND c_d_id = 9", "customer = 5"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "condition"),  # each on one server, and one on each of the others
    [*((MARIADB, n) for n in BROKEN), *zip(SERVERS[1:], (1, 5, 9), strict=True)],
)
def test_a_violated_condition_is_named(load_of, name, condition):
    instance, target = load_of(name)
    table, there, back, rows, words = BROKEN[condition]

    def change(how):
        instance.query(" ".join(("UPDATE", f"sbtest.{table}", "SET", how, "WHERE", rows)))

    change(there)
    try:
        with pytest.raises(HostError) as caught:
            verify(tpcc(), target, "--threads=1")  # several would find what comes later too
    finally:
        change(back)
    assert f"(clause 3.3.2.{condition}) is violated in set 1: warehouse = 1" in str(caught.value)
    assert words in str(caught.value)


def test_a_lock_that_is_held_is_counted_and_the_transaction_tried_again(mariadb):
    instance, target = mariadb
    cell = tpcc(threads=2)
    held = "USE sbtest; SET innodb_lock_wait_timeout = 50; BEGIN; "
    held += "SELECT * FROM warehouse1 FOR UPDATE; SELECT SLEEP(4); ROLLBACK"
    holder = threading.Thread(target=instance.query, args=(held,))
    found, started = [], time.monotonic()
    running = HOST.start(cell.run(target, 3, {}))
    try:
        for interval in cell.parse(running.lines()):
            found.append(interval)
            if len(found) == 2:
                holder.start()
            again = found[-1].values["tps"] > 0 and any(i.values["errors"] for i in found)
            if again or time.monotonic() - started > 60:
                break
    finally:
        running.stop()
        holder.join()
    assert sum(i.values["errors"] for i in found) > 0
    assert found[-1].values["tps"] > 0
    assert max(i.values.get("latency_max_payment_s", 0) for i in found) > 1
    verify(cell, target)


def test_think_times_hold_the_terminals_back(mariadb):
    _, target = mariadb
    cell = tpcc(threads=10, options={"think_times": True})
    seconds = [interval for _, interval in live(cell, target, 8)]
    # ten terminals give at most some 1.3 transactions a second, and keying takes two at least
    assert sum(i.values["tps"] for i in seconds) < 20
    assert seconds[0].values["tps"] == 0
    assert seconds[0].latency == ""


def test_the_session_is_reported(loaded):
    _, target = loaded
    running = HOST.start(tpcc().run(target, 1, {}))
    try:
        line = next(line for line in running.lines() if line.startswith(b"{"))
    finally:
        running.stop()
    assert parse_session([line])["sysbench"].startswith("sysbench 1.")


def test_independent_sets_and_every_option_of_the_tables(mariadb):
    instance, target = mariadb
    table_options = {"foreign_keys": True, "history_key": "on",
                     "create_table_options": "ROW_FORMAT=COMPACT"}  # fmt: skip
    cell = tpcc(threads=4, tables=2, options=table_options, check=5)
    instance.query("CREATE DATABASE sets; GRANT ALL ON sets.* TO mydyno@'%'")
    sets = replace(target, database="sets")
    prepare(cell, sets)
    live(cell, sets, 5)
    verify(cell, sets)
    keys = instance.query("SELECT COUNT(*) FROM information_schema.referential_constraints "
                          "WHERE constraint_schema = 'sets'")[0][0]  # fmt: skip
    formats = instance.query("SELECT DISTINCT row_format FROM information_schema.tables "
                             "WHERE table_schema = 'sets'")  # fmt: skip
    ordered = [one(instance, "SUM(d_next_o_id - 3001)", f"district{s}", "sets") for s in (1, 2)]
    assert int(keys) == 20
    assert formats == [("Compact",)]
    assert all(int(more) > 0 for more in ordered)


DRAW = """
package.path = "%s/?.lua;" .. package.path
local random = require("tpcc.random")
local transactions = require("tpcc.transactions")
math.randomseed(7)
local function many(draw, n)
   local found = {}
   for i = 1, n do found[i] = draw() end
   return '["' .. table.concat(found, '","') .. '"]'
end
print('{"names": ' .. many(function() return random.last_name(random.name_number()) end, 20000)
   .. ', "customers": ' .. many(random.customer, 20000)
   .. ', "items": ' .. many(random.item, 20000)
   .. ', "texts": ' .. many(function() return random.text(8, 16) end, 2000)
   .. ', "digits": ' .. many(function() return random.digits(16) end, 2000)
   .. ', "name_371": ["' .. random.last_name(371) .. '"]}')
"""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    script = tmp_path_factory.mktemp("lua") / "draw.lua"
    script.write_text(DRAW % LUA)
    output = subprocess.run(("sysbench", script), check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])  # sysbench names itself first


def test_random_values_are_as_defined(drawn):
    assert drawn["name_371"] == ["PRICALLYOUGHT"]  # the example of clause 4.3.2.3
    assert len({len(text) for text in drawn["texts"]}) == 9
    assert all(re.fullmatch("[A-Za-z0-9]{8,16}", text) for text in drawn["texts"])
    assert all(re.fullmatch("[0-9]{16}", text) for text in drawn["digits"])
    signs = "".join(drawn["texts"])
    assert {sign: signs.count(sign) / len(signs) for sign in set(signs)} == pytest.approx(
        dict.fromkeys(set(signs), 1 / 62), rel=0.25)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "last", "hot"), [("customers", 3000, 1024), ("items", 100_000, 8192)]
)
def test_ids_are_drawn_unevenly_over_the_entire_range(drawn, name, last, hot):
    """An OR of two numbers sets many bits: its values crowd (clause 2.1.6)."""
    numbers = [int(n) for n in drawn[name]]
    assert 1 <= min(numbers) <= last // 20
    assert last - last // 20 <= max(numbers) <= last
    low = sorted((n - 1) % hot for n in numbers)
    assert low[len(low) // 2] > 0.6 * hot  # an even draw has its median in the middle
