"""The account of a closed loop: its lines add up to all connections, and its doubts are named."""

import pytest

from mydyno.diagnose.account import (
    CLIENT,
    CPU,
    LATCH,
    LOAD_CPU,
    LOAD_RUN_QUEUE,
    LOG,
    NETWORK,
    POOL,
    READ,
    ROW_LOCK,
    RUN_QUEUE,
    TABLE_LOCK,
    THINK,
    UNKNOWN,
    AccountLine,
    account,
    connections_idle,
    expected,
    following,
)
from mydyno.diagnose.suspects import IDLE, LoadEvidence, suspects
from mydyno.model import Figures

# As sampled on MariaDB 10.11 under sysbench with 16 threads, 2 cores, a disk capped at 3,000 I/Os.
DISK = {
    "state.threads:mysqld/connection": 16.0,
    "state.cpu:mysqld/connection": 0.2782,
    "state.run_delay:mysqld/connection": 0.1293,
    "state.seconds:mysqld/connection/futex": 1.4013,
    "state.seconds:mysqld/connection/poll": 0.0716,
    "state.seconds:mysqld/connection/read.data": 13.0996,
    "state.seconds:mysqld/connection/running": 0.6509,
    "state.seconds:mysqld/connection/write.redo": 0.7066,
    "state.threads:mysqld/mariadbd": 15.0,
    "state.seconds:mysqld/mariadbd/futex": 9.4495,
    "state.threads:load/sysbench": 18.0,
    "state.cpu:load/sysbench": 0.0696,
    "state.run_delay:load/sysbench": 0.0355,
    "state.seconds:load/sysbench/futex": 0.9969,
    "state.seconds:load/sysbench/poll": 15.7825,
    "state.seconds:load/sysbench/sleep": 0.9884,
    "status.innodb_row_lock_time": 0.0,
}

NEAR = {k: v for k, v in DISK.items() if ":load" not in k}  # of a load on another host


def test_the_lines_add_up_to_all_connections():
    found = account(DISK, 16)
    assert sum(line.connections for line in found.lines) == pytest.approx(16)
    assert found.of(READ) == pytest.approx(13.0996, rel=0.02)
    assert found.of(CPU, RUN_QUEUE) == pytest.approx(0.4075)
    assert found.of(LOG) == pytest.approx(0.7066, rel=0.02)
    assert found.of(LATCH) == pytest.approx(1.4013, rel=0.02)
    assert abs(found.unknown) < 0.03 * 16
    assert found.doubts == []


def test_connections_younger_than_the_list_are_connections_and_cached_threads_are_not():
    """MySQL 8.0 under mysqlslap: two were not listed yet, three threads wait in the cache."""
    young = "mysqld/connection unlisted"
    found = {**DISK, "state.threads:mysqld/connection": 14.0, f"state.threads:{young}": 5.0}
    found["state.seconds:mysqld/connection/read.data"] -= 2.0
    found |= {f"state.seconds:{young}/futex": 3.0, f"state.seconds:{young}/read.data": 2.0}
    found |= {"status.threads_cached": 3.0, "state.threads:mysqld/connection apart": 1.0}
    made = account(found, 16)
    assert made.listed == 16.0
    assert made.of(READ) == pytest.approx(13.0996, rel=0.02)
    assert made.of(LATCH) == pytest.approx(1.4013, rel=0.02)
    assert abs(made.unknown) < 0.03 * 16
    assert made.doubts == []
    del found["state.threads:mysqld/connection apart"]  # as of an earlier probe
    assert account(found, 16).listed == 14.0


def test_threads_whose_calls_may_not_be_read_have_no_account():
    """The kernel shows their CPU time to everybody: all else would be unknown without a reason."""
    assert account({k: v for k, v in DISK.items() if "seconds" not in k}, 16) is None


def test_the_helpers_of_the_load_are_no_think_time():
    """Sysbench has two threads that wait for its end; they ask for nothing, but are no load."""
    assert account(DISK, 16).of(THINK) == 0.0
    idle = {**DISK, "state.seconds:mysqld/connection/read.data": 3.0996}
    idle["state.seconds:mysqld/connection/poll"] = 10.0716
    idle["state.seconds:load/sysbench/poll"] = 5.8
    idle["state.seconds:load/sysbench/sleep"] = 11.0
    assert account(idle, 16).of(THINK) == pytest.approx(10.0, abs=0.05)


def test_both_ends_waiting_is_the_network():
    full = {**DISK, "state.seconds:mysqld/connection/read.data": 0.1}
    full["state.seconds:mysqld/connection/read.socket"] = 13.0
    found = account(full, 16)
    assert found.of(NETWORK) == pytest.approx(13.0, rel=0.02)
    assert found.of(LOAD_CPU) == pytest.approx(0.0696)


def test_without_the_loads_threads_network_and_load_are_one_line():
    found = account(NEAR, 16)
    assert found.of(CLIENT) == pytest.approx(0.0716, rel=0.02)
    assert found.of(NETWORK, LOAD_CPU) == 0.0


def test_a_load_whose_threads_are_not_all_seen_is_one_line_with_the_network():
    """A command that starts sixteen processes: the sampler sees the threads of the first alone."""
    some = {**NEAR, "state.seconds:mysqld/connection/read.data": 0.1}
    some |= {"state.seconds:mysqld/connection/poll": 13.0, "state.threads:load/sh": 1.0}
    found = account({**some, "state.seconds:load/sh/other": 1.0}, 16)
    assert found.of(CLIENT) == pytest.approx(13.0, rel=0.02)
    assert found.of(NETWORK) == 0.0


def test_threads_that_serve_no_connection_wait_for_no_client():
    """MySQL 5.6 lists no thread: one lets connections in, one is the probe's own."""
    unlisted = {"state.threads:mysqld/mysqld": 40.0, "state.seconds:mysqld/mysqld/futex": 22.0}
    found = account({**unlisted, "state.seconds:mysqld/mysqld/poll": 18.0}, 16)
    assert found.of(CLIENT) == pytest.approx(16.0)
    assert found.doubts == ["shared"]


def test_row_locks_are_taken_from_the_other_waits():
    """InnoDB counts milliseconds: 900 of them in a second are 0.9 connections."""
    locked = {**DISK, "status.innodb_row_lock_time": 900.0}
    found = account(locked, 16)
    assert found.of(ROW_LOCK) == pytest.approx(0.9)
    assert found.of(LATCH) == pytest.approx(0.5, abs=0.03)


def test_row_locks_that_are_waited_for_are_counted_before_the_wait_ends():
    """One open transaction that forty sessions wait for: the server adds the time afterwards."""
    locked = {**DISK, "status.innodb_row_lock_current_waits": 1.2}
    assert account(locked, 16).of(ROW_LOCK) == pytest.approx(1.2)


def test_locks_of_tables_are_taken_from_the_other_waits_where_they_are_known():
    """A pending `ALTER` that a dozen sessions wait for, by the server's own list of them."""
    found = account({**DISK, "session.locked": 1.2}, 16)
    assert found.of(TABLE_LOCK) == pytest.approx(1.2)
    assert found.of(LATCH) == pytest.approx(0.2, abs=0.03)
    both = account({**DISK, "session.locked": 9.0, "status.innodb_row_lock_current_waits": 1.0}, 16)
    assert both.of(ROW_LOCK, TABLE_LOCK) == pytest.approx(1.4, abs=0.03), "no more than wait"
    assert both.of(LATCH) == 0.0
    assert TABLE_LOCK in account(DISK, 16).hidden
    assert TABLE_LOCK not in found.hidden


def test_idle_connections_are_known_where_each_has_a_thread():
    """With a pool the list names the threads that let connections in, which serve others since."""
    listed = {"state.idle:mysqld/connection": 3.0}
    assert connections_idle(listed) == 3.0
    assert connections_idle({**listed, "status.threadpool_threads": 2.0}) == 0.0
    assert connections_idle({}) == 0.0


def test_what_no_line_explains_is_unknown():
    found = account({**DISK, "state.seconds:mysqld/connection/read.data": 5.0}, 16)
    assert found.of(UNKNOWN) == pytest.approx(8.2, abs=0.1)


@pytest.mark.parametrize(
    ("change", "n", "in_flight", "doubt"),
    [
        ({"state.seconds:mysqld/connection/running": 5.0}, 16, None, "looks"),
        ({"state.threads:mysqld/connection": 13.0}, 16, None, "unlisted"),
        ({"state.threads:mysqld/connection": 9.0}, 16, None, "shared"),
        ({}, 16, 12.0, "little"),
        ({"state.threads:mysqld/connection": 0.0}, 16, None, "shared"),
    ],
)
def test_a_check_that_does_not_hold_makes_it_doubtful(change, n, in_flight, doubt):
    assert doubt in account({**DISK, **change}, n, in_flight).doubts


def test_connections_that_last_for_one_query_are_counted_with_all_threads():
    """mysqlslap that connects for each query: eight of sixteen are listed, its own threads end."""
    each = {
        "state.threads:mysqld/connection": 8.43,
        "state.cpu:mysqld/connection": 0.23,
        "state.run_delay:mysqld/connection": 1.525,
        "state.seconds:mysqld/connection/futex": 4.91,
        "state.seconds:mysqld/connection/poll": 2.0,
        "state.seconds:mysqld/connection/running": 1.659,
        "state.threads:mysqld/mariadbd": 36.0,
        "state.cpu:mysqld/mariadbd": 0.896,
        "state.run_delay:mysqld/mariadbd": 7.294,
        "state.seconds:mysqld/mariadbd/futex": 22.617,
        "state.seconds:mysqld/mariadbd/poll": 3.739,
        "state.seconds:mysqld/mariadbd/running": 7.321,
        "state.threads:load/mysqlslap": 15.5,
        "state.seconds:load/mysqlslap/futex": 0.975,
        "state.seconds:load/mysqlslap/poll": 1.195,
        "state.seconds:load/mysqlslap/running": 0.913,
        "process.cpu_user:load": 0.277,
        "process.cpu_system:load": 0.484,
        "process.run_delay:load": 0.467,
    }
    found = account(each, 16)
    assert found.of(CPU, RUN_QUEUE) == pytest.approx(9.945)
    assert found.of(LOAD_CPU) == pytest.approx(0.761)
    assert found.of(LATCH) == 0.0, "threads that wait for their next connection hold no latch up"
    assert found.unknown < 0.2 * 16


def test_the_kernel_counts_cpus_and_looks_divide_the_rest():
    """A look takes a CPU: of a single connection, both ends were seen to run more than they did."""
    one = {
        "state.threads:mysqld/connection": 1.0,
        "state.cpu:mysqld/connection": 0.642,
        "state.run_delay:mysqld/connection": 0.0,
        "state.seconds:mysqld/connection/running": 0.557,
        "state.seconds:mysqld/connection/poll": 0.443,
        "state.threads:load/sysbench": 3.0,
        "state.cpu:load/sysbench": 0.236,
        "state.run_delay:load/sysbench": 0.0,
    }
    found = account(one, 1)
    assert found.of(CPU) == pytest.approx(0.642)
    assert found.of(LOAD_CPU) == pytest.approx(0.236)
    assert found.of(NETWORK) == pytest.approx(0.122)
    assert found.unknown == pytest.approx(0.0)
    assert found.gap == pytest.approx(-0.085)


LATCHED = {
    **NEAR,
    "state.seconds:mysqld/connection/futex": 14.0,
    "state.seconds:mysqld/connection/read.data": 0.5,
    "disk.flushes": 0.5,
}


def suspicion(means, n=16, **how):
    return suspects(LoadEvidence.of(Figures(means), account(means, n)), **how)


def test_a_full_link_is_the_answer_for_a_load_on_another_host():
    full = {**NEAR, "state.seconds:mysqld/connection/read.data": 0.1}
    full |= {"state.seconds:mysqld/connection/read.socket": 13.0}
    link = {"net.capacity": 1e8, "net.tx_bytes": 9.8e7, "net.rx_bytes": 1e6}
    assert suspicion({**full, **link}).answer == "link_rate"
    assert suspicion({**full, **link, "net.tx_bytes": 1e6}).answer == "outside"


def test_what_an_account_has_no_line_for_could_not_be_seen():
    unseen = {one.limit for one in suspicion(NEAR).unseen}
    assert {"load_cpu", "load_idle"} <= unseen
    locked = {**NEAR, "status.innodb_deadlocks": 5.0, "status.handler_commit": 0.0}
    assert "deadlocks" in {one.limit for one in suspicion(locked).unseen}


def test_a_disk_of_unknown_cap_may_be_slow_or_full():
    """A planted latency of 3 ms had reads as even as a cap has."""
    slow = {**DISK, "disk.reads": 4700.0, "disk.writes": 0.0, "disk.read_s": 14.1}
    found = suspicion({**slow, "disk.weighted_s": 14.8})
    assert found.answer == "disk_latency"
    assert "disk_ios" in {one.limit for one in found.unseen}


def test_a_load_that_keeps_its_rate_is_its_own_limit():
    some = {**DISK, "state.seconds:mysqld/connection/read.data": 8.0}
    some |= {"state.seconds:mysqld/connection/poll": 5.2}
    some |= {"state.seconds:load/sysbench/sleep": 5.99, "state.seconds:load/sysbench/poll": 10.8}
    assert suspicion(some, paced=True).answer == IDLE
    assert suspicion(some).answer != IDLE


def test_one_busy_thread_of_the_background_is_seen_among_threads_of_its_name():
    """MariaDB names all its threads alike: of fifteen one at its CPU was 0.07 of each."""
    held = {**DISK, "state.seconds:mysqld/connection/futex": 14.0, "cpus": 8.0}
    held |= {"state.seconds:mysqld/connection/read.data": 0.5, "cpu.idle:all": 6.5}
    held |= {"state.cpu:mysqld/mariadbd": 1.0}
    assert "one_thread" not in {s.limit for s in suspicion(held).suspects}
    busy = suspicion({**held, "state.busiest:mysqld/mariadbd": 0.97})
    assert "one_thread" in {s.limit for s in busy.suspects}


def test_the_busiest_of_threads_that_the_server_does_not_list_may_be_a_connections():
    """MySQL 5.6 names all alike: eight long queries are no thread that others wait for."""
    running = {"state.seconds:mysqld/mysqld/running": 8.0, "state.threads:mysqld/mysqld": 30.0}
    running |= {"state.cpu:mysqld/mysqld": 8.0, "state.busiest:mysqld/mysqld": 1.0}
    found = suspicion({**running, "cpus": 32.0, "cpu.idle:all": 24.0}, n=8)
    assert "one_thread" in {one.limit for one in found.unseen}
    assert "one_thread" not in {s.limit for s in found.suspects}


def test_a_counter_bounds_what_its_limit_can_be_worth():
    """One wait for a replica, for a fifth of each second, beside connections in latches."""
    found = {
        s.limit: s.expected
        for s in suspicion({**LATCHED, "status.rpl_semi_sync_master_tx_wait_time": 2e5}).suspects
    }
    assert found["semi_sync"] == pytest.approx(0.2)
    assert found["latches"] > 0.5


@pytest.mark.parametrize(
    ("limit", "counters", "most"),
    [
        ("connects", {"status.connections": 20.0, "status.questions": 1000.0}, 0.2),
        ("table_cache", {"status.opened_tables": 50.0, "status.questions": 1000.0}, 0.2),
        ("compaction", {"vm.compact_stall": 10.0}, 0.1 / 16),
        ("log_buffer", {"status.innodb_log_waits": 1.0}, 0.13 / 16),
    ],
)
def test_a_weak_sign_is_not_worth_all_that_its_states_are(limit, counters, most):
    found = {s.limit: s.expected for s in suspicion({**LATCHED, **counters}).suspects}
    assert found[limit] == pytest.approx(most)
    assert found["latches"] > 0.5


def test_a_flush_by_a_thread_of_the_servers_own_is_what_connections_wait_for():
    """MySQL 8.0 without a binary log: none of its connections is seen to flush."""
    own = {**LATCHED, "state.seconds:mysqld/connection/write.redo": 0.0, "disk.flushes": 450.0}
    assert suspicion({**own, "disk.flush_s": 0.9}).answer == "flush_latency"
    few = suspicion({**own, "disk.flush_s": 0.4}).suspects
    assert "flush_latency" not in {s.limit for s in few}


def test_deadlocks_are_of_transactions_rather_than_of_statements():
    few = {"status.innodb_deadlocks": 5.0, "status.handler_commit": 5000.0}
    assert "deadlocks" not in {s.limit for s in suspicion({**LATCHED, **few}).suspects}
    many = {**few, "status.com_commit": 250.0}
    assert "deadlocks" in {s.limit for s in suspicion({**LATCHED, **many}).suspects}
    alone = {**few, "status.com_commit": 0.0, "status.handler_commit": 250.0}  # by autocommit
    assert "deadlocks" in {s.limit for s in suspicion({**LATCHED, **alone}).suspects}


def test_interrupts_are_no_other_program():
    busy = {**DISK, "state.run_delay:mysqld/connection": 5.0, "cpus": 2.0, "cpu.idle:all": 0.0}
    busy |= {"cpu.steal:all": 0.0, "process.cpu_user:mysqld": 0.9}
    assert "other_work" in {s.limit for s in suspicion(busy).suspects}
    handled = {**busy, "cpu.softirq:all": 0.7, "cpu.irq:all": 0.1}
    assert "other_work" not in {s.limit for s in suspicion(handled).suspects}


def test_the_redo_logs_size_has_the_name_that_the_server_has_for_it():
    full = {**LATCHED, "redo.age": 8e8, "status.innodb_os_log_written": 1e7}

    def settings(**more):
        found = suspicion(full | {f"status.innodb_{k}": v for k, v in more.items()})
        return next(s.doses for s in found.suspects if s.limit == "redo_size")

    assert settings(redo_log_capacity_resized=1e9) == ["mysqld.innodb_redo_log_capacity"]
    older = settings(checkpoint_age=8e8, checkpoint_max_age=1e9)
    assert older == ["mysqld.innodb_log_file_size"]


def test_without_states_there_is_no_account():
    assert account({"status.questions": 1.0}, 16) is None


def test_one_connection_more_than_the_load_has_is_idle():
    """MySQL lists a session of an administrator's, too; it waits for its client all the time."""
    more = {**DISK, "state.threads:mysqld/connection": 17.0}
    more["state.seconds:mysqld/connection/poll"] = 1.0716
    assert sum(line.connections for line in account(more, 16).lines) == pytest.approx(16)


def test_the_saturated_queue_is_expected_to_be_the_limit_and_the_next_one_follows():
    found = account(DISK, 16)
    assert expected(found)[READ] > 0.95
    state, times = following(found.lines, found.n, (READ,))
    assert state in {LATCH, CPU}
    assert times > 1


def test_more_connections_than_there_are_make_an_account_doubtful():
    assert "over" not in account(DISK, 16).doubts
    assert "over" in account(DISK, 12).doubts


def test_what_is_no_limit_or_not_known_is_followed_by_nothing():
    """A tenth more was foretold for every proven flush: those who wait for it count as latches."""

    def lines(**states):
        return [AccountLine(state, x, x / 16) for state, x in states.items()]

    group = lines(log=2.0, latch=11.4, server_cpu=2.6)
    assert following(group, 16, (LOG,)) is None
    state, times = following(group, 16, (LOG, LATCH))
    assert (state, times > 1.2) == (CPU, True)
    assert following(lines(disk_read=10.0, unknown=5.5, server_cpu=0.5), 16, (READ,)) is None


# As on MariaDB 10.11 with thread_pool_size = 1, sixteen connections that update, flushes of 2 ms:
# the thread that flushes is not the one that let its connection in.
POOLED = {
    "status.threadpool_threads": 9.0,
    "state.threads:mysqld/connection": 4.0,
    "state.cpu:mysqld/connection": 0.1,
    "state.run_delay:mysqld/connection": 0.05,
    "state.seconds:mysqld/connection/running": 0.15,
    "state.seconds:mysqld/connection/poll": 1.0,
    "state.seconds:mysqld/connection/futex": 2.85,
    "state.threads:mysqld/mariadbd": 17.0,
    "state.cpu:mysqld/mariadbd": 0.04,
    "state.run_delay:mysqld/mariadbd": 0.01,
    "state.seconds:mysqld/mariadbd/running": 0.05,
    "state.seconds:mysqld/mariadbd/futex": 16.15,
    "state.seconds:mysqld/mariadbd/sync.redo": 0.8,
    "state.threads:load/sysbench": 18.0,
    "state.cpu:load/sysbench": 0.02,
    "state.run_delay:load/sysbench": 0.01,
    "state.seconds:load/sysbench/futex": 1.0,
    "state.seconds:load/sysbench/sleep": 1.0,
    "state.seconds:load/sysbench/poll": 15.97,
}


def test_connections_that_no_thread_of_a_pool_serves_wait_for_one():
    found = account(POOLED, 16)
    assert found.of(CPU, RUN_QUEUE) == pytest.approx(0.2)
    assert found.of(LOG) == pytest.approx(0.8)
    assert found.of(LOAD_CPU, LOAD_RUN_QUEUE) == pytest.approx(0.03)
    assert found.of(POOL) == pytest.approx(16 - 0.2 - 0.8 - 0.03)
    assert found.of(LATCH, NETWORK, CLIENT, THINK, UNKNOWN) == pytest.approx(0.0)
    assert (found.doubts, found.listed) == (["pool"], None)
    alone = account({k: v for k, v in POOLED.items() if ":load" not in k}, 16)
    assert alone.of(CLIENT) == pytest.approx(16 - 0.2 - 0.8)


def test_a_pool_is_neither_seen_nor_refuted_where_the_load_is_elsewhere():
    """What waits for a thread of the pool is in one line with what waits for its client."""
    idle = {"cpus": 2.0, "cpu.idle:all": 1.6, "cpu.iowait:all": 0.1}
    alone = {k: v for k, v in POOLED.items() if ":load" not in k} | idle
    assert POOL in account(alone, 16).hidden
    assert POOL not in account(NEAR, 16).hidden
    found = suspicion(alone)
    assert "pool_threads" in {one.limit for one in found.unseen}
    assert "outside" not in {one.limit for one in found.suspects}


def test_what_a_pools_threads_do_is_what_the_others_wait_for():
    found = account(POOLED, 16)
    worth = expected(found)
    assert worth[POOL] == pytest.approx(14.97 / 16)
    assert 0.7 < worth[LOG] < 0.9
    state, times = following(found.lines, found.n, (LOG,))
    assert (state, times > 1.5) == (CPU, True), "a faster flush is worth more than a tenth"
    evidence = LoadEvidence.of(Figures(POOLED), found)
    assert evidence.share(LOG) == pytest.approx(0.8 / 1.03)
    assert evidence.share(POOL) == pytest.approx(14.97 / 16)
