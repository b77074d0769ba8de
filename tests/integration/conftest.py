"""What the tests on real servers share."""

import pytest

from integration.server_steps import Bench, open_folder


@pytest.fixture(scope="module")
def bench():
    made = Bench(open_folder())
    yield made
    made.close()
