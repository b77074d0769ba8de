"""A campaign over stripes of a loop lab, without a server: each shape has its own disks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from integration.lab_steps import traces
from mydyno.host import Local
from mydyno.lab import listing

pytestmark = [pytest.mark.root, pytest.mark.slow]

SPEC = """
[stack]
server = "none"
device = { lab = "loop", size = "640M", class = "azure-p10", vm = "azure-d2s-v3", chunk = "64K" }
[treatments.one]
[treatments.four]
"raid.devices" = 4
"fs.type" = "xfs"
[workloads.rr]
tool = "fio"
options = { rw = "randread", size = "32M", direct = true, ioengine = "libaio", iodepth = 32 }
[workloads.file]
tool = "sysbench-fileio"
test_mode = "rndrd"
file_total_size = "32M"
file_num = 4
threads = [8]
[protocol]
warmup_s = 1
window_s = 1
blocks = 1
"""


def test_a_stripe_is_a_setting_under_test(tmp_path):
    spec, out = tmp_path / "stripes.toml", tmp_path / "out"
    spec.write_text(SPEC)
    done = subprocess.run(
        [str(Path(sys.executable).with_name("mydyno")), "run", str(spec), "-o", str(out)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    recorded = [json.loads(path.read_text()) for path in sorted(out.glob("trials/*/changes.json"))]
    assert len(recorded) == 4
    shapes = [{c["key"]: c["after"] for c in changes} for changes in recorded if changes]
    four = {"db/raid.devices": "4", "db/fs.type": "xfs", "db/fs.mkfs": "-d su=64k,sw=4"}
    assert shapes == [four, four]
    assert {c["cost"] for changes in recorded for c in changes} == {"reformat"}
    facts = {p.name: json.loads(p.read_text()) for p in out.glob("facts/lab disk*.json")}
    assert facts["lab disk, 4 in 64K.json"]["class"].startswith("4 x azure-p10")
    assert not (out / "work").exists()
    assert traces(out / "work") == []
    assert not [state for state in listing(Local()) if Path(state.home).is_relative_to(out)]
