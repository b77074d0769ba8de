"""What the tests on real servers share."""

import pytest

from integration.server_steps import Bench, Running, open_folder


@pytest.fixture(scope="session")
def servers():
    """Servers that a worker initialises once."""
    made = Bench(open_folder())
    yield made
    made.close()


@pytest.fixture(scope="module")
def bench(servers):
    """The same servers; for each module their data are those of new ones."""
    yield servers
    servers.renew()


@pytest.fixture(scope="module")
def running(bench):
    """Servers of this module that go on running between its tests."""
    made = Running(bench)
    yield made
    made.close()
