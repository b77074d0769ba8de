"""Accounts of a finished run: which of its trials they are of."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

from mydyno.campaign.doses import COARSE, EXPECTED, PACED, Doses
from mydyno.cli import diagnose, why
from mydyno.diagnose import Diagnosis, LoadEvidence, account
from mydyno.journal.register import RunDir
from mydyno.loads import command, sysbench_oltp, sysbench_tpcc
from mydyno.model import (
    Figures,
    Interval,
    Metric,
    Outcome,
    Reset,
    Trial,
    TrialStatus,
    Window,
)
from mydyno.report.limits import render_limits
from mydyno.sample.probe_file import ProbeFileError

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


def oltp(**keys):
    (cell,) = sysbench_oltp.cells("rw", msgspec.convert(keys, sysbench_oltp.OltpParams))
    return cell


def tpcc(**options):
    (cell,) = sysbench_tpcc.cells("rw", sysbench_tpcc.TpccParams(threads=8, options=options))
    return cell


def test_only_a_load_that_names_a_rate_is_known_to_keep_one():
    (program,) = command.cells("rw", command.CommandParams(["load"], server=True), None)
    named = oltp(script="oltp_read_only", rate=60)
    assert why.keeps_rate(named)
    assert not any(map(why.keeps_rate, (program, oltp(script="oltp_read_only"), tpcc())))


@pytest.mark.parametrize(("options", "known"), [({}, True), ({"think-times": True}, False)])
def test_a_latency_without_thinking_gives_no_connections_in_flight(
    monkeypatch, tmp_path, options, known
):
    campaign = SimpleNamespace(**{**vars(CAMPAIGN), "workloads": {"rw": tpcc(**options)}})
    monkeypatch.setattr(why, "outcomes", lambda _: [trial(0, "A", 90.0)])
    monkeypatch.setattr(why, "mark_invalid", lambda done, _: done)
    monkeypatch.setattr(why, "figures", lambda *_: Figures())
    monkeypatch.setattr(why, "diagnosis", plain)
    run = SimpleNamespace(**{**vars(RUN), "campaign": campaign})
    (found,) = why.read_diagnoses(tmp_path, run, pytest.fail)
    assert (found.in_flight is not None) is known


@pytest.mark.parametrize("damaged", [False, True])
def test_a_diagnosis_without_a_sample_has_its_proofs(monkeypatch, tmp_path, damaged):
    def figures(*_):
        if damaged:
            raise ProbeFileError("cut")

    design = Doses("A", "rw", ("slow.host 80%",), "tps", 360.0, 1)
    names = ["A", *(["A", "slow.host 80%", "A"] * 3)]
    done = [trial(n, name, 100.0 - 20 * (name != "A") + n / 10) for n, name in enumerate(names)]
    done = [replace(o, trial=replace(o.trial, block=(o.trial.id + 2) // 3)) for o in done]
    campaign = SimpleNamespace(**{**vars(CAMPAIGN), "design": design})
    monkeypatch.setattr(why, "outcomes", lambda _: done)
    monkeypatch.setattr(why, "mark_invalid", lambda used, _: used)
    monkeypatch.setattr(why, "figures", figures)
    warned = []
    run = SimpleNamespace(**{**vars(RUN), "campaign": campaign})
    (found,) = why.read_diagnoses(tmp_path, run, warned.append)
    assert (found.n, found.answer, len(warned)) == (None, "slow.host", damaged)
    assert "the limit" in render_limits([found], 100)


THINKING = {
    "state.threads:mysqld/connection": 8.0,
    "state.seconds:mysqld/connection/poll": 8.0,
    "state.threads:load/sysbench": 8.0,
    "state.seconds:load/sysbench/sleep": 7.8,
}


def noted(monkeypatch, tmp_path, apart_s, found):
    """Return the names of what is noted of a first trial that reports so many seconds apart."""

    def evidence(*_):
        if isinstance(found, Exception):
            raise found
        return found

    reports = [Interval(apart_s * n, {}) for n in range(1, 6)]
    reports[-1] = replace(reports[-1], t_s=reports[-1].t_s + 6.0)  # it was held up once
    monkeypatch.setattr(diagnose, "replayed", lambda *_: SimpleNamespace(intervals=reports))
    monkeypatch.setattr(diagnose, "evidence", evidence)
    return {one.name for one in diagnose.note(CAMPAIGN, RunDir(tmp_path), trial(0, "A", 90.0))}


def test_a_closed_loop_that_thinks_needs_no_dose(monkeypatch, tmp_path):
    idle = LoadEvidence.of(Figures(THINKING), account(THINKING, 8.0))
    assert PACED in noted(monkeypatch, tmp_path, 1.0, idle)
    busy = {**THINKING, "state.seconds:load/sysbench/sleep": 1.0, "net.tx_packets": 9.0}
    found = noted(monkeypatch, tmp_path, 1.0, LoadEvidence.of(Figures(busy), account(busy, 8.0)))
    assert PACED not in found
    assert f"{EXPECTED}link.delay" in found


def test_a_damaged_sample_ends_no_diagnosis(monkeypatch, tmp_path):
    assert noted(monkeypatch, tmp_path, 1.0, ProbeFileError("cut")) == set()


def test_segments_need_a_load_that_reports_within_them(monkeypatch, tmp_path):
    assert noted(monkeypatch, tmp_path, 5.0, None) == set()
    assert noted(monkeypatch, tmp_path, 7.0, None) == {COARSE}
