"""A campaign that goes on in another process: its server has just started."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign.designs import Fixed
from mydyno.campaign.plan import plan
from mydyno.campaign.run_loop import CampaignRun, run
from mydyno.campaign.spec import decode
from mydyno.campaign.switchback import Settled
from mydyno.campaign.treatments import Environment
from mydyno.cli.recipes import SpecSource
from mydyno.cli.run import run as run_command
from mydyno.cli.run_directory import RunFacts, begun_on, save
from mydyno.journal import FileJournal, Finished
from mydyno.journal.register import RunDir
from mydyno.model import Outcome, Trial, TrialStatus, Window
from mydyno.testing import Silent
from mydyno_simulate import BARE, Arm, Machine
from mydyno_simulate.play import one
from unit.hot_spec import HOT


def stops_of(campaign, folder, trials):
    """Run so many trials in a process of their own; return the rules by which each ended."""
    machine, found = Machine(BARE, {"A": Arm(), "B": Arm()}, 1), []

    def attempt(a, bench, spent):
        del bench, spent
        if len(found) == trials:
            raise KeyboardInterrupt
        found.append(a.stop)
        return one(machine, a.inputs.trial, a.stop)

    journal, bench = FileJournal(folder / "journal.jsonl"), SimpleNamespace(opened=nullcontext)
    with pytest.raises(KeyboardInterrupt):
        run(CampaignRun(campaign, bench, RunDir(folder), journal, Silent(), attempt=attempt))
    journal.close()
    return found


def test_each_workload_settles_after_a_resume(tmp_path):
    host = Environment(2**33, 4, "mariadb", (10, 11, 19))
    other = '[workloads.other]\ntool = "sysbench-oltp"\nscript = "oltp_write_only"\n[design]'
    text = HOT.replace("[design]", other)
    campaign = plan(decode(text, "x.toml"), text, "x.toml", host)
    assert len(campaign.workloads) == 2
    stops_of(campaign, tmp_path, 9)
    again = [type(stop) for stop in stops_of(campaign, tmp_path, 9)]
    assert again.count(Settled) == 2, again


def test_the_first_trial_after_a_resume_settles_the_server_again(tmp_path):
    host = Environment(2**33, 4, "mariadb", (10, 11, 19))
    campaign = plan(decode(HOT, "x.toml"), HOT, "x.toml", host)
    kinds = [[type(stop) for stop in stops_of(campaign, tmp_path, n)] for n in (4, 3)]
    assert kinds == [[Settled, Fixed, Fixed, Fixed], [Settled, Fixed, Fixed]]


@pytest.mark.parametrize(("now", "taken"), [(1.02, 1.0), (0.97, 1.0), (1.2, 1.2)])
def test_a_share_of_memory_is_what_it_was_when_the_run_began(tmp_path, now, taken):
    """A new kernel leaves some MiB more or less, and another campaign was planned."""
    files, first = RunDir(tmp_path), Environment(8 * 2**30, 4, "mysql", (8, 0, 33))
    found = replace(first, memory_bytes=int(now * 2**33))
    assert begun_on(tmp_path, found) == found  # nothing began there
    save(files, SpecSource("", "s.toml", {}), RunFacts("s.toml", {}, first, ""), begun=False)
    assert begun_on(tmp_path, found) == found  # nor was anything measured
    journal = FileJournal(files.journal)
    journal.append(Finished(Outcome(Trial(0, "A", "w", 1, 1), TrialStatus.OK, Window(0, 1))))
    journal.close()
    assert begun_on(tmp_path, found).memory_bytes == int(taken * 2**33)


def test_a_run_directory_that_no_one_named_is_looked_at_for_the_host_it_began_on(
    tmp_path, monkeypatch
):
    seen = []

    def built(_source, _allow, folder):
        seen.append(folder)
        raise KeyboardInterrupt

    monkeypatch.setattr("mydyno.cli.run.build", built)
    path = tmp_path / "hot.toml"
    path.write_text(HOT)
    with pytest.raises(KeyboardInterrupt):
        run_command(path)
    with pytest.raises(KeyboardInterrupt):
        run_command(path, output=tmp_path / "here")
    assert seen == [Path("runs/hot"), tmp_path / "here"]
