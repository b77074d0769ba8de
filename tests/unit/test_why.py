"""Accounts of a finished run: which of its trials they are of."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from mydyno.cli import why
from mydyno.diagnose import Diagnosis
from mydyno.model import Figures, Metric, Outcome, Reset, Trial, TrialStatus, Window

INFO = SimpleNamespace(response="tps", closed_loop=True, needs_server=True)
CAMPAIGN = SimpleNamespace(
    workloads={"rw": SimpleNamespace(info=INFO, threads=8)},
    treatments={"A": {}, "B": {}},
    rule=None,
    design=None,
)
RUN = SimpleNamespace(campaign=CAMPAIGN, contents=SimpleNamespace(events=()), warnings=())
DISTURBED = {1, 3}


def trial(number, name, tps):
    metrics = (Metric("tps", tps, "/s"), Metric("latency_mean_s", 0.08, "s"))
    about = Trial(number, name, "rw", 0, 1, Reset.NONE)
    return Outcome(about, TrialStatus.OK, Window(number, number + 1.0), metrics)


def judged(done, _rule):
    return [replace(o, status=TrialStatus.VOID) if o.trial.id in DISTURBED else o for o in done]


def plain(subject, _figures):
    about = (subject.treatment, subject.workload, subject.trials, subject.throughput, subject.unit)
    seen = {"in_flight": subject.in_flight, "window": subject.window}
    return Diagnosis(*about, subject.n, [], None, [], [], "unknown", **seen)


def test_an_account_is_of_the_trials_that_a_verdict_is_of(monkeypatch, tmp_path):
    done = [trial(0, "A", 90.0), trial(1, "A", 40.0), trial(2, "A", 110.0), trial(3, "B", 30.0)]
    monkeypatch.setattr(why, "outcomes", lambda _: done)
    monkeypatch.setattr(why, "mark_invalid", judged)
    monkeypatch.setattr(why, "figures", lambda *_: Figures())
    monkeypatch.setattr(why, "diagnosis", plain)
    valid, other = why.read_diagnoses(tmp_path, RUN, pytest.fail)
    assert (valid.trials, valid.throughput, valid.window) == (2, 100.0, (0.0, 3.0))
    assert valid.in_flight == pytest.approx(8.0)
    assert valid.doubts == []
    # where none is valid, a disturbed one is better than nothing, and is marked
    assert (other.trials, other.throughput, other.doubts) == (1, 30.0, ["disturbed"])


def test_a_load_that_names_no_threads_has_the_connections_that_the_server_counts():
    load, named = SimpleNamespace(), SimpleNamespace(threads=8)
    listed = {"state.threads:mysqld/connection": 16.0, "status.threads_connected": 40.0}
    assert why.connections_of(load, listed) == 16
    assert why.connections_of(load, {"status.threads_connected": 17.0}) == 16, "less our own"
    assert why.connections_of(load, {}) == 1
    assert why.connections_of(named, listed) == 8
