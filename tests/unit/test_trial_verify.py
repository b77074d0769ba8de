"""What a load's own check of its data does to a trial, and a start that fails."""

import time
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from mydyno.campaign.bench import LoadOnly, NoServer, TrialInput
from mydyno.campaign.designs import Fixed
from mydyno.campaign.trial import Attempt, Spent, attempt, complaint, replayed
from mydyno.host.protocol import Completed
from mydyno.loads import WorkloadInfo
from mydyno.model import Action, HostError, Interval, Reset, Trial, TrialStatus

VIOLATED = b"TPC-C consistency condition 1 (clause 3.3.2.1) is violated in set 1: warehouse = 3\n"


class Load:
    """A load that is running and reports every second."""

    pid = 1

    def lines(self):
        yield from (b"%d\n" % second for second in range(1, 9))

    def stop(self, *, grace_s=10.0):
        return -15


@dataclass
class Host:
    """A host whose commands end as the test sets."""

    code: int
    asked: list = field(default_factory=list)

    def start(self, action, *, stderr=None):
        self.asked.append(action.argv[-1])
        return Load()

    def run(self, action, *, timeout_s=60.0):
        self.asked.append(action.argv[-1])
        return Completed(action, self.code, b"", VIOLATED if self.code else b"")


class Checked:
    """A workload that states what must be true of its data."""

    info = WorkloadInfo("w")

    def run(self, target, seed, env):
        return Action(("load",))

    def parse(self, lines):
        for line in lines:
            yield Interval(float(line), {"tps": 10.0})

    def verify(self, target, seed):
        return [Action(("check", str(seed)))]


def tried(folder, code, reset=Reset.DATASET):
    host = Host(code)
    trial = Trial(0, "STOCK", "w", 0, 7, reset)
    stop = Fixed(1.0, 5.0).of(trial, [])
    asked = Attempt(TrialInput(trial, {}, Checked(), folder), stop, 0.0, lambda _: None)
    return attempt(asked, NoServer(host), Spent()), host.asked


def test_a_violated_condition_fails_the_trial_with_its_words(tmp_path):
    outcome, asked = tried(tmp_path, 1)
    assert asked == ["load", "7"]
    assert outcome.status is TrialStatus.FAILED
    assert outcome.error == f"after the load: {VIOLATED.decode().strip()}"


def test_data_as_they_must_be_leave_the_trial_as_it_is(tmp_path):
    outcome, asked = tried(tmp_path, 0)
    assert asked == ["load", "7"]
    assert outcome.status is TrialStatus.OK
    assert {m.name: m.value for m in outcome.metrics}["tps"] == pytest.approx(10.0)


def test_a_server_that_goes_on_is_not_asked(tmp_path):
    outcome, asked = tried(tmp_path, 1, Reset.NONE)
    assert asked == ["load"]
    assert outcome.status is TrialStatus.OK


def test_of_a_traceback_the_clients_line_and_the_exception_are_shown():
    raised = 'Traceback (most recent call last):\n  File "x.py", line 1\n    f()\n    ^^^\n'
    again = "\nDuring handling of the above exception, another exception occurred:\n\n"
    text = (
        f"ERROR 2002 (HY000): no socket\n{raised}OSError: one\n{again}{raised}RuntimeError: two\n"
    )
    assert complaint(text) == ["ERROR 2002 (HY000): no socket", "RuntimeError: two"]
    assert complaint("".join(f"{n}\n" for n in range(9))) == ["4", "5", "6", "7", "8"]


class Refusing(LoadOnly):
    """A trial whose server takes a while, and then does not start."""

    def ready(self):
        time.sleep(0.02)
        raise self.inputs.workload.error


class Starts(NoServer):
    """A bench whose preparation counts as machine time."""

    def trial(self, inputs):
        return Refusing(self.host, inputs)


@pytest.mark.parametrize("error", [HostError("mysqld: no"), KeyboardInterrupt()])
def test_a_start_that_fails_or_is_interrupted_is_machine_time(tmp_path, error):
    workload, spent = Checked(), Spent()
    workload.error = error
    inputs = TrialInput(Trial(0, "STOCK", "w", 0, 7), {}, workload, tmp_path)
    asked = Attempt(inputs, Fixed(1.0, 5.0), 0.0, lambda _: None)
    with suppress(KeyboardInterrupt):
        outcome = attempt(asked, Starts(Host(0), timed=True), spent)
        assert outcome.error == "mysqld: no"
    assert spent.seconds >= 0.02
    assert replayed(tmp_path, workload).seconds == pytest.approx(spent.seconds, abs=0.001)
