"""A load whose rate is stepped: the last rate that a treatment keeps up with."""

import pytest

from mydyno.loads import sysbench_oltp
from mydyno.model import Metric, Outcome, SpecError, Trial, TrialStatus, Window
from mydyno.report.verdicts import ceiling_sentences
from mydyno.stats.ceiling import ceilings
from mydyno.stats.result import Comparison

PARAMS = {"script": "oltp_update_index", "threads": 4}


def outcome(number, treatment, rate, tps, p99_s=0.01, status=TrialStatus.OK, **more):
    values = {"tps": tps, "latency_p99_s": p99_s, **more}
    metrics = tuple(Metric(name, value, "") for name, value in values.items())
    trial = Trial(number, treatment, f"w/4@{rate}", 0, 1)
    return Outcome(trial, status, Window(0, 60), metrics)


def test_a_list_of_rates_is_a_cell_each():
    found = sysbench_oltp.cells("w", sysbench_oltp.OltpParams(**PARAMS, rate=[100, 50]))
    assert [cell.info.name for cell in found] == ["w/4@100", "w/4@50"]
    assert [cell.params.rate for cell in found] == [100, 50]
    assert len({cell.info.data_key for cell in found}) == 1
    assert not any(cell.info.closed_loop for cell in found)
    (alone,) = sysbench_oltp.cells("w", sysbench_oltp.OltpParams(**PARAMS, rate=100))
    assert alone.info.name == "w/4"


@pytest.mark.parametrize("rates", [[], [100, 100], [0, 100], [-1], [2_000_000]])
def test_rates_that_make_no_sense_are_refused(rates):
    with pytest.raises(SpecError, match=r"workloads\.w\.rate"):
        sysbench_oltp.cells("w", sysbench_oltp.OltpParams(**PARAMS, rate=rates))


def test_a_rate_at_which_half_of_the_trials_are_lost_is_missed():
    lost = [
        outcome(1, "a", 200, 0.0, status=TrialStatus.FAILED),
        outcome(2, "a", 200, 0.0, status=TrialStatus.STALLED),
    ]
    ends = [outcome(0, "a", 100, 100.0), outcome(3, "a", 200, 199.0)]
    (one,) = ceilings([*ends, *lost])
    assert (one.kept, one.missed) == (100, 200)
    (one,) = ceilings([*ends, outcome(4, "a", 200, 200.0), lost[0]])
    assert (one.kept, one.missed) == (200, None)


def test_the_ceiling_is_the_last_rate_before_one_is_missed():
    outcomes = [
        outcome(0, "a", 100, 100.0),
        outcome(1, "a", 200, 199.0, 0.02),
        outcome(2, "a", 400, 310.0),
        outcome(3, "a", 800, 800.0),  # a rate beyond one that was missed does not count
        outcome(4, "b", 100, 100.0, disk_writes=250.0),
        outcome(5, "b", 200, 200.0, 0.03, disk_writes=480.0),
        outcome(6, "c", 100, 90.0),
        outcome(7, "c", 200, 90.0),
        outcome(8, "d", 100, 100.0),
        outcome(9, "d", 200, 1.0, status=TrialStatus.VOID),
        outcome(10, "e", 100, 100.0),
        outcome(
            11, "e", 5000, 0.0, status=TrialStatus.FAILED
        ),  # requests pile up until it gives up
    ]
    a, b, c, e = ceilings(outcomes)
    assert (a.kept, a.latency_p99_s, a.missed, a.did) == (200, 0.02, 400, 310.0)
    assert (b.kept, b.missed) == (200, None)
    assert (c.kept, c.missed) == (None, 100)
    compared = Comparison("c", "tps", "a", 1.0, None, {}, [], ceilings=[a, b, c, e])
    shown = "keeps up with 200 /s (p99 30 ms, 480 /s writes on the disk)"
    assert ceiling_sentences(compared) == [
        "a, w/4: keeps up with 200 /s (p99 20 ms); of 400 /s it did 310 /s.",
        f"b, w/4: {shown}, the highest rate that was tried.",
        "c, w/4: keeps up with no rate; of 100 /s it did 90.0 /s.",
        "e, w/4: keeps up with 100 /s (p99 10 ms); its trials at 5000 /s failed.",
    ]
