"""Options of the attacks and faults: which part of them to run."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder below one that everybody may write to."""
    made = Path(tempfile.mkdtemp(prefix="mydyno-harm-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shard", default="1/1", help="which part of the tests to run: 2/4")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, of = (int(part) for part in config.getoption("--shard").split("/"))
    if not 1 <= number <= of:
        raise pytest.UsageError(f"--shard {number}/{of}: the first number is 1 to {of}")
    others = [item for place, item in enumerate(items) if place % of != number - 1]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for place, item in enumerate(items) if place % of == number - 1]
