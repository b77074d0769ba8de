"""One machine for all tests of the VM lab, booted once; each step prints its duration."""

import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

import mydyno_vm as vm
from mydyno.host import Local

DISKS = 6


@pytest.fixture(scope="session")
def timed(pytestconfig):
    """Print the duration of a step, at once and whatever is captured."""
    terminal = pytestconfig.pluginmanager.get_plugin("terminalreporter")

    @contextmanager
    def step(words):
        began_s = time.monotonic()
        yield
        terminal.write_line(f"  {words}: {time.monotonic() - began_s:.0f} s")

    return step


@pytest.fixture(scope="session")
def image(timed):
    with timed("image, built or from the cache"):
        return vm.build(Local(), print)


@pytest.fixture(scope="session")
def machine(request, timed, tmp_path_factory):
    """Boot a machine; while tests are written, $MYDYNO_TEST_VM names one that is up."""
    if there := os.environ.get("MYDYNO_TEST_VM"):
        yield vm.attach(Local(), there)
        return
    request.getfixturevalue("image")
    vm.sweep(Local())
    home = Path(tmp_path_factory.mktemp("vm")) / "home"
    spec = vm.VmSpec(f"test-{os.getpid()}", DISKS, 1 << 30, "azure-p15")
    with timed("boot"):
        there = vm.create(Local(), spec, home, print)
    yield there
    with timed("removal"):
        there.remove()
    assert not home.exists()


@pytest.fixture(scope="session")
def guest(machine, timed):
    there = vm.VmHost(machine)
    with timed("connection"):
        there.connect()
    yield there
    there.close()


@pytest.fixture
def disks(guest):
    """Give the machine's disks, and see that a test leaves nothing on them."""
    return guest.vm.disks
