"""Durations, sizes and shares, as people write them."""

import pytest

from mydyno.model import SpecError
from mydyno.model.text import duration_s, resolve, size_bytes
from mydyno.stack.flavours import matches


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("20m", 1200), ("1.5h", 5400), ("1h30m", 5400), ("2d", 172800)],
)
def test_durations(text, seconds):
    assert duration_s(text, "here") == seconds


@pytest.mark.parametrize("text", ["", "20", "m", "20 min", "-5m", "1h 30"])
def test_an_invalid_duration_is_refused(text):
    with pytest.raises(SpecError, match="is not a duration"):
        duration_s(text, "here")


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("8G", 8 << 30), ("512M", 512 << 20), ("1.5GiB", 3 << 29)]
)
def test_sizes(text, size):
    assert size_bytes(text, "here") == size


def test_an_invalid_size_is_refused():
    with pytest.raises(SpecError, match=r"stack\.device\.size: 'big' is not a size"):
        size_bytes("big", "stack.device.size")


def test_relative_values():
    assert resolve("70%", memory_bytes=10 << 30, cores=4) == str(7 << 30)
    assert resolve("1x", memory_bytes=1, cores=4) == "4"
    assert resolve("O_DIRECT", memory_bytes=1, cores=4) == "O_DIRECT"


@pytest.mark.parametrize(
    ("condition", "flavour", "version", "true"),
    [
        ("mysql >= 8.0.30", "mysql", (8, 0, 33), True),
        ("mysql >= 8.0.30", "mysql", (8, 0, 29), False),
        ("mysql >= 8.0.30", "mysql", (8, 4), True),
        ("mysql < 8.0.30", "mysql", (5, 6, 14), True),
        ("mysql < 8.4", "mysql", (8, 4, 1), False),
        ("mysql >= 5.7, < 8", "mysql", (5, 7, 44), True),
        ("mysql", "percona", (8, 0, 36), True),
        ("percona", "mysql", (8, 0, 36), False),
        ("mariadb", "mariadb", (10, 11, 19), True),
        ("mysql", "mariadb", (10, 11, 19), False),
        ("mariadb == 10.11", "mariadb", (10, 11, 19), True),
        ("mariadb > 10.11", "mariadb", (10, 11, 19), False),
        ("mariadb <= 10.11", "mariadb", (10, 11, 19), True),
    ],
)
def test_conditions(condition, flavour, version, true):
    assert matches(condition, flavour, version) is true
