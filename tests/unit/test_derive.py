"""Series of a sample: rates, gaps, restarts, and what each flavour of server calls its redo."""

import numpy as np
import pytest

from mydyno.model import Metric, Series, Window
from mydyno.sample import Sampling
from mydyno.sample.derive import corrected, sampled_series, series, used
from mydyno.sample.probe_file import read
from mydyno.sample.sampler import Where
from unit.sampler_file import File

HERE = Where("vda", "eth0")
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def counters(*names, of="", scale=1.0):
    return [(name, of, "counter", scale) for name in names]


def sample(tmp_path, columns, ticks, source="host"):
    """A file of one source with the values of each tick in the order of `columns`."""
    file = File().define("host").define(source, *columns)
    for seq, values in enumerate(ticks):
        named = {
            c[:2]: v
            for c, v in zip(columns, values or (), strict=values is not None)
            if v is not None
        }
        file.tick(seq, named, read=("host", source) if values else ("host",))
    return file


def made(tmp_path, file, where=HERE, origin_s=0.0):
    found = series(corrected(read(file.written(tmp_path)), where), where, origin_s)
    return {one.name: list(zip(one.t_s, one.values, strict=True)) for one in found}


def near(pairs):
    return [pytest.approx(pair) for pair in pairs]


def test_processor_use_is_in_cores(tmp_path):
    columns = counters(*(f"cpu.{m}" for m in MODES), of="all", scale=0.01)
    ticks = [(0, 0, 0, 0, 0, 0, 0, 0), (80, 20, 30, 40, 5, 3, 12, 10)]
    found = made(tmp_path, sample(tmp_path, columns, ticks), origin_s=0.5)
    at = 0.501
    assert found["cpu.user"] == near([(at, 1.0)])
    assert found["cpu.irq"] == near([(at, 0.15)])
    assert sum(pairs[0][1] for name, pairs in found.items()) == pytest.approx(2.0)


@pytest.mark.parametrize("seen", [(0, 0, 96, 0, 0), (1, 0, 1, 0, 0), (4, 1, 12, 0, 3)])
def test_work_in_step_with_the_ticks_is_what_is_not_idle(tmp_path, seen):
    """Seen under a paced disk: 1.0 cores of work and 1.7 idle ones, of two: trials were void."""
    user, nice, system, irq, softirq = seen
    columns = counters(*(f"cpu.{m}" for m in MODES), of="all", scale=0.01)
    ticks = [(0,) * 8, (user, nice, system, 163, 5, irq, softirq, 2)]
    found = made(tmp_path, sample(tmp_path, columns, ticks))
    busy = {name: found[name][0][1] for name in ("cpu.user", "cpu.system", "cpu.irq")}
    assert sum(busy.values()) == pytest.approx(0.3)
    assert busy["cpu.system"] == pytest.approx(0.3 * system / sum(seen))
    assert found["cpu.idle"] == near([(1.001, 1.63)])


def test_work_that_no_tick_saw_is_the_systems(tmp_path):
    columns = counters(*(f"cpu.{m}" for m in MODES), of="all", scale=0.01)
    found = made(tmp_path, sample(tmp_path, columns, [(0,) * 8, (0, 0, 0, 170, 0, 0, 0, 0)]))
    assert found["cpu.system"] == near([(1.001, 0.3)])
    assert found["cpu.user"] == found["cpu.irq"] == near([(1.001, 0.0)])


def test_a_disk_that_did_nothing_has_no_latency(tmp_path):
    columns = counters(
        "disk.reads", "disk.writes", "disk.flushes", "disk.read_bytes", of="vda"
    ) + counters(
        "disk.read_s", "disk.write_s", "disk.flush_s", "disk.weighted_s", of="vda", scale=1e-3
    )
    ticks = [(0, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 0), (100, 4, 2, 409600, 50, 8, 6, 64)]
    found = made(tmp_path, sample(tmp_path, columns, ticks))
    assert found["disk.reads"] == near([(1.001, 0), (2.001, 100)])
    assert found["disk.read_latency"] == near([(2.001, 0.0005)])
    assert found["disk.flush_latency"] == near([(2.001, 0.003)])
    assert found["disk.queue"] == near([(1.001, 0), (2.001, 0.064)])
    assert made(tmp_path, sample(tmp_path, columns, ticks), Where("sda", "")) == {}
    assert made(tmp_path, sample(tmp_path, columns, ticks), Where()) == {}


def test_flushes_of_a_volume_are_counted_on_its_disks(tmp_path):
    columns, own = [], (0, 0)
    for disk in ("dm-0", "vda", "vdb"):
        columns += counters("disk.flushes", of=disk)
        columns += counters("disk.flush_s", of=disk, scale=1e-3)
    file = sample(tmp_path, columns, [(*own, 0, 0, 5, 10), (*own, 30, 60, 25, 90)])
    found = made(tmp_path, file, Where("dm-0", below=("vda", "vdb")))
    assert found["disk.flushes"] == near([(1.001, 25)])
    assert found["disk.flush_latency"] == near([(1.001, 0.0028)])
    assert made(tmp_path, file, Where("dm-0"))["disk.flushes"] == near([(1.001, 0)])
    counted = made(tmp_path, file, Where("vda", below=("vdb",)))
    assert counted["disk.flushes"] == near([(1.001, 30)])


def test_times_that_the_kernel_never_takes_are_left_out(tmp_path):
    """md before Linux 5.9: a read in 0 s spoke against a slow disk."""
    columns = counters("disk.reads", of="md0") + counters("disk.read_s", of="md0", scale=1e-3)
    file = sample(tmp_path, columns, [(0, 0), (5000, 0)])
    found = made(tmp_path, file, Where("md0"))
    assert found["disk.reads"] == near([(1.001, 5000)])
    assert "disk.read_latency" not in found
    few = sample(tmp_path, columns, [(0, 0), (5, 0)])  # each within a millisecond
    assert made(tmp_path, few, Where("md0"))["disk.read_latency"] == near([(1.001, 0)])


def test_a_counter_that_falls_has_no_rate_then(tmp_path):
    columns = counters("tcp.retransmits")
    found = made(tmp_path, sample(tmp_path, columns, [(5,), (8,), (2,), (2,), (4,)]))
    assert found["net.retransmits"] == near([(1.001, 3), (3.001, 0), (4.001, 2)])


def test_a_connection_counted_twice_as_it_ends_is_counted_once(tmp_path):
    """MySQL 5.7 read 57,909, 58,216, 58,056 and 58,100 as clients of 200 queries came and went."""
    columns = counters("status.innodb_pages_read")
    ticks = [(100,), (110,), (330,), (130,), (140,)]
    found = made(tmp_path, sample(tmp_path, columns, ticks, "server"))
    assert found["innodb.reads"] == near([(1.001, 10), (2.001, 20), (3.001, 0), (4.001, 10)])


def test_a_gap_is_a_gap_and_not_one_long_second(tmp_path):
    columns = counters("status.innodb_pages_read")
    ticks = [(0,), (10,), (20,), None, None, None, (900,), (910,)]
    found = made(tmp_path, sample(tmp_path, columns, ticks, "server"))
    assert found["innodb.reads"] == near([(1.001, 10), (2.001, 10), (7.001, 10)])


def test_a_source_with_longer_intervals_has_rates_over_them(tmp_path):
    columns = counters("status.innodb_pages_read")
    ticks = [(0,), None, None, (30,), None, None, (90,)]
    found = made(tmp_path, sample(tmp_path, columns, ticks, "server"))
    assert found["innodb.reads"] == near([(3.001, 10), (6.001, 20)])


@pytest.mark.parametrize(
    ("of", "left"), [("mysqld", [1.001, 3.001]), ("load", [1.001, 2.001, 3.001])]
)
def test_a_restart_parts_the_counters_even_where_they_grow(tmp_path, of, left):
    columns = counters("process.cpu_user", "process.cpu_system", of="mysqld", scale=0.01)
    file = sample(tmp_path, columns, [(1, 1), (2, 2), (900, 3), (901, 4)], "process")
    found = made(tmp_path, file.note(2, "process", "restart", of))
    assert [t_s for t_s, _ in found["process.mysqld.cpu"]] == left


def test_a_restarted_server_parts_all_its_counters(tmp_path):
    columns = counters("status.innodb_pages_read")
    file = sample(tmp_path, columns, [(1,), (2,), (90,), (91,)], "server")
    found = made(tmp_path, file.note(2, "server", "restart"))
    assert [t_s for t_s, _ in found["innodb.reads"]] == [1.001, 3.001]


def test_pressure_is_a_share_of_time(tmp_path):
    found = made(tmp_path, sample(tmp_path, counters("psi.io.some", scale=1e-6), [(0,), (250000,)]))
    assert found == {"psi.io": near([(1.001, 0.25)])}


def test_the_buffer_pool_as_shares(tmp_path):
    names = ("buffer_pool_reads", "buffer_pool_read_requests")
    columns = [
        *counters(*(f"status.innodb_{n}" for n in names)),
        ("status.innodb_buffer_pool_pages_dirty", "", "gauge", 1.0),
        ("status.innodb_buffer_pool_pages_total", "", "gauge", 1.0),
    ]
    ticks = [(0, 0, 0, 100), (5, 100, 25, 100), (5, 100, 50, 100)]
    found = made(tmp_path, sample(tmp_path, columns, ticks, "server"))
    assert found["innodb.hit_ratio"] == near([(1.001, 0.95)])  # nobody asked in the last second
    assert found["innodb.dirty_share"] == near([(0.001, 0), (1.001, 0.25), (2.001, 0.5)])


REDO = {
    "mariadb": (
        {"status.innodb_lsn_current": 5000, "status.innodb_checkpoint_age": 700},
        {"innodb.checkpoint_age": 700, "innodb.redo_rate": 5000},
    ),
    "mariadb without its age": (
        {"status.innodb_lsn_current": 5000, "status.innodb_lsn_last_checkpoint": 4600},
        {"innodb.checkpoint_age": 400, "innodb.redo_rate": 5000},
    ),
    "mysql 8.0.30": (
        {
            "status.innodb_redo_log_current_lsn": 9000,
            "status.innodb_redo_log_checkpoint_lsn": 8000,
            "status.innodb_os_log_written": 9999,
        },
        {"innodb.checkpoint_age": 1000, "innodb.redo_rate": 9000},
    ),
    "mysql with the metrics on": (
        {"innodb.log_lsn_checkpoint_age": 300, "innodb.log_lsn_current": 600},
        {"innodb.checkpoint_age": 300, "innodb.redo_rate": 600},
    ),
    "mysql 5.6": ({"status.innodb_os_log_written": 512}, {"innodb.redo_rate": 512}),
    "no innodb": ({"status.queries": 3}, {}),
}


@pytest.mark.parametrize("flavour", REDO)
def test_redo_is_read_by_the_names_of_the_flavour(tmp_path, flavour):
    given, want = REDO[flavour]
    columns = counters(*given)
    file = sample(tmp_path, columns, [[0] * len(given), list(given.values())], "server")
    found = {name: pairs[-1][1] for name, pairs in made(tmp_path, file).items()}
    assert found == pytest.approx(want)


def test_a_value_that_is_missing_at_times_is_not_zero_then(tmp_path):
    columns = [("memory.dirty", "", "gauge", 1.0)]
    file = sample(tmp_path, columns, [(4,), (5,)]).tick(2, {}, gone=[("memory.dirty", "")])
    assert made(tmp_path, file) == {"memory.dirty": near([(0.001, 4), (1.001, 5)])}


def test_a_trial_is_on_the_clock_of_its_load(tmp_path):
    names = [f"cpu.{m}" for m in MODES]
    columns = counters(*names, of="all", scale=0.01) + counters("probe.cpu", scale=1e-9)
    ticks = [
        tuple(seq * step for step in (60, 0, 20, 100, 10, 0, 0, 10, 2_000_000)) for seq in range(6)
    ]
    sample(tmp_path, columns, ticks).written(tmp_path)
    assert sampled_series(tmp_path) == ()  # its load never reported
    (tmp_path / "probe.json").write_text('{"disk": "vda", "interface": ""}')
    (tmp_path / "load.start").write_text("6500000000\n")  # 1.5 s after the head
    found = sampled_series(tmp_path)
    idle = next(one for one in found if one.name == "cpu.idle")
    np.testing.assert_allclose(idle.t_s, [0.501, 1.501, 2.501, 3.501])
    window = Window(1.0, 3.0)
    assert used(found, window) == (
        Metric("cpu_busy_ratio", pytest.approx(0.4), "ratio"),
        Metric("cpu_steal_ratio", pytest.approx(0.05), "ratio"),
        Metric("probe_cpu_cores", pytest.approx(0.002), "cores"),
    )
    assert used(found, Window(50.0, 60.0)) == ()
    assert used((), window) == ()


def test_processor_use_is_split_by_user():
    ticks = tuple(float(t) for t in range(1, 5))
    levels = {
        "cpu.user": 1.2,
        "cpu.system": 0.3,
        "cpu.idle": 2.5,
        "process.mysqld.cpu": 0.7,
        "process.load.cpu": 0.5,
        "process.load.threads": 3.0,
        "probe.cpu": 0.01,
    }
    found = [Series(name, "cores", ticks, (value,) * 4) for name, value in levels.items()]
    metrics = {m.name: m.value for m in used(found, Window(1.0, 4.0))}
    assert metrics["cpu_other_cores"] == pytest.approx(1.5 - 0.7 - 0.5 - 0.01)
    assert metrics["load_cpu_ratio"] == pytest.approx(0.5 / 3)  # three threads on four processors
    without = [s for s in found if not s.name.startswith("process.load")]
    assert {"cpu_other_cores", "load_cpu_ratio"} & {
        m.name for m in used(without, Window(1, 4))
    } == set()


def test_the_first_report_gives_the_start_of_the_load(tmp_path, monkeypatch):
    monkeypatch.setattr("time.monotonic_ns", lambda: 9_000_000_000)
    sampled = Sampling(tmp_path)
    sampled.reported(1.25)
    monkeypatch.setattr("time.monotonic_ns", lambda: 99_000_000_000)
    sampled.reported(2.25)
    assert (tmp_path / "load.start").read_text() == "7750000000\n"


def test_a_report_that_was_read_late_is_corrected_by_one_that_came_soon(tmp_path, monkeypatch):
    sampled = Sampling(tmp_path)
    clocks = {1.0: 20.0, 2.0: 20.01, 15.0: 21.0, 16.0: 21.9}  # the last differs by jitter
    for t_s, now_s in clocks.items():
        monkeypatch.setattr("time.monotonic_ns", lambda now_s=now_s: round(now_s * 1e9))
        sampled.reported(t_s)
    assert (tmp_path / "load.start").read_text() == "6000000000\n"


def test_link_utilisation_needs_a_known_speed(tmp_path):
    columns = counters("net.rx_bytes", "net.tx_bytes", of="eth0")
    ticks = [(0, 0), (100, 900), (300, 1000)]
    file = sample(tmp_path, columns, ticks)
    known = made(tmp_path, file, Where("", "eth0", 1000.0))
    assert [round(v, 3) for _, v in known["net.used"]] == [0.9, 0.2]
    assert "net.used" not in made(tmp_path, file, Where("", "eth0"))
    assert "net.used" not in made(tmp_path, file, Where("", "eth1", 1000.0))


def test_of_a_far_host_by_its_own_wall_clock(tmp_path, monkeypatch):
    monkeypatch.setattr("time.monotonic_ns", lambda: 9_000_000_000)
    Sampling(tmp_path, ahead_ns=1_000_000_000_000).reported(1.25)
    assert (tmp_path / "load.start").read_text() == "1007750000000 wall\n"
