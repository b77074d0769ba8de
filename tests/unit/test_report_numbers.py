"""Numbers, axes and curves of the report."""

import base64
import gzip
import math
from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mydyno.report import charts, timeseries, units
from mydyno.report.html import encoded
from mydyno.stats.result import Comparison, Curve, Distribution, Ratio, Result, Row, TrialView


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1234, "/s", "1.23 k/s"),
        (999.6, "/s", "1 k/s"),
        (0, "/s", "0 /s"),
        (711.2, "/s", "711 /s"),
        (0.034, "s", "34 ms"),
        (0.9999, "s", "1 s"),
        (2.5e-6, "s", "2.5 µs"),
        (0, "s", "0 s"),
        (600, "s", "10 min"),
        (2**29, "B", "512 MiB"),
        (2**30, "B", "1 GiB"),
        (125e6, "B/s", "119 MiB/s"),
        (0.1234, "ratio", "0.123"),
        (1e-9, "s", "0.001 µs"),
        (math.nan, "/s", "\N{EN DASH}"),
    ],
)
def test_quantities_have_three_figures_and_a_scaled_unit(value, unit, shown):
    assert units.quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(48, "48 s"), (812, "14 min"), (12_240, "3.4 h"), (360_000, "100 h")]
)
def test_durations_are_for_prose(seconds, shown):
    assert units.duration(seconds) == shown


def test_a_moment_is_printed_in_utc_to_the_minute():
    assert units.moment("2026-11-21T05:55:40.090+01:00") == "2026-11-21 04:55 UTC"
    assert units.moment("soon") == "soon"


def test_a_narrow_interval_gets_a_third_decimal():
    assert units.interval(Ratio(1.004, 0.989, 1.019)) == ("1.004", "0.989", "1.019")
    assert units.interval(Ratio(1.92, 1.71, 2.15)) == ("1.92", "1.71", "2.15")
    assert units.interval(Ratio(12.34, 0.05, math.inf)) == ("12.3", "0.050", "∞")


def test_sizes_are_scaled_and_counts_are_not():
    assert units.setting("db/mysqld.innodb_buffer_pool_size", "536870912") == "512 MiB"
    assert units.setting("db/kernel.sysctl.fs.aio-max-nr", "1048576") == ""
    assert units.setting("db/mysqld.innodb_buffer_pool_size", "1G") == ""


def test_a_number_stays_with_its_unit():
    assert units.prose("In 60 s 95 % and 5 seconds") == "In 60\u00a0s 95\u00a0% and 5 seconds"


def test_escapes_of_terminals_are_taken_out():
    assert units.legible("a\x1b[31mred\x1b[0m\x00b\nc") == "ared b\nc"


@given(st.floats(1e-6, 1e9), st.floats(1.001, 1e6), st.booleans())
def test_ticks_lie_on_the_axis_and_in_order(low, factor, log):
    made = (charts.logarithmic if log else charts.linear)(low, low * factor)
    places = [made.at(tick) for tick in made.ticks]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert made.at(low * factor) >= made.at(low)


def test_time_is_counted_in_halves_of_minutes():
    assert charts.clock(120).ticks == (0, 30, 60, 90, 120)


def test_each_nine_takes_the_same_room():
    assert [charts.nines(s, 0.9999) for s in (0, 0.9, 0.99, 0.9999, 1)] == [0, 25, 50, 100, 100]


def test_an_interval_far_beyond_the_others_is_cut_with_a_sign():
    made = charts.forest([Ratio(1.1, 1.0, 1.2), Ratio(1.2, 0.01, math.inf)], 0.03)
    wild = made.whisker(Ratio(1.2, 0.01, math.inf))
    assert (wild.cut_low, wild.cut_high) == (True, True)
    assert (wild.low, wild.high) == (0, 100)
    assert not made.whisker(Ratio(1.1, 1.0, 1.2)).cut_high
    assert made.band[0] < made.one < made.band[1]


def test_without_effects_there_is_still_an_axis():
    assert 49 < charts.forest([], 0.0).one < 51


def test_styles_are_unique_and_the_baseline_is_grey():
    styles = charts.styles([f"t{i}" for i in range(30)])
    assert styles["t0"].css == "c0 d0"
    assert len({style.css for style in styles.values()}) == 30
    assert all(style.colour for style in list(styles.values())[1:])


def test_paths_break_at_gaps():
    assert charts.path([(0, 0), (10, 50), None, (20, 100)]) == "M0 1000L100 500M200 0"
    assert charts.area([(0, 0), None, (20, 0)], [(0, 10), None, (20, 5)]).count("Z") == 2


def test_what_the_page_decodes_is_what_was_measured():
    """Gaps, trials of unequal length and a log scale survive the packing to 1 part in 30000."""
    chart = timeseries.charts(_result([[90.0, 100.0, 110.0], [80.0, 85.0]]), "rw")[0]
    slow = timeseries.charts(_result([[0.001, 0.5, 30.0], [0.0, 0.01]]), "rw")[1]
    keys, data = encoded([("a", chart), ("b", slow)], ["STOCK"])
    codes = array("h", gzip.decompress(base64.b64decode(data)))
    assert _decoded(keys[0], codes[:8])[1:4] == pytest.approx([90, 100, 110], rel=1e-4)
    assert _decoded(keys[0], codes[4:8]) == [None, *map(_about, [80, 85]), None]
    assert _decoded(keys[1], codes[8:12])[1:] == pytest.approx([0.001, 0.5, 30], rel=1e-3)
    assert _decoded(keys[1], codes[12:]) == [None, None, _about(0.01), None]


def test_three_hundred_thousand_points_stay_small():
    noise = [100 + (i * 7919 % 997) / 50 for i in range(30_000)]
    chart = timeseries.charts(_result([noise] * 5), "rw")
    keys, data = encoded([(c.metric, c) for c in chart], ["STOCK"])
    assert sum(key.length * len(key.tracks) for key in keys) > 300_000
    assert len(data) < 1_200_000


def test_each_workload_has_its_own_response():
    """A campaign of sysbench and fio decides on ``tps, iops``: each load has one of them."""
    result = _result([[1.0]])
    both = replace(result, comparison=replace(result.comparison, response="iops, tps"))
    assert timeseries.response(both, "rw") == "tps"
    assert units.names("iops, tps") == "I/O operations and throughput"
    assert units.heading("iops_logsd") == "Spread of I/O operations"


def test_medians_ignore_what_was_not_measured():
    chart = timeseries.charts(_result([[1.0, 4.0], [3.0]]), "rw")[0]
    low, middle, high = timeseries.spread(chart, "STOCK")
    assert (low, middle, high) == ([None, 1, 4], [None, 2, 4], [None, 3, 4])


def test_a_failed_trial_draws_nothing():
    result = _result([[1.0, 2.0]], status="failed")
    assert timeseries.charts(result, "rw") == []


def test_the_table_of_a_curve_steps_in_full_seconds():
    chart = timeseries.charts(_result([[float(i) for i in range(1, 121)]]), "rw")[0]
    rows = timeseries.multiples_table(chart, [charts.Style("STOCK", 0, 0)]).rows
    assert [row[0] for row in rows] == [f"{t} s" for t in range(10, 121, 10)]
    assert rows[0][1] == "5.5 /s"


def test_percentiles_are_reached_not_interpolated():
    found = Distribution("A", "rw", 100, [(0.01, 0.5), (0.02, 0.99), (0.9, 1.0)])
    assert [charts.percentile(found, p) for p in (0.5, 0.51, 0.99, 0.999)] == [
        0.01,
        0.02,
        0.02,
        0.9,
    ]


def test_a_tail_of_one_operation_is_not_drawn():
    style = charts.Style("A", 1, 1)
    drawn = charts.distribution_plot(
        [(style, Distribution("A", "rw", 100, [(0.01, 0.5), (9.0, 1.0)]))]
    )
    assert drawn is not None
    assert drawn.lines[0].path.count("L") == 0
    assert charts.distribution_plot([]) is None


def test_kinds_of_transactions_are_separate_and_never_taken_for_all_of_them():
    total = Distribution("A", "rw", 200, [(0.01, 0.5), (0.9, 1.0)])
    kind = Distribution("A", "rw", 50, [(0.02, 0.95), (0.03, 0.99), (0.4, 1.0)], "stock_level")
    other = Distribution("A", "w", 50, [(0.02, 1.0)], "payment")
    style = charts.Style("A", 1, 1)
    found = charts.of_workload([kind, total, other], "rw", [style])
    assert [d for _, d in found] == [total]
    table = charts.kinds([kind, total, other], "rw", [style])
    assert table.rows == (("stock level", "A", "50", "25 %", "20 ms", "20 ms", "30 ms", "400 ms"),)
    assert len(table.head) == len(table.rows[0])
    assert charts.kinds([total], "rw", [style]).rows == ()


def test_repeats_are_summarised_by_their_widest_treatment():
    trials = [_trial(i, [1.0], {"tps": v}) for i, v in enumerate((100.0, 110.0))]
    drawn = charts.dot_plot(trials, [charts.Style("STOCK", 0, 0)], "tps", "/s")
    assert drawn is not None
    assert drawn.spread == "Repeats of one treatment differ by at most 10 % (STOCK)."
    assert charts.dot_plot(trials, [], "iops", "/s") is None


def _about(value):
    return pytest.approx(value, rel=1e-3)


def _decoded(key, deltas):
    scale, found = key.scale, []
    for code in accumulate(deltas[: key.length]):
        part = code / 32766
        value = (
            scale.low * (scale.high / scale.low) ** part
            if scale.log
            else scale.low + part * (scale.high - scale.low)
        )
        found.append(None if code == -1 else value)
    return found


def _row(name, effect):
    return Row(name, "rw", "adopt", "same", 3, None, effect, {}, [])


def _trial(block, values, metrics, status="ok"):
    seconds = [float(t) for t in range(1, len(values) + 1)]
    pair = [Curve("tps", "/s", seconds, values), Curve("latency_p99_s", "s", seconds, values)]
    window = (0.0, float(len(values)))
    return TrialView(block, "STOCK", "rw", block, status, "", window, metrics, pair)


def _result(series, status="ok"):
    compared = Comparison("c", "tps", "STOCK", 1.0, None, {}, [_row("STOCK", None)], "", [])
    trials = [_trial(i, values, {}, status) for i, values in enumerate(series)]
    return Result(compared, "", "", "", "", "", trials, {}, [], {}, len(series))


@pytest.mark.parametrize("make", [charts.linear, charts.logarithmic])
@pytest.mark.parametrize("low", [4962.5599999, 1e-9, 70.0])
@pytest.mark.parametrize("apart", [0.0, 1e-13, 1e-8])
def test_values_that_are_one_still_have_an_axis(make, low, apart):
    high = low * (1 + apart)
    found = make(low, high)
    assert found.low < found.high
    assert 0 <= found.at(low) <= found.at(high) <= 100


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1600, "/s", "1.60 k/s"),
        (2000, "/s", "2.00 k/s"),
        (345.6, "/s", "346 /s"),
        (85, "/s", "85.0 /s"),
        (0.05, "/s", "0.0500 /s"),
        (0, "/s", "0 /s"),
        (1024**3, "B", "1 GiB"),
        (float("nan"), "/s", units.NOTHING),
    ],
)
def test_measured_rates_have_all_their_figures(value, unit, shown):
    assert units.measurement(value, unit) == shown
