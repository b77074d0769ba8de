"""Rules that a review once removed without any test failing: each of these fails without its rule.

The name of a test states the rule; without the rule a user is harmed.
"""

# ruff: noqa: SLF001 - some rules are inside, and nothing outside shows them in time

import os
import random
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign import trial
from mydyno.campaign.blocks import BLOCKS, Blocks
from mydyno.campaign.designs import Fixed
from mydyno.campaign.spec import Spec, decode
from mydyno.campaign.trial import Spent
from mydyno.cli.run_directory import rule_of
from mydyno.host import Local
from mydyno.host.ssh import Session
from mydyno.journal import FileJournal, Finished, Interruption, MemoryJournal, Opened, spent_s
from mydyno.journal.records import FileRecords, Made, MemoryRecords
from mydyno.loads import WorkloadInfo
from mydyno.model import (
    Action,
    DriftError,
    HostError,
    Interval,
    Metric,
    Outcome,
    Overhead,
    RefusedError,
    Series,
    SpecError,
    Trial,
    TrialStatus,
    Window,
)
from mydyno.report.words import words
from mydyno.sample.derive import series
from mydyno.sample.probe_file import read
from mydyno.sample.sampler import Where
from mydyno.server import place
from mydyno.server.client import with_options, without_password
from mydyno.server.place import Build
from mydyno.stack import Ledger, Site, converge, mysqld, restore
from mydyno.stack.protocol import split
from mydyno.stats import Estimator, Method, Rule
from mydyno.stats.compare import soaked
from mydyno.stats.result import ChangeView
from mydyno.stats.sequential import load_series
from mydyno.testbed import lock, private_bench, server_runner
from mydyno.testbed.bench_setup import ServerLayers
from mydyno.testbed.preflight import HOST, REFORMAT, consent
from mydyno.testbed.private_bench import PrivateBench
from mydyno.testbed.server_runner import ServerRunner
from mydyno.testbed.stores import key_of
from mydyno.testing import FakeHost, FakeLayer
from unit.sampler_file import File
from worded import compare

TENS = tuple(10.0 * i for i in range(1, 13))
RULE = Rule("c", "A", {"w": "tps"}, guards={})


def change(durability):
    return ChangeView("db/mysqld.x", "1", "2", "online", durability)


def outcome(number, name="A", tps=1000.0, **more):
    made = Outcome(
        Trial(number, name, more.pop("workload", "w"), number // 2, 7),
        more.pop("status", TrialStatus.OK),
        Window(0.0, 120.0),
        (
            Metric("tps", tps, "/s"),
            Metric("latency_p99_s", 10 / tps, "s"),
            Metric("storage_bytes", 1e6 * tps, "B"),
        ),
        (Series("tps", "/s", TENS, (tps,) * len(TENS)),),
        machine_time_s=10.0,
    )
    assert not more
    return made


def race(gain, blocks=8, workload="w"):
    chance = random.Random(1)
    return [
        outcome(
            2 * block + at, name, 1000 * level * (1 + chance.gauss(0, 0.005)), workload=workload
        )
        for block in range(blocks)
        for at, (name, level) in enumerate((("A", 1.0), ("B", gain)))
    ]


# Durability


def test_one_weaker_setting_among_others_makes_a_treatment_weaker():
    campaign = SimpleNamespace(kind=BLOCKS, rule=RULE)
    found = rule_of(campaign, {"B": [change("same"), change("weaker"), change("same")]})
    assert found.class_of("B") == "weaker"
    assert found.class_of("A") == "same"


def test_a_spec_without_durability_asks_for_the_same_durability():
    assert Spec().decide.durability == "same"


# What is measured


def test_the_warm_up_is_not_in_the_window():
    found = Fixed(30.0, 60.0).done([Interval(90.0, {"tps": 1.0})])
    assert (found.start_s, found.end_s) == (30.0, 90.0)


def test_a_soak_is_not_compared_with_its_first_quarter():
    rates = [1400.0 + i % 7 for i in range(90)] + [1000.0 + i % 7 for i in range(270)]
    times = tuple(10.0 * (i + 1) for i in range(360))
    trial = Trial(0, "B", "w", 0, 7, soak=True)
    long = Outcome(
        trial, TrialStatus.OK, Window(0, 3600), (), (Series("tps", "/s", times, tuple(rates)),)
    )
    assert "held" in words(soaked([long], RULE)[0])


def test_a_rate_is_over_the_time_that_passed_and_not_over_the_interval_that_was_asked_for(tmp_path):
    column = ("tcp.retransmits", "", "counter", 1.0)
    file = File().define("host").define("host", column)
    for seq, value in ((0, 0), (2, 40)):  # one tick was missed: two seconds passed
        file.tick(seq, {column[:2]: value})
    found = {s.name: s for s in series(read(file.written(tmp_path)), Where("", ""), 0.0)}
    assert found["net.retransmits"].values == pytest.approx((20.0,))


@pytest.mark.parametrize("factor", [0.0, 1e9])
@pytest.mark.parametrize("estimator", [Estimator.BLOCKS, Estimator.WINDOWS])
@pytest.mark.parametrize("status", [TrialStatus.FAILED, TrialStatus.UNKNOWN])
def test_the_figures_of_a_trial_that_was_not_measured_count_for_nothing(status, estimator, factor):
    rule = replace(RULE, guards={"latency_p99_s": 0.1}, method=Method(estimator))
    good = race(1.1, blocks=12)
    bad = [replace(o, status=status, error="died") if o.trial.id == 23 else o for o in good]
    absurd = [
        replace(o, metrics=tuple(replace(m, value=factor * m.value) for m in o.metrics), series=())
        if o.trial.id == 23
        else o
        for o in bad
    ]
    one, other = (compare(found, rule, "AB").treatments[1] for found in (bad, absurd))
    assert one == other
    assert len(load_series(bad, "w", "tps")) == 23


def test_a_guard_is_not_missing_because_a_failed_trial_has_no_figures():
    rule = replace(RULE, guards={"latency_p99_s": 0.1})
    found = [
        replace(o, status=TrialStatus.FAILED, metrics=(), series=()) if o.trial.id == 23 else o
        for o in race(1.1, blocks=12)
    ]
    assert compare(found, rule, "AB").treatments[1].unevaluated == {}


# Machine time


def test_lost_time_is_counted_once():
    lost = Trial(0, "A", "w", 0, 7)
    events = [Interruption(lost, 30.0), Finished(outcome(0))]  # its 10 s hold the 30 s, or not
    assert spent_s(events) == 10.0
    assert spent_s(events[:1]) == 30.0


def test_setup_and_waiting_are_machine_time():
    spent = Spent(setup_s=7.0)
    spent.take(Interval(60.0, {"tps": 1.0}))
    spent.take(Overhead(3.0))
    assert spent.seconds == 70.0


# The order of trials


def test_the_baseline_has_every_place_in_a_block():
    design = Blocks(("STOCK", "ONE", "TWO"), ("r", "w"), 60, None, 3)
    history, places = [], Counter()
    while (following := design.next(history)) is not None:
        within = len(history) % 6
        if following.treatment == "STOCK":
            places[within] += 1
        history.append(Outcome(following, TrialStatus.OK, Window(0, 1), ()))
    assert sorted(places) == list(range(6))
    assert min(places.values()) >= 8  # 20 are expected


# The host


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "state_folder", lambda *_: tmp_path)


@pytest.mark.usefixtures("state")
def test_two_campaigns_do_not_measure_one_host():
    shared = pytest.raises(RefusedError, match="two campaigns at once")
    with lock.host_lock(Local()), shared, lock.host_lock(Local()):
        pytest.fail("the lock was shared")
    with lock.host_lock(Local()):
        pass


def test_a_campaign_takes_the_lock_before_anything_else(monkeypatch):
    @contextmanager
    def held(*hosts):
        assert hosts == ("db", "load")
        raise RefusedError("held by another")
        yield

    monkeypatch.setattr(private_bench, "host_lock", held)
    bench = PrivateBench(SimpleNamespace(hosts=SimpleNamespace(db="db", load="load")), {})
    with pytest.raises(RefusedError, match="held by another"), bench.opened():
        pytest.fail("it went on without the lock")


def test_ctrl_c_does_not_reach_the_commands_that_restore_a_host():
    """The terminal sends it to the entire foreground group; our commands are in another one."""
    group = Local().run(Action(("sh", "-c", "cut -d' ' -f5 /proc/$$/stat"))).stdout
    assert int(group) != os.getpgrp()


def test_consent_to_format_a_device_is_no_consent_to_change_the_host():
    layer = FakeLayer("kernel")
    wanted = {"ONE": split({"db/kernel.swap": "1"})}
    with pytest.raises(RefusedError, match="--allow host"):
        consent(wanted, [layer], [f"{REFORMAT}/dev/sdb"])
    consent(wanted, [layer], [HOST])


def test_an_unreadable_first_value_is_not_changed():
    host = FakeHost({"a": ""}, iter)
    site = Site("db", host, (FakeLayer("kernel"),))
    with pytest.raises(HostError, match="current value unreadable"):
        converge(site, {"db/kernel.a": "1"}, Ledger(MemoryRecords(), MemoryJournal()), 0)
    assert host.state == {"a": ""}


def test_rollback_restores_every_layer():
    host, ledger = FakeHost({"a": "1", "b": "2"}, iter), Ledger(MemoryRecords(), MemoryJournal())
    for name, key in (("kernel", "a"), ("block", "b")):
        site = Site("db", host, (FakeLayer(name),))
        converge(site, {f"db/{name}.{key}": "9"}, ledger, 0)
    restore(host, ledger.records, lambda acting: FakeLayer(acting.layer))
    assert host.state == {"a": "1", "b": "2"}


def test_the_lease_of_a_far_host_is_renewed_while_the_link_is_up():
    beats = []
    session = Session.__new__(Session)
    session.over, session.lease_s = False, 0.08
    session._closing, session._lock = threading.Event(), threading.RLock()
    session._connection = SimpleNamespace(alive=True, keepalive=lambda: beats.append(1))
    thread = threading.Thread(target=session._send_keepalives, daemon=True)
    thread.start()
    end = time.monotonic() + 10
    while len(beats) < 4 and time.monotonic() < end:
        time.sleep(0.01)
    session._closing.set()
    thread.join()
    assert len(beats) > 3


# The server


class Deaf(FakeHost):
    """A host on which nothing that is set takes effect."""

    def run(self, action, *, timeout_s=60.0):
        if action.argv[0] == "set":
            action = Action(("get",))
        return FakeHost.run(self, action, timeout_s=timeout_s)


def launcher(host, monkeypatch):
    monkeypatch.setattr(server_runner, "write_owned", lambda *_: None)
    monkeypatch.setattr(server_runner, "load_buffer_pool", lambda _: None)
    instance = SimpleNamespace(start=lambda: None, pid=7)
    layers = (FakeLayer("mysqld", owned=True),)
    launched = ServerLayers(layers, {"mysqld": dict(host.state)})
    return ServerRunner(host, instance, Ledger(MemoryRecords(), MemoryJournal()), launched)


def test_a_server_that_starts_without_its_treatment_fails_the_trial(monkeypatch):
    one = launcher(Deaf({"sort_buffer_size": "1"}, iter), monkeypatch)
    with pytest.raises(DriftError, match="sort_buffer_size is 1, not 2"):
        one.launch(split({"db/mysqld.sort_buffer_size": "2"}), Trial(0, "A", "w", 0, 7))


def test_a_running_server_that_does_not_follow_fails_the_trial(monkeypatch):
    one = launcher(Deaf({"sort_buffer_size": "1"}, iter), monkeypatch)
    one.up = True
    with pytest.raises(DriftError, match="sort_buffer_size is 1, not 2"):
        one.reconfigure(split({"db/mysqld.sort_buffer_size": "2"}), Trial(0, "A", "w", 0, 7))


def test_other_page_sizes_have_data_of_their_own():
    stack = Spec().stack
    load = SimpleNamespace(info=WorkloadInfo("w", data_key="sbtest", needs_server=True))
    keys = {
        key_of(split({"db/mysqld.innodb_page_size": size} if size else {}), load, stack)
        for size in ("", "4K", "8K", "64K")
    }
    assert len(keys) == 4
    assert key_of(split({"db/mysqld.innodb_page_size": "4096"}), load, stack) in keys


def client(tmp_path):
    path = tmp_path / "client"
    path.write_text('#!/bin/sh\nenv\necho "args: $*"\n')
    path.chmod(0o755)
    return Build("mysql", (8, 0, 33), "", Path("/mysqld"), Path("/"), path)


def test_nothing_of_the_users_reaches_the_client_of_a_private_server(tmp_path, monkeypatch):
    """A password, a host or a login path of the user's would lead to another server."""
    for name in ("MYSQL_PWD", "MYSQL_HOST", "MYSQL_TEST_LOGIN_FILE", "MYSQL_HOME", "LD_PRELOAD_"):
        monkeypatch.setenv(name, "the-users-own")
    build = client(tmp_path)
    for argv in (with_options(build, Path("/my.cnf")), without_password(build, Path("/sock"))):
        shown = Local().run(Action(argv)).check().stdout.decode()
        assert "the-users-own" not in shown
        assert "HOME=/nonexistent" in shown
        assert "args: --no-defaults " in shown or "args: --defaults-file=" in shown


@pytest.mark.parametrize("value", ["a\nplugin_load=x.so", "a\rb", "a\0b"])
def test_a_line_break_in_a_value_makes_no_option_of_its_own(value):
    with pytest.raises(SpecError, match=r"mysqld\.init_connect: the value has a line break"):
        mysqld.option_file({"init_connect": value}, "mysql", (8, 0, 33))
    with pytest.raises(SpecError, match="password: the value has a line break"):
        place.client_options("load", value)
    assert mysqld._line("init_connect", 'SET "a"').endswith('"SET \\"a\\""')


# Files


def test_what_the_journal_and_the_records_hold_is_on_the_disk(tmp_path, monkeypatch):
    """A power cut after an act must leave the record of it."""
    synced = []
    real = os.fsync

    def fsync(file):
        synced.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    journal = FileJournal(tmp_path / "journal.jsonl")
    synced.clear()
    journal.append(Opened("digest", "name"))
    assert synced == [str(tmp_path / "journal.jsonl")]
    journal.close()
    records = FileRecords(tmp_path / "changes")
    synced.clear()
    records.add(Made("user", "61184"))
    assert str(tmp_path / "changes") in synced
    records.close()


TABLES = ["campaign", "recipe", "stack", "stack.device", "design", "protocol", "decide", ""]


@pytest.mark.parametrize("table", TABLES)
def test_an_unknown_key_is_refused_in_every_table(table):
    heading = f"[{table}]\n" if table else ""
    with pytest.raises(SpecError, match="unknown key"):
        decode(f"{heading}no_such_key = 1\n", "s.toml")


# Loads


def test_a_load_that_falls_silent_is_ended(monkeypatch):
    monkeypatch.setattr(trial, "SILENCE_S", 0.1)
    stopped = threading.Event()
    running = SimpleNamespace(stop=lambda grace_s: stopped.set())
    with trial._watchdog(running):
        assert stopped.wait(5)
    busy = SimpleNamespace(stop=lambda grace_s: pytest.fail("it reported all the time"))
    monkeypatch.setattr(trial, "SILENCE_S", 60.0)
    with trial._watchdog(busy) as heard:
        heard()
