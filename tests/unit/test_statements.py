"""Slow logs of trials: when they are kept, and treatments side by side by class."""

from dataclasses import replace

import pytest
from msgspec import structs

from mydyno.model import Trial
from mydyno.report.digestpage import Class, ClassMetric, Digest, Summary
from mydyno.report.statements import TrialLog, of_cut, rows, statements, treatments
from mydyno.report.units import TIMES
from mydyno.stack.protocol import split
from mydyno.stats.result import Comparison, Result
from mydyno.testbed.slow_log import wanted


def digest(*classes):
    return Digest(1, Summary(), [
        Class(name, f"select {name}", events=events, share=share, metrics={
            "query_time_s": ClassMetric(sum=mean * events, mean=mean, p95=2 * mean),
            "rows_examined": ClassMetric(sum=7.0 * events),
        })
        for name, events, share, mean in classes
    ])  # fmt: skip


def log(number, treatment, *classes):
    return TrialLog(Trial(number, treatment, "w", number, 1), 50.0, digest(*classes))


LOGS = (
    log(0, "base", ("a", 100, 0.9, 0.010), ("b", 10, 0.1, 0.002)),
    log(1, "base", ("a", 300, 0.8, 0.030), ("b", 10, 0.2, 0.002)),
    log(2, "new", ("a", 500, 0.3, 0.005), ("c", 10, 0.7, 0.1)),
)


def test_classes_are_medians_over_trials_the_largest_share_first():
    found = statements(LOGS)
    assert [one.fingerprint for one in found] == ["select a", "select c", "select b"]
    base = found[0].figures["base"]
    assert (base.calls_per_s, base.mean_s, base.share) == pytest.approx((4.0, 0.02, 0.85))
    assert base.rows == 7.0
    assert set(found[2].figures) == {"base"}


def test_tables_that_differ_by_a_number_are_one_class():
    (found,) = statements([log(0, "base", ("t1", 100, 0.6, 0.01), ("t22", 300, 0.4, 0.03))])
    assert found.fingerprint == "select tN"
    assert found.figures["base"].mean_s == pytest.approx(0.025)
    assert found.figures["base"].share == pytest.approx(1.0)


def test_treatments_stand_beside_the_baseline_with_their_ratios():
    compared = Comparison("c", "tps", "base", 1.0, None, {}, [])
    result = Result(
        compared, "", "", "", "", "", [], {}, [], {}, 2, statements=statements(reversed(LOGS))
    )
    assert treatments(result) == ["base", "new"]
    first, second, _ = rows(result, "w")
    shown = [(cell.mean, cell.ratio) for cell in first.cells]
    assert shown == [("20 ms", ""), ("5 ms", f"0.25{TIMES}")]
    assert second.cells[0].more == "not in its logs"
    assert rows(result, "other") == []


@pytest.mark.parametrize(
    ("value", "kept"), [("ON", True), ("1", True), ("OFF", False), ("0", False)]
)
def test_a_log_is_kept_where_the_treatment_switches_it_on(value, kept):
    assert wanted(split({"db/mysqld.slow_query_log": value})) is kept
    assert not wanted(split({}))


def test_of_a_log_that_was_cut_calls_are_of_the_time_that_was_kept():
    first, last = "2026-11-21T12:00:00.000000Z", "2026-11-21T12:00:10.500000Z"
    kept = Summary(first_seen=first, last_seen=last)
    (log_of_a,) = [log(0, "base", ("a", 210, 1.0, 0.01))]
    cut = replace(log_of_a, digest=structs.replace(log_of_a.digest, summary=kept), cut=True)
    (found,) = statements([cut])
    assert found.figures["base"].calls_per_s == pytest.approx(20.0)
    assert of_cut(LOGS) == []
    (warning,) = of_cut([*LOGS, cut])
    assert "in trial 1 (10.5 s): its statements are of that time" in warning
    assert statements([replace(log_of_a, cut=True)])[0].figures["base"].calls_per_s == 210 / 50
