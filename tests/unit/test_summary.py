"""A window's numbers: weighted by time, merged and never averaged."""

import random
from math import log

import pytest
from hdrh.histogram import HdrHistogram

from mydyno.model import Interval, Window
from mydyno.model.values import levels, mean_us, percentile_us
from mydyno.stats.estimates import cumulative, merged, summarise, tens

WINDOW = Window(2, 6)


def metrics(intervals, window=WINDOW):
    return {m.name: m.value for m in summarise(intervals, window, "tps")}


def test_the_window_is_open_at_its_start_and_closed_at_its_end():
    found = metrics([Interval(t, {"tps": t * 10.0}) for t in range(1, 10)])
    assert found["tps"] == pytest.approx((30 + 40 + 50 + 60) / 4)


def test_rates_are_weighted_by_time():
    intervals = [Interval(2, {"tps": 1.0}), Interval(3, {"tps": 100.0}), Interval(6, {"tps": 20.0})]
    assert metrics(intervals)["tps"] == pytest.approx((100 + 3 * 20) / 4)


def test_an_interval_that_straggles_belongs_to_its_second():
    found = metrics([Interval(t + 0.01, {"tps": t * 10.0}) for t in range(1, 10)])
    assert found["tps"] == pytest.approx(45)


def histogram(values):
    h = HdrHistogram(1, 3_600_000_000, 3)
    for value in values:
        h.record_value(value)
    return h.encode().decode()


def test_percentiles_are_of_the_merged_histogram():
    fast, slow = histogram([1000] * 990), histogram([500_000] * 11)
    intervals = [Interval(3, {"tps": 1.0}, fast), Interval(4, {"tps": 1.0}, slow)]
    found = metrics(intervals)
    assert found["latency_p99_s"] == pytest.approx(0.5, rel=0.001)
    assert found["latency_p50_s"] == pytest.approx(0.001, rel=0.001)


def test_without_histograms_the_median_of_the_seconds_stands():
    intervals = [
        Interval(t, {"tps": 1.0, "latency_p99_s": v}) for t, v in [(3, 0.1), (4, 9), (5, 0.2)]
    ]
    assert metrics(intervals)["latency_p99_s"] == 0.2


def test_without_histograms_the_greatest_maximum_and_the_mean_of_the_means_stand():
    values = [(3, 0.1), (4, 9.0), (6, 0.2)]
    every = [Interval(t, {"tps": 1.0, "latency_max_s": v, "latency_mean_s": v}) for t, v in values]
    every.insert(0, Interval(2.5, {"tps": 1.0}))
    found = metrics(every)
    assert found["latency_max_s"] == 9.0
    assert found["latency_mean_s"] == pytest.approx((0.5 * 0.1 + 9.0 + 2 * 0.2) / 3.5)


def test_an_invalid_histogram_is_reported():
    with pytest.raises(ValueError, match="not an HdrHistogram"):
        merged(["bm8="])


def test_a_trend_is_no_spread():
    rising = [Interval(t, {"tps": 100.0 * 1.02**t}) for t in range(1, 40)]
    assert metrics(rising, Window(0, 40))["tps_logsd"] == pytest.approx(0, abs=1e-9)


def test_a_second_without_work_is_a_spread():
    values = [100.0] * 20
    values[9] = 0.0
    stalled = [Interval(t + 1, {"tps": v}) for t, v in enumerate(values)]
    assert metrics(stalled, Window(0, 20))["tps_logsd"] > 0.9


def test_the_spread_of_latency_is_that_of_its_logarithm():
    even, wide = histogram([1000] * 500), histogram([1000, 2000] * 500)
    found = metrics([Interval(3, {"tps": 1.0}, even), Interval(4, {"tps": 1.0}, even)])
    assert found["latency_logsd"] == pytest.approx(0, abs=1e-6)
    found = metrics([Interval(3, {"tps": 1.0}, wide)])
    assert found["latency_logsd"] == pytest.approx(log(2) / 2, rel=0.01)
    assert "latency_logsd" not in metrics([Interval(3, {"tps": 1.0})])


def test_the_spread_of_p99_is_that_between_seconds():
    steady = [Interval(t, {"tps": 1.0, "latency_p99_s": 0.01}) for t in range(1, 21)]
    assert metrics(steady, Window(0, 20))["latency_p99_logsd"] == pytest.approx(0, abs=1e-9)
    jumps = [Interval(t, {"tps": 1.0, "latency_p99_s": 0.01 * (1 + t % 2)}) for t in range(1, 21)]
    assert metrics(jumps, Window(0, 20))["latency_p99_logsd"] == pytest.approx(log(2) / 2, rel=0.1)
    assert "latency_p99_logsd" not in metrics(jumps[:2], Window(0, 20))


def test_the_mean_latency_of_threads_that_wait_is_their_number_over_the_requests():
    def second(t, iops, fsyncs=0.0, threads=4):
        return Interval(t, {"iops": iops, "fsyncs": fsyncs}, threads=threads)

    stalled = [second(2, 9e9), second(3, 1000.0, 500.0), second(4, 0.0), second(5, 1500.0)]
    assert metrics(stalled)["latency_mean_s"] == pytest.approx(4 * 3 / 3000)
    assert "latency_mean_s" not in metrics([second(3, 1000.0, threads=0)])
    assert "latency_mean_s" not in metrics([second(3, 0.0)])
    reported = ((2, 9.0), (3, 0.001), (4, 0.003), (6, 0.002))
    own = [Interval(t, {"latency_mean_s": v}) for t, v in reported]
    assert metrics(own)["latency_mean_s"] == pytest.approx(0.002)  # of a command: as it reports it


def test_fairness_is_that_of_all_transactions_in_the_window():
    def second(t, *counts):
        return Interval(t, {"tps": 1.0}, by_thread=counts)

    turns = [second(3, 9, 9), second(4, 10, 0), second(5, 0, 10)]
    assert metrics(turns)["unfairness_ratio"] == 0
    assert metrics([second(3, 30, 10)])["unfairness_ratio"] == pytest.approx(0.5)
    assert "unfairness_ratio" not in metrics([second(3, 30)])  # one connection is fair
    assert "unfairness_ratio" not in metrics([second(3, 0, 0)])
    assert "unfairness_ratio" not in metrics([second(3, 3, 4), Interval(4, {"tps": 1.0})])


def test_an_empty_window_has_no_summary():
    assert metrics([Interval(1, {"tps": 1.0})]) == {}


def test_levels_are_those_of_the_librarys_own_iterators():
    chance = random.Random(5)
    for size in (1, 2, 3, 50, 2000):
        counted = HdrHistogram(1, 3_600_000_000, 3)
        for _ in range(size):
            counted.record_value(round(10 ** chance.uniform(0, 9.5)), chance.randint(1, 9))
        for one in (counted, merged([counted.encode()])):
            found = levels(one)
            theirs = [
                (i.value_iterated_to, i.count_at_value_iterated_to)
                for i in one.get_recorded_iterator()
            ]
            assert [(level.high, level.events) for level in found] == theirs
            assert all(level.low == one.get_lowest_equivalent_value(level.high) for level in found)
            assert mean_us(found) == one.get_mean_value()
            for percent in (0.1, 50, 95, 99, 99.9, 100):
                assert percentile_us(found, percent) == one.get_value_at_percentile(percent)
    assert (levels(merged([])), percentile_us([], 99.0), mean_us([])) == ([], 0, 0.0)


def test_the_cumulative_curve_ends_at_one():
    points = cumulative(levels(merged([histogram(range(1000, 100_000, 100))])))
    assert points[-1][1] == 1.0
    assert [p[0] for p in points] == sorted(p[0] for p in points)
    assert len(points) <= 410


def test_thinning_moves_no_percentile_that_a_report_shows():
    chance = random.Random(5)
    values = [round(chance.lognormvariate(9, 1.5)) for _ in range(20_000)]
    found = levels(merged([histogram(values)]))
    points = cumulative(found)
    assert len(points) < len(found) / 2
    for share in (0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999):
        shown = next(t for t, reached in points if reached >= share)
        assert shown == percentile_us(found, 100 * share) / 1e6


def test_bins_are_means_over_time():
    seconds = [Interval(t + 1, {"tps": v}) for t, v in enumerate([100.0] * 10 + [200.0] * 10)]
    assert tens(seconds, "tps").values == pytest.approx((100.0, 200.0))
    uneven = [Interval(t, {"tps": v}) for t, v in [(4, 50.0), (10, 100.0), (20, 80.0)]]
    assert tens(uneven, "tps").values == pytest.approx((80.0, 80.0))
    late = [*seconds[:9], Interval(10.02, {"tps": 100.0}), Interval(19.97, {"tps": 40.0})]
    found = tens(late, "tps")
    assert found.t_s == (10.0, 20.0)
    assert found.values == pytest.approx((100.0, 40.0), rel=0.01)
    assert tens(seconds[:9], "tps").values == ()
    assert tens([], "tps").t_s == ()


def test_a_bin_of_latencies_equals_the_summary_of_a_window():
    reports = [Interval(t, {"tps": 1.0, "latency_p99_s": t / 100}) for t in range(1, 21)]
    assert tens(reports, "latency_p99_s").values == pytest.approx((0.06, 0.16))
    merged_one = [Interval(t, {"tps": 1.0}, histogram([1000 * t])) for t in range(1, 11)]
    assert tens(merged_one, "latency_p99_s").values == pytest.approx((0.01,), rel=0.01)
