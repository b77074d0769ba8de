"""How far a campaign is: trials in total, time and budget left, on the live line and in status."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from command_line import COMMAND, shown
from mydyno.campaign.blocks import AGAIN
from mydyno.campaign.race import PARTS
from mydyno.campaign.timing import Costs
from mydyno.campaign.treatments import Environment
from mydyno.cli.plan import Remarks
from mydyno.cli.recipes import SpecSource
from mydyno.cli.status import left_s, of, trials_of
from mydyno.cli.terminal import Progress, print_message
from mydyno.journal import Finished, Interruption, Opened
from mydyno.model import Interval, Metric, Outcome, Trial, TrialStatus, Window

SPEC = """
[stack]
server = "none"
[treatments.A]
[treatments.B]
"load/env.X" = "1"
[workloads.w]
tool = "command"
argv = ["/bin/sh", "-c", 'while sleep 0.1; do echo "{\\"t_s\\":$((i+=1)),\\"tps\\":9}"; done']
"""
FIXED = "[protocol]\nwarmup_s = 1\nwindow_s = 9\n[design]\nblocks = 4\n"


def campaign(more):
    return SpecSource(SPEC + more, "p.toml", {}).plan(Environment(8 << 30, 2))


def outcome(number, seconds=20.0):
    trial = Trial(number, "AB"[number % 2], "w", number // 2, 1)
    return Outcome(trial, TrialStatus.OK, Window(1, 10), machine_time_s=seconds)


def test_blocks_have_a_total_and_the_rest_takes_as_long_as_the_trials_so_far():
    found = campaign(FIXED)
    assert trials_of(found, []) == (8, False)
    assert left_s(found, [outcome(0), outcome(1, 40.0)]) == pytest.approx(6 * 30)


@pytest.mark.parametrize("more", ['[design]\nbudget = "1h"\n', "[design]\nkind = 'race'\n"])
def test_a_design_that_ends_early_has_an_upper_limit(more):
    total, at_most = trials_of(campaign(more), [])
    assert at_most
    assert total > 2


def test_time_left_is_within_the_budget(tmp_path):
    found = campaign('[design]\nbudget = "100s"\n')
    done = [outcome(n) for n in range(4)]
    events = [Opened("", ""), *(Finished(o) for o in done), Interruption(outcome(4).trial, 5.0)]
    status = of(tmp_path, found, events)
    assert status.machine_time_s == 85
    assert status.budget_left_s == 15
    assert left_s(found, done) <= 20
    assert status.total >= 4


def test_a_status_of_a_finished_campaign_has_its_total(tmp_path):
    found = campaign(FIXED)
    status = of(tmp_path, found, [Finished(outcome(n)) for n in range(8)])
    assert (status.state, status.total, status.left_s) == ("finished", 8, 0.0)


def stolen(one, ratio):
    metrics = [Metric("tps", 9.0, "/s"), Metric("cpu_steal_ratio", ratio, "ratio")]
    return replace(one, window=Window(1, 19), metrics=metrics)


def test_a_campaign_that_repeats_a_disturbed_trial_has_more_than_its_total(tmp_path):
    found = campaign(FIXED)
    taken = [stolen(outcome(n), 0.3 * (n == 5)) for n in range(8)]
    status = of(tmp_path, found, [Finished(o) for o in taken])
    assert (status.state, status.finished, status.total) == ("stopped", 8, 9)
    assert remarks(found, taken) == [AGAIN]
    assert remarks(found, [outcome(n) for n in range(8)]) == []


def remarks(found, taken):
    of = Remarks(found, Costs())
    return [line for one in taken if (line := of.after(one))]


def test_after_the_check_trials_a_line_has_what_they_show():
    found, taken = campaign('[design]\nkind = "race"\n'), []
    for number in range(3):
        trial, metrics = found.design.next(taken), (Metric("tps", 9.0 + number, "/s"),)
        taken.append(Outcome(trial, TrialStatus.OK, Window(1, 10), metrics, machine_time_s=20.0))
    (line,) = remarks(found, taken)
    assert line.startswith("check trials: trials repeat to ")


RUNGS = """
[stack]
server = "none"
[bundles.ONE]
"load/env.ONE" = "1"
[bundles.TWO]
"load/env.TWO" = "1"
[workloads.w]
tool = "command"
argv = ["true"]
[design]
rungs = ["STOCK", "ONE", "ONE+TWO"]
blocks = 3
[protocol]
kind = "fixed"
"""


def test_a_ladder_shows_when_its_parts_begin_and_when_they_are_repeated():
    found, taken = SpecSource(RUNGS, "p.toml", {}).plan(Environment(8 << 30, 2)), []
    rates = {"STOCK": 9.0, "ONE": 10.0, "ONE+TWO": 20.0, "TWO": 19.0}
    while trial := found.design.next(taken):
        rate = rates[trial.treatment] * (1 + 0.001 * (trial.block % 2))
        metrics = [
            Metric("tps", rate, "/s"),
            Metric("cpu_steal_ratio", 0.3 * (len(taken) == 13), "ratio"),
        ]
        taken.append(Outcome(trial, TrialStatus.OK, Window(1, 19), metrics, machine_time_s=20.0))
    assert len({one.trial.block for one in taken}) > 6
    assert remarks(found, taken) == [PARTS, AGAIN]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_live_line_has_block_of_blocks_and_time_left(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    progress = Progress(8, {"w": "tps"}, 10.0, left=lambda done: 80.0 - 20 * len(done), blocks=4)
    progress.started(outcome(0).trial)
    progress.interval(Interval(5.0, {"tps": 9.0}))
    assert out.getvalue().endswith(
        "1/8  block 1 of 4  w  A                5/10 s  9.00 /s   75 s left"
    )
    print_message("")  # the line is no live one any more


def test_machine_time_is_that_of_compare(tmp_path):
    run = tmp_path / "run"
    (tmp_path / "p.toml").write_text(SPEC + FIXED.replace("9", "1").replace("4", "1"))
    assert shown("run", tmp_path / "p.toml", "-o", run).returncode == 0
    status = json.loads(shown("status", run, "--json").stdout)
    compared = json.loads(shown("compare", run, "--json").stdout)
    assert status["machine_time_s"] == compared["machine_time_s"] > 0
    assert (status["total"], status["finished"]) == (2, 2)


def test_the_message_after_an_interruption_begins_a_line(tmp_path):
    (tmp_path / "p.toml").write_text(SPEC + FIXED.replace("9", "90"))
    ours, theirs = pty.openpty()
    argv = [*COMMAND, "run", str(tmp_path / "p.toml"), "-o", str(tmp_path / "run")]
    process = subprocess.Popen(argv, stderr=theirs, stdout=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    while b" /s" not in seen:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    while process.poll() is None or b"resume" not in seen:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break
        time.sleep(0.01)
    process.wait()
    assert re.search(rb"/s[^\n]*\r\nmydyno: progress saved", seen), seen
