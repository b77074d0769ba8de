"""The panels of one trial: grids, gaps, extremes, window means and their sentences."""

import base64
import gzip
import math
import random
from array import array
from itertools import accumulate

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydyno.report import charts, resources, timeseries
from mydyno.report.html import SampledKey, encoded_samples
from mydyno.report.timeseries import Panel, PanelSeries
from mydyno.stats.result import Comparison, Curve, Result, Row, TrialView

_LINE = Panel("locks", "Locks", "/s", (("a", "a"), ("b", "b")))


def test_sources_read_at_other_parts_of_the_second_lose_nothing():
    """Rounded to one grid, times like 0.99, 2.01, 2.99 would fall on 1, 2 and 3 by luck only."""
    shaky = [i + 0.5 + (-1) ** i * 0.02 for i in range(50)]
    steady = [i + 0.01 for i in range(50)]
    series = _series({"a": (steady, [1.0] * 50), "b": (shaky, [2.0] * 50)})
    assert series.tracks == ([1.0] * 50, [2.0] * 50)
    assert (series.start_s, series.step_s) == (0.01, 1.0)


def test_a_missing_second_and_a_nan_are_gaps():
    series = _series({"a": ([0.3, 1.3, 3.3, 4.3], [1.0, 2.0, 3.0, math.nan])})
    assert series.tracks[0] == [1.0, 2.0, None, 3.0, None]
    assert series.tracks[1] == []


def test_what_was_not_recorded_has_no_panel():
    assert timeseries.series(_LINE, {}, 600) is None
    assert timeseries.series(_LINE, {"a": Curve("a", "/s", [1.0], [math.nan])}, 600) is None
    log = Panel("latency", "L", "s", (("a", "a"),))
    assert timeseries.series(log, {"a": Curve("a", "s", [1.0, 2.0], [0.0, 0.0])}, 600) is None


@settings(deadline=None)  # the machine may be busy
@given(st.integers(0, 2**32), st.integers(101, 1500), st.floats(0, 1))
def test_thinning_keeps_the_extremes_in_their_order(seed, length, gaps):
    rng = random.Random(seed)
    samples = [None if rng.random() < gaps else rng.lognormvariate(0, 3) for _ in range(length)]
    thin = timeseries.thinned(PanelSeries(0.0, 1.0, (samples, [])), _LINE, 100)
    seen, thinned = ([s for s in each if s is not None] for each in (samples, thin.tracks[0]))
    assert thin.length <= 102
    assert (min(seen, default=0), max(seen, default=0)) == (
        min(thinned, default=0),
        max(thinned, default=0),
    )
    assert (thin.length - 1) * thin.step_s >= len(samples) - 1 - thin.step_s


def test_thinning_keeps_a_stack_together():
    user = [0.1 * (i % 10) for i in range(1000)]
    stack = Panel("cpu", "P", "cores", (("a", "a"), ("b", "b")), stacked=True)
    thin = timeseries.thinned(PanelSeries(0.0, 1.0, (user, [1 - u for u in user])), stack, 100)
    assert thin.totals == pytest.approx([1.0] * thin.length)


def test_the_number_of_processors_is_the_sum_of_all_modes():
    named = _named({"cpu.user": 1.2, "cpu.system": 0.3, "cpu.idle": 2.47})
    assert timeseries.cores(named) == 4.0
    assert timeseries.cores(_named({"cpu.user": 1.2})) is None


def test_a_stack_stands_on_zero_and_breaks_at_gaps():
    series = PanelSeries(0.0, 1.0, ([1.0, None, 2.0], [0.5, None, None]))
    assert timeseries.levels(series) == [[0.0, None, 0.0], [1.0, None, 2.0], [1.5, None, 2.0]]


def test_drawings_of_two_trials_share_their_axes():
    small, large = (_trial(i, {"disk.queue": value}) for i, value in enumerate((1.0, 9.0)))
    queue = next(s for s in timeseries.panels(_result([small])) if s.id == "queue")
    style = charts.Style("A", 1, 1)
    series = [timeseries.series(queue, timeseries.of_trial(t, "tps"), 600) for t in (small, large)]
    drawn = timeseries.plots(queue, [(small, series[0], style), (large, series[1], style)])
    assert drawn[0] is not None
    assert drawn[1] is not None
    assert drawn[0].ys == drawn[1].ys
    assert 0 < drawn[0].warm < drawn[0].end <= 100
    assert timeseries.plots(queue, [(small, None, style)]) == [None]


def test_means_are_of_the_window_only():
    found = resources.of_trial(_trial(0, {"threads_running": 5.0}, ramp=True), "tps").mean
    assert found["threads_running"] == pytest.approx(5.0 + sum(range(5, 10)) / 5)
    assert found[timeseries.WORK] == 100.0


def test_the_p99_of_a_trial_is_its_own_and_not_a_mean_of_seconds():
    tail = Curve("latency_p99_s", "s", [6.0, 7.0], [0.1, 0.9])
    trial = msgspec.structs.replace(_trial(0, {}), curves=[tail], metrics={"latency_p99_s": 0.7})
    assert resources.of_trial(trial, "tps").mean == {"latency_p99_s": 0.7}
    panel = timeseries.panels(_result([trial]))[1]
    sentence = resources.sentence(panel, resources.of_trial(trial, "tps"))
    assert sentence == "500 ms in the median second, from 100 ms to 900 ms."


def test_a_disks_latency_is_weighted_by_its_operations():
    trial = _with(Curve("disk.reads", "/s", [6.0, 7.0], [0.0, 90.0]))
    slow = Curve("disk.read_latency", "s", [6.0, 7.0], [5.0, 0.001])
    trial = msgspec.structs.replace(trial, gauges=[*trial.gauges, slow])
    assert resources.of_trial(trial, "tps").mean["disk.read_latency"] == pytest.approx(0.001)


def test_use_is_shown_beside_the_baseline():
    result = _result([_trial(0, {"cpu.user": 0.5}), _trial(1, {"cpu.user": 1.0}, "A")])
    styles = list(charts.styles(["STOCK", "A"]).values())
    (_, table), *_ = resources.resources(result, styles).usages
    assert table.head == ("Throughput", "CPU busy")
    assert [[cell.text for cell in cells] for _, cells in table.rows] == [
        ["100 /s", "0.5 cores"],
        ["100 /s", "1 cores"],
    ]
    assert [cells[1].ratio for _, cells in table.rows] == ["", "2.00\N{MULTIPLICATION SIGN}"]


def test_the_first_run_of_a_screen_is_no_baseline():
    result = _result([_trial(i, {"cpu.user": i + 1.0}, f"run-0{i + 1}") for i in range(2)])
    styles = list(charts.styles(["run-01", "run-02"]).values())
    made = resources.resources(result, styles)
    tables = [table for _, table in made.usages]
    tables += [table for view in made.panels for _, table in view.tables]
    assert {cell.ratio for table in tables for _, cells in table.rows for cell in cells} == {""}
    (chart, *_) = timeseries.charts(result, "rw")
    plots = timeseries.multiples(chart, styles, "STOCK")
    assert [[line.css for line in plot.lines] for plot in plots] == [["c0"], ["c1"]]
    first, second = timeseries.multiples(chart, styles, "run-01")
    assert [len(plot.lines) for plot in (first, second)] == [1, 2]


def test_a_latency_as_response_has_seconds_in_table_and_selector():
    trial = _trial(0, {"cpu.user": 0.5})
    trial = msgspec.structs.replace(trial, metrics={"latency_p99_s": 0.025})
    styles = list(charts.styles(["STOCK"]).values())
    means = {"STOCK": {timeseries.WORK: 0.025}}
    ((_, cells),) = resources.table(means, styles, "latency_p99_s").rows
    assert cells[0].text == "25 ms"
    assert resources.label(trial, "latency_p99_s").endswith(": 25 ms")


@pytest.mark.parametrize(
    ("id_", "gauges", "wanted"),
    [
        (
            "cpu",
            {"cpu.user": 1.037, "cpu.system": 0.6, "cpu.irq": 0.063, "cpu.idle": 0.3},
            "1.7 of 2 cores busy, 61 % of it user.",
        ),
        (
            "cpu",
            {"cpu.user": 0.5, "cpu.steal": 0.25, "cpu.idle": 0.25},
            "0.5 of 1 core busy, 100 % of it user; 0.25 cores stolen by other guests.",
        ),
        (
            "latency",
            {"disk.reads": 400.0, "disk.writes": 700.0, "disk.flush_latency": 0.0032},
            "At 1.1 k IOPS, a flush takes 3.2 ms.",
        ),
        (
            "operations",
            {"disk.reads": 100.0, "disk.writes": 300.0},
            "400 IOPS: 100 /s reads and 300 /s writes.",
        ),
        (
            "process",
            {"process.mysqld.cpu": 1.25, "process.load.cpu": 0.4},
            "The server used 1.25 cores and the load used 0.4 cores.",
        ),
        ("queue", {"disk.queue": 3.0}, "3 operations in flight on average, 3 at most."),
        (
            "pressure",
            {"psi.cpu": 0.1, "psi.io": 0.62},
            "Some task waited 62 % for I/O and 10 % for a processor.",
        ),
        (
            "pool",
            {"innodb.hit_ratio": 0.9915, "innodb.dirty_share": 0.12},
            "99.2 % of page requests were hits; 12 % of the pages were dirty.",
        ),
        (
            "network",
            {"net.rx_bytes": 2048.0, "net.retransmits": 3.0},
            "2 KiB/s in. 3 /s segments were sent again.",
        ),
        ("redo", {"innodb.redo_rate": 1048576.0}, "1 MiB/s on average, from 1 MiB/s to 1 MiB/s."),
        ("age", {}, "Not recorded in this trial."),
    ],
)
def test_the_sentence_of_each_panel_describes_its_window(id_, gauges, wanted):
    trial = _trial(0, gauges)
    panel = next(s for s in timeseries.panels(_result([trial])) if s.id == id_)
    assert resources.sentence(panel, resources.of_trial(trial, "tps")) == wanted


def test_the_baseline_and_the_leader_are_shown_first_by_their_median_trial():
    trials = [_trial(i, {"disk.queue": 1.0}, "A" if i % 2 else "STOCK", float(i)) for i in range(6)]
    made = resources.resources(_result(trials), list(charts.styles(["STOCK", "A"]).values()))
    assert made is not None
    assert [made.shown[i].trial.id for i in made.first] == [2, 3]
    assert [label for label, _ in made.groups] == ["Median of each treatment", "STOCK", "A"]
    assert len(made.groups[1][1]) == 3
    assert [view.panel.id for view in made.panels] == ["work", "queue"]
    assert "InnoDB redo" in made.missing


def test_the_samplers_own_cost_is_reported():
    trial = _trial(0, {"disk.queue": 1.0, "probe.cpu": 0.0021})
    made = resources.resources(_result([trial]), [charts.Style("STOCK", 0, 0)])
    assert made is not None
    assert made.cost == "The sampler used at most 0.21 % of one core."


def test_without_a_sampler_there_is_nothing_to_show():
    bare = msgspec.structs.replace(_trial(0, {}), gauges=[])
    assert resources.resources(_result([bare]), [charts.Style("STOCK", 0, 0)]) is None


def test_what_the_page_decodes_is_what_was_sampled():
    trials = [
        _trial(0, {"cpu.user": 0.5, "disk.read_latency": 0.002}),
        _trial(1, {"cpu.user": 2.0}),
    ]
    made = resources.resources(_result(trials), [charts.Style("STOCK", 0, 0)])
    assert made is not None
    key, data = encoded_samples(made)
    payload = msgspec.json.decode(gzip.decompress(base64.b64decode(key)), type=SampledKey)
    codes = array("h", gzip.decompress(base64.b64decode(data)))
    panel = next(s for s in payload.panels if s.id == "cpu")
    for trial, value in zip(payload.trials, (0.5, 2.0), strict=True):
        series = trial.series["cpu"]
        assert (series.tracks, series.length) == ([0], 10)
        found = list(accumulate(codes[series.at : series.at + series.length]))
        assert [c / 32766 * panel.scale.high for c in found] == pytest.approx(
            [value] * 10, rel=1e-3
        )
    assert "latency" not in payload.trials[1].series
    assert payload.trials[1].sentences["latency"] == "Not recorded in this trial."


def _series(of) -> PanelSeries:
    named = {name: Curve(name, "/s", *pair) for name, pair in of.items()}
    series = timeseries.series(_LINE, named, 600)
    assert series is not None
    return series


def _named(levels):
    return {name: Curve(name, "", [1.0, 2.0], [value] * 2) for name, value in levels.items()}


def _with(*gauges):
    return msgspec.structs.replace(_trial(0, {}), gauges=list(gauges))


def _trial(id_, levels, treatment="STOCK", tps=100.0, *, ramp=False):
    seconds = [float(t) for t in range(1, 11)]
    rises = [float(i) if ramp else 0.0 for i in range(10)]
    gauges = [Curve(n, "", seconds, [v + r for r in rises]) for n, v in levels.items()]
    work = [Curve("tps", "/s", seconds, [tps] * 10)]
    return TrialView(id_, treatment, "rw", 0, "ok", "", (5.0, 10.0), {"tps": tps}, work, gauges)


def _result(trials):
    rows = [Row(n, "rw", "adopt", "same", 1, None, None, {}, []) for n in ("STOCK", "A")]
    compared = Comparison("c", "tps", "STOCK", 1.0, None, {}, rows, "", [])
    return Result(compared, "", "", "", "", "", trials, {}, [], {}, 1)


def test_one_sample_is_no_course_over_time():
    def result(seconds):
        work = [Curve("tps", "/s", seconds, [5.0] * len(seconds))]
        about = ("ok", "", (0.0, 3.0), {"tps": 5.0}, work, [])
        return _result([TrialView(1, "STOCK", "rw", 0, *about)])

    assert timeseries.charts(result([3.0]), "rw") == []
    assert len(timeseries.charts(result([1.0, 2.0, 3.0]), "rw")) == 1
