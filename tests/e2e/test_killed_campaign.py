"""A campaign killed before and after every record, of its history and of changes, and resumed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mydyno.campaign.blocks import Blocks
from mydyno.campaign.designs import Fixed
from mydyno.campaign.plan import Campaign
from mydyno.campaign.run_loop import CampaignRun, run
from mydyno.campaign.spec import Spec
from mydyno.journal import Event, FileJournal, Finished, Started, outcomes
from mydyno.journal.records import Entry, FileRecords, nothing_left
from mydyno.journal.rundir import RunDir
from mydyno.model import JournalError, Outcome
from mydyno.stats import Rule
from mydyno.testing import FakeBench, FakeHost, FakeLoad, Silent

TREATMENTS = {
    "STOCK": {},
    "CALM": {"db/kernel.swap": "1"},
    "BOTH": {"db/kernel.swap": "5", "db/kernel.thp": "never"},
}
FOUND = {"swap": "60", "thp": "always"}


class Killed(BaseException):
    """The process is gone: nothing of ours may run after it."""


class Life:
    """A process that dies before or after its n-th record, in whichever file that is."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.left, self.after, self.dead, self.records = at, after, False, 0

    def record(self, write: Callable[[], None]) -> None:
        if self.dead:
            raise Killed
        self.left -= 1
        self.records += 1
        self.dead = self.left < 0
        if not self.dead or self.after:
            write()
        if self.dead:
            raise Killed


class MortalJournal:
    """A campaign's history, written by a process that dies."""

    def __init__(self, inner: FileJournal, life: Life) -> None:
        self.inner, self.life = inner, life

    def append(self, event: Event) -> None:
        self.life.record(lambda: self.inner.append(event))

    def events(self) -> Iterator[Event]:
        return self.inner.events()


class MortalRecords:
    """Change records, written by a process that dies."""

    def __init__(self, inner: FileRecords, life: Life) -> None:
        self.inner, self.life = inner, life

    def add(self, entry: Entry) -> None:
        self.life.record(lambda: self.inner.add(entry))

    def entries(self) -> Iterator[Entry]:
        return self.inner.entries()


class DeadHands(FakeHost):
    """A host that a dead process cannot reach."""

    life: Life | None = None

    def run(self, action, *, timeout_s=60.0):
        if self.life is not None and self.life.dead:
            raise Killed
        return super().run(action, timeout_s=timeout_s)


def lines(state: Mapping[str, str]) -> Iterator[bytes]:
    tps = 1000 + 10 * (60 - int(state["swap"]))
    for second in range(1, 100):
        yield f'{{"t_s": {second}, "tps": {tps + second % 3}}}\n'.encode()


def campaign() -> Campaign:
    design = Blocks(tuple(TREATMENTS), ("load",), 2, None, 7)
    rule = Rule("killed", "STOCK", {"load": "tps"})
    return Campaign(
        Spec(), "killed", TREATMENTS, "STOCK", {"load": FakeLoad()}, design, Fixed(2, 5), rule
    )


def go(folder: Path, host: FakeHost, at: int, *, after: bool) -> bool:
    """Run the campaign; return whether it was killed."""
    folder.mkdir(exist_ok=True)
    life = Life(at, after=after)
    journal = MortalJournal(FileJournal(folder / "journal.jsonl"), life)
    records = MortalRecords(FileRecords(folder / "changes"), life)
    if isinstance(host, DeadHands):
        host.life = life
    try:
        run(
            CampaignRun(
                campaign(), FakeBench(host, journal, records), RunDir(folder), journal, Silent()
            )
        )
    except Killed:
        return True
    finally:
        journal.inner.close()
        records.inner.close()
    assert nothing_left(records.entries())
    return False


def told(folder: Path) -> list[Outcome]:
    journal = FileJournal(folder / "journal.jsonl")
    found = list(outcomes(journal.events()))
    journal.close()
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_record_then_run_again(tmp_path, after):
    whole = tmp_path / "whole"
    assert not go(whole, FakeHost(dict(FOUND), lines), 10**6, after=False)
    want = told(whole)
    records = sum(len((whole / f).read_bytes().splitlines()) for f in ("journal.jsonl", "changes"))
    assert [o.trial.id for o in want] == list(range(6))
    for at in range(records):
        folder = tmp_path / f"{at}"
        host = DeadHands(dict(FOUND), lines)
        assert go(folder, host, at, after=after), at
        assert not go(folder, host, 10**6, after=False)
        found = told(folder)
        assert [(o.trial, o.metrics, o.status) for o in found] == [
            (o.trial, o.metrics, o.status) for o in want
        ], at
        assert host.state == FOUND, at


def test_killed_many_times_in_one_campaign(tmp_path):
    host = DeadHands(dict(FOUND), lines)
    runs = 0
    while go(tmp_path, host, 6, after=runs % 2 == 0):
        runs += 1
        assert runs < 60
    assert [o.trial.id for o in told(tmp_path)] == list(range(6))
    assert host.state == FOUND


def test_a_killed_trial_counts_its_machine_time_and_not_its_numbers(tmp_path):
    dying = {"left": 4}

    def dies(state: Mapping[str, str]) -> Iterator[bytes]:
        for line in lines(state):
            dying["left"] -= 1
            if dying["left"] == 0:
                raise Killed
            yield line

    assert go(tmp_path, FakeHost(dict(FOUND), dies), 10**6, after=False)
    assert not go(tmp_path, FakeHost(dict(FOUND), lines), 10**6, after=False)
    found = told(tmp_path)
    assert [o.machine_time_s for o in found] == [7 + 3, 7, 7, 7, 7, 7]
    assert (tmp_path / "trials" / "0000.interrupted-1" / "load.out").exists()


def test_the_history_of_events_is_whole(tmp_path):
    go(tmp_path, FakeHost(dict(FOUND), lines), 10**6, after=False)
    journal = FileJournal(tmp_path / "journal.jsonl")
    events = list(journal.events())
    journal.close()
    started = [e.trial.id for e in events if isinstance(e, Started)]
    finished = [e.outcome.trial.id for e in events if isinstance(e, Finished)]
    assert started == finished == list(range(6))


def test_another_campaign_is_refused(tmp_path):
    go(tmp_path, FakeHost(dict(FOUND), lines), 10**6, after=False)
    journal = FileJournal(tmp_path / "journal.jsonl")
    other = replace(campaign(), name="other", treatments={"STOCK": {}})
    bench = FakeBench(FakeHost(dict(FOUND), lines), journal)
    with pytest.raises(JournalError, match="contains another campaign"):
        run(CampaignRun(other, bench, RunDir(tmp_path), journal, Silent()))
    journal.close()
