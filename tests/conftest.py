"""What holds for all tests: workers side by side, each with the state of a machine of its own."""

import contextlib
import ctypes
import functools
import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from mydyno.host import Local
from mydyno.lab import InUseError, sweep

# A machine that others share is slow at times: that fails no property.
settings.register_profile("mydyno", deadline=None)
settings.load_profile("mydyno")

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
# What one campaign at a time holds on a machine: its records and lock, notices, namespaces.
STATE = {"/var/lib/mydyno": "700", "/run": "755"}
APART = ("tests/e2e/", "tests/integration/test_ssh_campaign.py")  # long tests that share nothing
LONGEST = (  # units of a minute and more, the longest first: what begins last is to be short
    "tests/integration/test_servers.py",
    "tests/integration/test_probe_server.py",
    "tests/integration/test_ssh.py",
    "tests/integration/test_workloads_tpcc.py",
    "tests/integration/test_empty_device.py",
    "tests/integration/test_report_browser.py",
    "tests/integration/test_ssh_campaign.py::test_scripts",
    "tests/e2e/test_real_campaign.py::test_credits",
    "tests/e2e/test_servers_campaign.py",
    "tests/integration/test_ssh_campaign.py::test_a_host_lost",
    "tests/integration/test_probe_server_faults.py",
    "tests/integration/test_plan_servers.py",
    "tests/e2e/test_net_campaign.py",
    "tests/e2e/test_crash.py",
    "tests/integration/test_audit.py",
    "tests/e2e/test_real_campaign.py::test_killed",
)
IN_CHECK = ("tests/contract/", "tests/e2e/test_killed_campaign.py")  # on fakes, in `make check`
_NEW_NAMESPACE = 0x00020000  # CLONE_NEWNS


def _own_state():
    """Give this worker its own host lock, so that campaigns of two workers run at once.

    Devices and processes stay those of the machine.  A container may not allow it; the tests that
    need it cannot run there either.
    """
    if ctypes.CDLL(None).unshare(_NEW_NAMESPACE):
        return
    subprocess.run(("mount", "--make-rprivate", "/"), check=True)
    for path, mode in STATE.items():
        _free(path)
        Path(path).mkdir(int(mode, 8), parents=True, exist_ok=True)
        subprocess.run(("mount", "-t", "tmpfs", "-o", f"mode={mode}", "none", path), check=True)


def _free(path):
    """Unmount what is mounted below a path, which a mount on the path itself would only hide."""
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(mounts):
        if point.startswith(f"{path}/"):
            subprocess.run(("umount", "--lazy", point), check=True)


if WORKER and os.geteuid() == 0:
    _own_state()
# A job in the background ignores these; what its tests start would, too: no handler is inherited.
for _number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)


class _Units(LoadScopeScheduling):
    """A module goes to one worker, but long tests that share nothing go to any."""

    def _split_scope(self, nodeid):
        module = nodeid.partition("::")[0]
        return nodeid if module.startswith(APART) and not _shares(module) else module

    def _assign_work_unit(self, node):
        long = (scope for name in LONGEST for scope in self.workqueue if scope.startswith(name))
        if first := next(long, ""):
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


@functools.cache
def _shares(module):
    return 'scope="module"' in (Path(__file__).parents[1] / module).read_text()


def pytest_xdist_make_scheduler(config, log):
    return _Units(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_lab_of_the_dead():
    """Remove what killed campaigns left mounted, as every campaign does before it begins.

    mkfs.btrfs looks at all that is mounted, and gives up at a mount whose daemon is dead.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(InUseError):
            sweep(Local())


def pytest_addoption(parser):
    parser.addoption("--shard", default="1/1", help="which part of a slow suite to run: 2/4")
    parser.addoption("--beyond-check", action="store_true", help="leave out what `make check` runs")


def pytest_collection_modifyitems(config, items):
    number, of = (int(part) for part in config.getoption("--shard").split("/"))
    if not 1 <= number <= of:
        raise pytest.UsageError(f"--shard {number}/{of}: the first number is 1 to {of}")
    chosen = [item for place, item in enumerate(items) if place % of == number - 1]
    if config.getoption("--beyond-check"):
        chosen = [item for item in chosen if not _in_check(item)]
    if len(chosen) < len(items):
        kept = {*chosen}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen


def _in_check(item):
    real = {"root", "mysqld"} & {mark.name for mark in item.iter_markers()}
    return item.nodeid.startswith(IN_CHECK) and not real
