"""One treatment that cannot be measured fails its own trials; the others go on."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign.spec import DeviceTable, Spec, StackTable
from mydyno.host import Local
from mydyno.journal import Prepared
from mydyno.journal.records import MemoryRecords
from mydyno.model import HostError, RefusedError, SpecError, UnknownEndError
from mydyno.snapshot import DirectoryStore
from mydyno.snapshot.device import DeviceStore, RealDevice, discard
from mydyno.stack.protocol import split
from mydyno.testbed.assemble import without_lab
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


def test_on_a_real_device_only_its_own_data_set_is_removed():
    """The others, and snapshots of an earlier run, stay until the campaign ends."""
    done = []

    class Device(RealDevice):
        def open(self, kind, options):
            del kind, options

        def close(self, *, keep):
            done.append(("device", keep))

    class Copies(DirectoryStore):
        def open(self):
            return True

        def close(self, *, keep):
            done.append((self.home.name, keep))

    device = Device(Local(), "/dev/x", Path("/mnt"), MemoryRecords())
    copies = [Copies(Local(), Path(name), Path("data")) for name in "ab"]
    one, other = (DeviceStore(device, "ext4", "", each) for each in copies)
    discard(one)
    assert done == [("a", False)]
    discard(copies[1])
    assert done == [("a", False), ("b", False)]
    other.close(keep=False)
    assert done[2:] == [("device", False)]


def campaign_of(**treatments):
    stack = StackTable(server="auto", device=DeviceTable(lab="loop", size="1G"))
    return Without(
        {name: split(settings) for name, settings in treatments.items()},
        Spec(stack=stack, workloads={}),
    )


@dataclass(frozen=True)
class Without:
    """What of a campaign is needed to leave out its lab."""

    treatments: dict
    spec: Spec


def test_without_a_lab_what_is_left_is_compared_in_a_plain_directory():
    made, lines = without_lab(
        campaign_of(A={}, B={"db/block.scheduler": "none", "db/mysqld.sync_binlog": "0"}),
        "No root.",
    )
    assert {**made.treatments["B"]} == {"db/mysqld.sync_binlog": "0"}
    assert made.spec.stack.device == "here"
    assert lines == ["No root; the data is in a plain directory, without caps",
                     "B: skipped block.scheduler"]  # fmt: skip


def test_without_a_lab_treatments_of_the_lab_alone_are_no_campaign():
    with pytest.raises(RefusedError, match=r"^No root; without a lab the treatments are all"):
        without_lab(campaign_of(A={}, B={"db/fs.type": "xfs"}), "No root.")
