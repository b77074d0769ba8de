"""The profiles that btrfs tells of."""

import pytest

from mydyno.model import HostError
from mydyno.stack.fs import parse_profiles as parse

TWO = b"""Data, RAID10: total=134217728, used=65536
System, RAID10: total=16777216, used=16384
Metadata, RAID10: total=134217728, used=131072
GlobalReserve, single: total=3407872, used=0
"""


def test_profiles_by_kind():
    assert parse(TWO) == {"data": "raid10", "system": "raid10", "metadata": "raid10"}


def test_a_conversion_that_was_cut_short():
    assert parse(b"Data, single: total=1, used=0\nData, RAID1: total=1, used=0\n") == {
        "data": "raid1+single"
    }


@pytest.mark.parametrize("raw", [b"", b"ERROR: not a btrfs filesystem", b"Data, RAID1: total="])
def test_nothing_is_guessed(raw):
    with pytest.raises(HostError, match="no profiles"):
        parse(raw)
