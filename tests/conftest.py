"""What holds for all tests."""

import contextlib
import os

import pytest
from hypothesis import settings

from mydyno.lab import InUseError, sweep

# A machine that others share is slow at times: that fails no property.
settings.register_profile("mydyno", deadline=None)
settings.load_profile("mydyno")


@pytest.fixture(scope="session", autouse=True)
def _no_lab_of_the_dead():
    """Remove what killed campaigns left mounted, as every campaign does before it begins.

    mkfs.btrfs looks at all that is mounted, and gives up at a mount whose daemon is dead.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(InUseError):
            sweep()
