"""What the tests of kept changes share: a guest and its administrator."""

import pytest

from keep.desk import Desk
from keep.guest import Guest


@pytest.fixture
def desk(request, tmp_path):
    """Return a guest that nothing was done to, and its administrator."""
    guest = Guest(getattr(request, "param", "mariadb"))
    try:
        guest.boot()
        yield Desk(guest, tmp_path)
    finally:
        guest.remove()
