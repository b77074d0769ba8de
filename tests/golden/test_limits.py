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


def found(name, which):
    case = json.loads((HERE / name / f"{which}.json").read_text())
    figures = Figures(case["means"], case.get("spread", {}), case.get("rise", {}))
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


def test_every_folder_is_of_a_limit():
    assert sorted(p.name for p in HERE.iterdir()) == NAMES
    assert all((HERE / name / "counter.json").exists() for name in NAMES)


def test_a_limit_names_where_it_shows_and_how_it_is_seen():
    for limit in known_limits().values():
        assert limit.states, limit.name
        assert limit.signs, limit.name
        assert not limit.title.endswith("."), limit.name
