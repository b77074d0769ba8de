"""One treatment that cannot be measured fails its own trials; the others go on."""

from types import SimpleNamespace

import pytest

from mydyno.journal import Prepared
from mydyno.model import HostError, SpecError, UnknownEndError
from mydyno.testbed.preparing import Preparation


class Set:
    """A data set that opens, or does not; `closed` counts its removals."""

    def __init__(self, error=None):
        self.error, self.closed = error, 0

    def open(self):
        if self.error:
            raise self.error
        return True

    def close(self, *, keep):
        assert not keep
        self.closed += 1


def preparation(sets, printed):
    """Return a preparation of one frozen data set for each treatment, A the baseline."""

    class Key(SimpleNamespace):
        __hash__ = object.__hash__

    campaign = SimpleNamespace(
        treatments={name: Key(name=name) for name in sets},
        workloads={"rw": "rw"},
        rule=SimpleNamespace(baseline="A"),
        compared=[name for name in sets if name != "A"],
    )
    journal = SimpleNamespace(events=lambda: (Prepared(name, "copy", 1.0) for name in sets))
    setup = SimpleNamespace(
        campaign=campaign,
        key=lambda settings, _: settings,
        log=SimpleNamespace(say=printed.append, journal=journal),
        make=lambda key: sets[key.name],
    )
    return Preparation(setup, {}, {})


@pytest.fixture
def prepare(monkeypatch):
    """Prepare the sets; return the preparation and what it has printed."""
    monkeypatch.setattr(
        "mydyno.testbed.preparing.needed", lambda c: dict.fromkeys(c.treatments.values(), "rw")
    )
    monkeypatch.setattr(Preparation, "_check_host", lambda _: None)

    def prepared(**sets):
        printed = []
        made = preparation(sets, printed)
        made.prepare()
        return made, printed

    return prepared


def test_a_data_set_that_cannot_be_made_is_removed_and_the_others_stay(prepare):
    bad = Set(HostError("no page of 3 KiB"))
    made, printed = prepare(A=Set(), B=bad, C=Set())
    assert [key.name for key in made.stores] == ["A", "C"]
    assert bad.closed == 1
    assert {cell: str(error) for cell, error in made.unfit.items()} == {
        ("rw", "B"): "no page of 3 KiB"
    }
    assert printed == ["warning: B: no page of 3 KiB; its trials fail, the others go on"]


@pytest.mark.parametrize(
    "sets",
    [
        {"A": Set(SpecError("of the baseline")), "B": Set()},
        {"A": Set(), "B": Set(HostError("of all others"))},
        {"A": Set(), "B": Set(UnknownEndError("lost the host")), "C": Set()},
    ],
)
def test_nothing_is_measured_without_a_baseline_another_treatment_and_a_host(prepare, sets):
    with pytest.raises((HostError, SpecError), match=r"of the baseline|of all others|lost"):
        prepare(**sets)
