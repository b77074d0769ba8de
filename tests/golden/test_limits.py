"""Each limit by its evidence: figures that show it, and figures beside it that must not.

`evidence.json` of a limit's folder holds the figures of a load that has it, `counter.json` and
`counter-*.json` those of some that look alike and have not; `from` is `server` or `hand`.
"""

import json
from pathlib import Path

import pytest

from mydyno.diagnose import LoadEvidence, account, suspects
from mydyno.diagnose.suspects import known_limits
from mydyno.model import Figures

HERE = Path(__file__).parent / "limits"
NAMES = sorted(known_limits())
TIED = 0.02  # of the best: ranks so near say nothing


def found(name, which, means=()):
    """Return what a case's figures suggest, some of its `means` being others."""
    case = json.loads((HERE / name / f"{which}.json").read_text())
    figures = Figures(
        {**case["means"], **dict(means)}, case.get("spread", {}), case.get("rise", {})
    )
    made = account(figures.means, case["n"])
    assert made is not None
    return suspects(LoadEvidence.of(figures, made))


@pytest.mark.parametrize("name", NAMES)
def test_its_evidence_shows_it(name):
    suspicion = found(name, "evidence")
    named = {suspect.limit: suspect for suspect in suspicion.suspects}
    assert name in named, [s.limit for s in suspicion.suspects]
    assert named[name].evidence
    assert len(named[name].evidence) == len(known_limits()[name].signs)


@pytest.mark.parametrize(
    ("name", "which"), [(p.parent.name, p.stem) for p in sorted(HERE.glob("*/counter*.json"))]
)
def test_what_looks_alike_does_not(name, which):
    suspicion = found(name, which)
    assert name not in {suspect.limit for suspect in suspicion.suspects}
    assert name not in {one.limit for one in suspicion.unseen}


@pytest.mark.parametrize("name", NAMES)
def test_without_its_figures_it_could_not_be_seen_rather_than_absent(name):
    """A limit whose counter is not sampled is reported as such, unless its states refute it."""
    case = json.loads((HERE / name / "evidence.json").read_text())
    of_account = ("state.", "status.threadpool_threads")
    states = {k: v for k, v in case["means"].items() if k.startswith(of_account)}
    made = account(states, case["n"])
    suspicion = suspects(LoadEvidence.of(Figures(states), made))
    named = {one.limit for one in suspicion.unseen} | {s.limit for s in suspicion.suspects}
    shares_only = all("connections in" in sign.counter for sign in known_limits()[name].signs)
    assert shares_only or name in named


def test_flushes_that_the_kernel_does_not_count_could_not_be_seen():
    """LVM, md and dm-crypt pass them on."""
    suspicion = found("latches", "counter-lvm")
    assert "flush_latency" in {one.limit for one in suspicion.unseen}
    assert suspicion.answer not in {"latches", "flush_latency"}


def test_tables_on_disk_that_are_few_do_not_hide_full_cpus():
    few = {"status.questions": 5000.0, "status.created_tmp_disk_tables": 55.0}
    suspicion = found("server_cpu", "evidence", few)
    assert suspicion.answer == "server_cpu"
    ranks = {one.limit: one.expected for one in suspicion.suspects}
    assert ranks.get("temporary_tables", 0.0) < 0.25
    many = few | {"status.created_tmp_disk_tables": 500.0}
    assert found("server_cpu", "evidence", many).answer == "temporary_tables"


def test_one_commit_of_a_group_waits_for_the_replica():
    """MySQL counts the wait of the one that leads, all others of its group wait for a latch."""
    waits = {"status.rpl_semi_sync_master_tx_wait_time": 0.9e6}
    assert found("semi_sync", "evidence", waits).answer == "semi_sync"


def test_the_bytes_of_a_burst_are_known_by_its_own_cap():
    bursting = {"disk.cap_bytes": 125e6, "disk.read_bytes": 168e6, "disk.write_bytes": 0.0}
    limits = [
        {one.limit for one in found("disk_bytes", "evidence", bursting | burst).suspects}
        for burst in ({"disk.burst_bytes": 170e6}, {"disk.burst_bytes": 340e6})
    ]
    assert ["disk_bytes" in named for named in limits] == [True, False]
    uncapped = found("disk_bytes", "evidence", {"disk.cap_bytes": 0.0, "disk.uncapped": 1.0})
    assert "disk_bytes" not in {one.limit for one in (*uncapped.suspects, *uncapped.unseen)}


def test_every_folder_is_of_a_limit():
    assert sorted(p.name for p in HERE.iterdir()) == NAMES
    assert all((HERE / name / "counter.json").exists() for name in NAMES)


def test_a_limit_names_where_it_shows_and_how_it_is_seen():
    for limit in known_limits().values():
        assert limit.states, limit.name
        assert limit.signs, limit.name
        assert not limit.title.endswith("."), limit.name
