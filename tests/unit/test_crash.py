"""A crash test: what counts as acknowledged, what is lost, and how it is shown."""

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from mydyno.campaign import crash
from mydyno.campaign.bench import TrialInput
from mydyno.campaign.crash import DETAILS, CutDetails, PowerCut, Recovery
from mydyno.campaign.designs import Fixed
from mydyno.campaign.trial import Attempt, Spent
from mydyno.host import Local
from mydyno.loads import Target, ledger
from mydyno.model import (
    Action,
    HostError,
    Metric,
    Outcome,
    Reset,
    SpecError,
    Trial,
    TrialStatus,
    Window,
)
from mydyno.report.crash import render_losses, sentence
from mydyno.stack.protocol import split
from mydyno.stats.losses import losses

SCRIPT = """
import sys, time
for n in range(1, 2000):
    print("ack", n % 2, n, time.monotonic(), flush=True)
    time.sleep(0.005)
"""


def outcome(treatment, **values):
    found = {"commits_lost": 0, "corrupt": 0, "pages_repaired": 0, "inside_a_page": 0}
    found |= {"recovery_s": 2.0, **values}
    metrics = tuple(Metric(k, float(v), "count") for k, v in found.items())
    trial = Trial(0, treatment, "ledger/8", 0, 1, Reset.DATASET)
    return Outcome(trial, TrialStatus.OK, Window(0, 1), metrics)


def failed(treatment):
    trial = Trial(0, treatment, "ledger/8", 0, 1, Reset.DATASET)
    return Outcome(trial, TrialStatus.FAILED, Window(0, 0), error="no disk")


def test_cuts_are_counted_by_what_they_lost():
    history = [
        outcome("SAFE", binlog_lost=0, unlogged=0),
        outcome("WEAK", commits_lost=7, binlog_lost=3, unlogged=1),
        outcome("WEAK", commits_lost=1, inside_a_page=1, binlog_lost=0, unlogged=0),
        outcome("WEAK", corrupt=1, binlog_lost=0, unlogged=0),
        failed("WEAK"),
        outcome("BARE", commits_lost=1),
    ]
    safe, weak, bare = losses(history, ("SAFE", "WEAK", "BARE", "NEW"), {"WEAK": "weaker"})
    assert (safe.cuts, safe.lossy, safe.corrupt, safe.binlog) == (1, 0, 0, 0)
    assert (safe.lossy_low, safe.durability) == (0.0, "same")
    assert safe.lossy_high == pytest.approx(0.793, abs=0.001)  # Wilson
    assert (weak.cuts, weak.failed, weak.lossy, weak.most_lost) == (3, 1, 2, 7)
    assert (weak.inside, weak.lossy_at_random) == (1, 1)
    assert (weak.corrupt, weak.binlog, weak.unlogged, weak.commits_lost) == (1, 1, 1, 1)
    assert bare.binlog is None


def test_what_was_lost_is_a_sentence_and_same_durability_comes_first():
    history = [outcome("WEAK", commits_lost=7), outcome("SAFE"), failed("NONE")]
    found = losses(history, ("WEAK", "SAFE", "NONE"), {"WEAK": "weaker"})
    text = render_losses(found, 200)
    assert text.index("SAFE") < text.index("WEAK")
    assert "SAFE: lost nothing in 1 cuts; up to 79.3 % of cuts could." in text
    assert "WEAK: lost commits in 1 of 1 cuts" in text
    assert "NONE: no cut was measured (no disk)." in text
    narrow = render_losses(found, 40)
    assert max(map(len, narrow.split("\n\n")[0].splitlines())) <= 40
    assert (
        sentence(losses([outcome("X", corrupt=1)], ("X",), {})[0])
        == "X: damaged data in 1 of 1 cuts."
    )


def test_a_line_that_was_cut_acknowledges_nothing():
    assert ledger.ack(b"ack 3 17 12.5\n") == ledger.Ack(3, 17, 12.5)
    for line in (b"ack 3 17 12.", b"ack 3 17\n", b'{"event": "second"}\n', b""):
        assert ledger.ack(line) is None


@pytest.mark.parametrize(
    ("params", "response", "words"),
    [
        ({"pages": 0}, None, "workloads.c.pages = 0: must be from 1"),
        ({"threads": 0}, None, "workloads.c.threads"),
        ({}, "speed", "speed"),
    ],
)
def test_bad_keys_of_a_ledger_are_named(params, response, words):
    with pytest.raises(SpecError, match=words):
        ledger.cells("c", msgspec.convert(params, ledger.LedgerParams), response)


@dataclass
class Cut:
    """A bench whose power is cut; it recovers what `rows` returns of the acknowledged commits."""

    folder: Path
    recovery: Recovery
    load_host = Local()
    at_s: float = 0.0

    timed = True

    def trial(self, _):
        return self

    def ready(self):
        return Target(self.folder, self.folder)

    def power(self):
        return self

    def cache(self):
        pass

    def cut(self, seed, *, inside):
        import time  # noqa: PLC0415 - the clock of the load

        self.at_s = time.monotonic() - 0.5
        return PowerCut(self.at_s, 1, 2, 3, inside)

    def recover(self):
        if isinstance(self.recovery, Exception):
            raise self.recovery
        return self.recovery

    def collect(self):
        return ""


class Script(ledger.LedgerLoad):
    """A load that acknowledges a commit each five milliseconds."""

    def run(self, target, seed, env):
        return Action(("python3", "-c", SCRIPT))


def attempted(bench, monkeypatch):
    monkeypatch.setattr(crash, "LEAST_S", 0.8)
    monkeypatch.setattr(crash, "MOST_S", 0.9)
    (cell,) = ledger.cells("c", ledger.LedgerParams(), None)
    trial = Trial(3, "SAFE", "c/8", 1, 1, Reset.DATASET)
    load = Script(cell.info, cell.params, cell.threads)
    inputs = TrialInput(trial, split({}), load, bench.folder)
    found = crash.attempt(Attempt(inputs, Fixed(0, 1), 0.0, lambda _: None), bench, Spent())
    return found, {m.name: m.value for m in found.metrics}


def test_only_what_was_acknowledged_before_the_cut_counts(tmp_path, monkeypatch):
    rows = frozenset((n % 2, n) for n in range(1, 21))
    bench = Cut(tmp_path, Recovery(1.5, rows, rows, ""))
    found, metrics = attempted(bench, monkeypatch)
    assert found.status is TrialStatus.OK
    printed = (tmp_path / "load.out").read_bytes().splitlines(keepends=True)
    acks = list(filter(None, map(ledger.ack, printed)))
    before = sum(one.at_s < bench.at_s for one in acks)
    assert 22 <= before < len(acks), "those of the last half second came after the cut"
    assert metrics["commits"] == before
    assert metrics["commits_lost"] == metrics["commits"] - 20 == metrics["binlog_lost"]
    assert metrics["inside_a_page"] == 1, "a block of odd number"
    details = msgspec.json.decode((tmp_path / DETAILS).read_bytes(), type=CutDetails)
    assert details.missing[0] == (0, 22)
    assert printed[0].startswith(b"ack 1 1 ")


def test_a_server_that_is_damaged_has_lost_all(tmp_path, monkeypatch):
    bench = Cut(tmp_path, Recovery(1.5, frozenset(), None, "no start"))
    _, metrics = attempted(bench, monkeypatch)
    assert metrics["corrupt"] == 1
    assert metrics["commits_lost"] == metrics["commits"]
    assert "binlog_lost" not in metrics


def test_a_host_that_fails_after_the_cut_is_a_failed_trial(tmp_path, monkeypatch):
    found, _ = attempted(Cut(tmp_path, HostError("mount: no")), monkeypatch)
    assert (found.status, found.error) == (TrialStatus.FAILED, "mount: no")
