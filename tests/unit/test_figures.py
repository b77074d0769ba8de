"""The figures of a window: what diagnoses look at, of a run and of a live server alike."""

import pytest

from mydyno.model import Window
from mydyno.sample.figures import mean, of_window
from mydyno.sample.probe_file import read
from mydyno.sample.sampler import Where
from unit.sampler_file import File

COLUMNS = (("disk.reads", "vda", "counter", 1.0), ("cpu.running", "", "gauge", 1.0))


def seen(tmp_path, where=Where("vda")):  # noqa: B008 - frozen
    file = File().define("host", *COLUMNS)
    for seq, (reads, running) in enumerate([(0, 1), (100, 3), (300, 5), (50, 7), (150, 9)]):
        file.tick(seq, {("disk.reads", "vda"): reads, ("cpu.running", ""): running})
    return of_window(read(file.written(tmp_path)), where, Window(0.0, 5.0))


def test_counters_are_rates_and_gauges_are_means(tmp_path):
    """A counter that fell began again: that step counts for nothing."""
    means = seen(tmp_path).means
    assert means["disk.reads"] == pytest.approx((100 + 200 + 100) / 3)
    assert means["cpu.running"] == pytest.approx((3 + 5 + 7 + 9) / 4)
    assert seen(tmp_path, Where()).means["disk.reads:vda"] == means["disk.reads"]


def test_their_spread_and_rise_are_shares_of_the_mean(tmp_path):
    """Of 3, 5, 7, 9 and of 100, 200, one unknown, 100: the later half beside the earlier one."""
    found = seen(tmp_path)
    assert found.spread["cpu.running"] == pytest.approx((20 / 3) ** 0.5 / 6)
    assert found.rise["cpu.running"] == pytest.approx((8 - 4) / 6)
    assert found.spread["disk.reads"] == pytest.approx((10000 / 3) ** 0.5 / (400 / 3))
    assert found.rise["disk.reads"] == pytest.approx((100 - 150) / (400 / 3))


def test_what_is_known_of_host_and_window_is_among_them(tmp_path):
    """`why --live` has no run directory: without these a limit of the CPUs could not be seen."""
    means = seen(tmp_path, Where("vda", "eth0", 125e6, {"disk.cap_ios": 500.0})).means
    assert (means["cpus"], means["window.seconds"]) == (2, 5.0)
    assert (means["net.capacity"], means["disk.cap_ios"]) == (125e6, 500.0)


def test_cpus_that_come_later_are_counted_from_then_on(tmp_path):
    file = File().define(
        "host", ("cpu.idle", "all", "counter", 1.0), ("cpu.idle", "0", "counter", 1.0)
    )
    for seq in range(5):
        given = {("cpu.idle", "all"): seq, ("cpu.idle", "0"): seq}
        if seq == 3:
            file.define("host", ("cpu.idle", "1", "counter", 1.0))
        if seq > 2:
            given["cpu.idle", "1"] = 0
        file.tick(seq, given)
    found = of_window(read(file.written(tmp_path)), Where(), Window(0.0, 5.0))
    assert found.means["cpus"] == pytest.approx((1 + 1 + 1 + 2 + 2) / 5)
    late = of_window(read(file.written(tmp_path)), Where(), Window(50.0, 60.0))
    assert late.means["cpus"] == 2  # the sampler had ended: as many as its head has


THREADS = (("state.looks", "mysqld", "counter", 1.0), ("state.threads", "mysqld/c", "gauge", 1.0))
READ, SLEEP = ("mysqld/c/read.data", "mysqld/c/sleep")


def of_states(tmp_path, sleeps):
    """A thread that reads for four seconds, or sleeps in the last two: not defined before."""
    file = File().define("states", *THREADS, ("state.seconds", READ, "counter", 1.0))
    for seq in range(5):
        asleep = max(0, seq - 2) if sleeps else 0
        seen = {("state.looks", "mysqld"): 10 * seq, ("state.threads", "mysqld/c"): 1}
        seen[("state.seconds", READ)] = seq - asleep
        if asleep:
            file.define("states", ("state.seconds", SLEEP, "counter", 1.0))
            seen[("state.seconds", SLEEP)] = asleep
        file.tick(seq, seen, read=("states",))
    return of_window(read(file.written(tmp_path)), Where(), Window(0.0, 5.0))


def test_a_state_that_was_seen_late_took_no_time_before(tmp_path):
    """Its mean was that of the seconds since, so that lines added up to more than all threads."""
    means = of_states(tmp_path, sleeps=True).means
    assert means[f"state.seconds:{READ}"] == pytest.approx(0.5)
    assert means[f"state.seconds:{SLEEP}"] == pytest.approx(0.5)


def test_connections_are_counted_from_when_the_server_listed_them(tmp_path):
    """`why --live` begins before: a second of four connections is that of threads by their name."""
    listed = ("state.threads", "mysqld/connection", "gauge", 1.0)
    column = ("state.seconds", "mysqld/connection/futex", "counter", 1.0)
    file = File().define("states", *THREADS[:1])
    for seq in range(5):
        seen = {("state.looks", "mysqld"): 10 * seq}
        for at, one, value in ((1, listed, 4), (2, column, 4.0 * (seq - 1))):
            if seq == at:
                file.define("states", one)
            if seq >= at:
                seen[one[:2]] = int(value)
        file.tick(seq, seen, read=("states",))
    means = of_window(read(file.written(tmp_path)), Where(), Window(0.0, 5.0)).means
    assert means["state.seconds:mysqld/connection/futex"] == pytest.approx(4.0)


def test_a_state_that_a_trial_was_never_in_took_no_time_there(tmp_path):
    trials = [of_states(tmp_path, sleeps=sleeps) for sleeps in (False, False, True)]
    means = mean(trials).means
    assert means[f"state.seconds:{SLEEP}"] == pytest.approx(0.5 / 3)
    assert means[f"state.seconds:{READ}"] == pytest.approx(2.5 / 3)
