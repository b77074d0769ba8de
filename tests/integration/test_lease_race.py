"""A lease that begins while a campaign does: one of them is refused, and nothing is recorded."""

from pathlib import Path

import msgspec
import pytest

from command_line import shown
from mydyno.cli import leases
from mydyno.cli.recipes import find
from mydyno.cli.run import execute
from mydyno.keep.lease import Held, Lease
from mydyno.model import RefusedError

pytestmark = pytest.mark.root
SPEC = """
[stack]
server = "none"
[treatments.A]
[treatments.B]
"kernel.sysctl.vm.swappiness" = 7
[workloads.w]
tool = "command"
argv = ["true"]
[protocol]
warmup_s = 1
window_s = 1
[design]
blocks = 1
"""


def test_a_lease_that_began_since_it_was_looked_for_refuses_the_campaign(tmp_path, monkeypatch):
    swappiness = Path("/proc/sys/vm/swappiness")
    first, looks = swappiness.read_text(), []
    one = msgspec.convert(
        {"id": "l-1", "host": "db1", "who": "ada@desk", "why": "", "seconds": 60, "unit": "",
         "client": [], "restart": False, "trial": [], "stored": []}, Lease
    )  # fmt: skip

    def held(host):
        """Return it from the second look on: the campaign has one before it locks the host."""
        looks.append(host)
        return [Held(one, "trial", 0, 60)] if len(looks) > 1 else []

    monkeypatch.setattr(leases, "leases_of", held)
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    with pytest.raises(RefusedError, match="l-1 is on trial there"):
        execute(find(str(path), {}), tmp_path / "run", ["host"])
    assert len(looks) == 2
    assert swappiness.read_text() == first
    assert not list((tmp_path / "run").glob("trials/*"))
    assert not (tmp_path / "run" / "work").exists()
    assert "nothing to restore" in shown("rollback").stdout
