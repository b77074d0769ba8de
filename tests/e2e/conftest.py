"""What the campaigns of an entire command share."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that the server's own user can pass through; pytest's own are for root."""
    with tempfile.TemporaryDirectory(prefix="mydyno-test-", dir="/var/tmp") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
