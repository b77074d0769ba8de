"""What the attacks and faults share."""

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
