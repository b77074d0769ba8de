"""Windows that end before flushing keeps up or the pool is filled: warned about, with figures.

`honeymoon/windows.json` holds what the sampler saw of real trials of 30 s, MariaDB 10.11 on a lab
disk.  The small disk is the campaign in `honeymoon/small-disk.toml`: its figures must warn.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mydyno.campaign.spec import decode
from mydyno.model import FindingPlace, Metric, Outcome, Series, Trial, TrialStatus, Window
from mydyno.report.words import words
from mydyno.sample.derive import deferred
from mydyno.stats import Rule
from mydyno.stats.checks import WindowsEvidence, findings
from worded import compare

HERE = Path(__file__).parent / "honeymoon"
SEEN = json.loads((HERE / "windows.json").read_text())
WINDOW = Window(10.0, 30.0)
TIMES = tuple(float(t) for t in range(1, 31))


def recorded(name):
    return [Series(n, "", tuple(t), tuple(v)) for n, (t, v) in SEEN[name].items()]


def found(*trials, window=WINDOW):
    outcomes = [
        Outcome(Trial(i, "A", "rw", i, 1), TrialStatus.OK, window, tuple(deferred(one, window)))
        for i, one in enumerate(trials)
    ]
    return findings([WindowsEvidence(FindingPlace("A", "rw"), outcomes)])


def test_a_window_without_flushing_is_warned_about_with_its_figures():
    (one,) = found(recorded("MYSQL on a small disk"))
    assert words(one) == (
        "its measured window is early (InnoDB wrote 3.22 MiB/s of redo and 0 /s of its pages: "
        "flushing had not begun; the checkpoint age rose from 52.8 MiB to 74.2 MiB in the window's "
        "second half, with 3.22 MiB/s of redo: flushing does not keep up yet; the buffer pool was "
        "filling: 8.81 % of its pages came within the window), so its figures may not last; run "
        'longer trials, or add design.soak = "1h", which runs the winner for so long'
    )


def test_a_checkpoint_age_that_still_rises_is_enough():
    (one,) = found(recorded("STOCK on a small disk"))
    assert set(one.figures) == {"redo", "before", "after"}


@pytest.mark.parametrize("name", [name for name in SEEN if "small disk" not in name])
def test_steady_windows_are_not_warned_about(name):
    """Of a load that writes with a redo log that it fills, and of one that only reads."""
    assert found(recorded(name)) == []


def series(**values):
    names = {"age": "checkpoint_age", "redo": "redo_rate", "free": "free_pages"}
    return [
        Series(f"innodb.{names.get(n, n)}", "", TIMES, tuple(map(float, v)))
        for n, v in values.items()
    ]


def test_what_is_hardly_written_is_not_flushed_late():
    """The server itself writes some redo where nobody else does; its age rises by all of it."""
    assert found(series(age=[500 * t for t in TIMES], redo=[500] * 30, writes=[0] * 30)) == []
    busy = series(age=[5e5 * t for t in TIMES], redo=[5e5] * 30, writes=[0] * 30)
    assert set(found(busy)[0].figures) == {"redo", "written", "before", "after"}


def test_a_server_that_gives_no_age_and_no_pages_is_not_judged():
    """MySQL before 8.0.30 has no LSN in its status: only whether pages are written is known."""
    assert found(series(redo=[5e5] * 30)) == []
    assert found(series(redo=[5e5] * 30, writes=[300] * 30)) == []
    assert set(found(series(redo=[5e5] * 30, writes=[0] * 30))[0].figures) == {"redo", "written"}


def test_a_full_pool_that_frees_pages_ahead_is_not_filling():
    full = series(free_pages=[900 if t % 2 else 1500 for t in TIMES], data_pages=[6500] * 30)
    assert found(full) == []
    filling = series(
        free_pages=[9000 - 200 * t for t in TIMES], data_pages=[200 * t for t in TIMES]
    )
    assert set(found(filling)[0].figures) == {"filled"}


def test_the_usual_trial_of_a_treatment_counts():
    early, steady = recorded("MYSQL on a small disk"), []
    assert found(early, early, early, steady) != []
    assert found(steady) == []


def test_the_warning_is_in_the_row_of_its_treatment():
    rule = Rule("c", "A", {"rw": "tps"}, guards={})
    late = deferred(recorded("MYSQL on a small disk"), WINDOW)
    some = [
        Outcome(Trial(i, n, "rw", i // 2, 1), TrialStatus.OK, WINDOW, (Metric("tps", 100.0, "/s"),))
        for i, n in enumerate("ABAB")
    ]
    some = [replace(o, metrics=(*o.metrics, *late)) if o.trial.id % 2 else o for o in some]
    rows = {row.name: row.warnings for row in compare(some, rule, ["A", "B"]).treatments}
    assert not any("early" in w for w in rows["A"])
    assert any("its measured window is early" in w for w in rows["B"])


def test_the_campaign_of_the_failing_case_is_a_spec():
    text = (HERE / "small-disk.toml").read_text()
    assert decode(text, "small-disk.toml").design.rungs == ["STOCK", "KERN", "MYSQL", "ALL"]
