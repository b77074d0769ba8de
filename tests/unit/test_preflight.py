"""Before anything is made: a missing tool, too little room and a busy host are reported."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign.spec import decode
from mydyno.host import Completed, Local
from mydyno.loads import WorkloadInfo
from mydyno.model import HostError, RefusedError, SpecError
from mydyno.sample.facts import cores_busy, facts, parse
from mydyno.stack.protocol import split
from mydyno.testbed.bench_setup import Hosts
from mydyno.testbed.preflight import busy, preflight, refuse_connections
from mydyno.testing.fakes import FakeHost

SPEC = """
[stack]
device = { lab = "loop", size = "8G" }
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
"""


WORKLOADS = {"rw": SimpleNamespace(info=WorkloadInfo("rw", data_key="sbtest", needs_server=True))}


class Answers(Local):
    """This machine, except for the tools and the room that it reports."""

    def __init__(self, path="/usr/bin/sysbench", free=10 << 30):
        super().__init__()
        object.__setattr__(self, "replies", {"which": path, "stat": f"{free // 4096} 4096"})

    def run(self, action, *, timeout_s=60.0):
        return Completed(action, 0, self.replies[action.argv[0]].encode(), b"")


def check(folder, **replies):
    host = Answers(**replies)
    campaign = SimpleNamespace(spec=decode(SPEC, "s.toml"), workloads=WORKLOADS, treatments={})
    preflight(Hosts(host, host), campaign, folder)


def test_a_missing_tool_is_named(tmp_path):
    with pytest.raises(SpecError, match="sysbench is not installed; apt-get install sysbench"):
        check(tmp_path, path="")


def test_too_little_room_is_refused(tmp_path):
    with pytest.raises(RefusedError, match=r"5\.0 GiB free, but this campaign may need 9\.0"):
        check(tmp_path / "not" / "there" / "yet", free=5 << 30)


def test_enough_room_passes(tmp_path):
    check(tmp_path)
    assert list(Path(tmp_path).iterdir()) == []


def test_a_busy_host_is_reported():
    assert busy(0.1) == ()
    assert "1.5 cores of the host were busy" in busy(1.5)[0]


STAT = "{up} 999.99\ncpu  10 1 20 {idle} 30 2 3 {steal} 0 0\ncpu0 5 0 10\ncpu1 5 1 10\nintr 7\n"


@pytest.mark.parametrize(
    ("idle", "steal", "cores"), [(700, 4, 0.0), (650, 4, 0.5), (600, 54, 0.5), (500, 4, 2.0)]
)
def test_cores_are_busy_when_they_are_not_idle_whatever_the_ticks_of_work_are(idle, steal, cores):
    looks = iter([(50.0, 500, 4), (51.0, idle, steal)])

    def run(action):
        up, idle_now, steal_now = next(looks)
        return Completed(
            action, 0, STAT.format(up=up, idle=idle_now, steal=steal_now).encode(), b""
        )

    assert cores_busy(SimpleNamespace(run=run), 0.0) == pytest.approx(cores)


def test_a_host_whose_memory_cannot_be_read_is_an_error_with_the_next_step():
    host = FakeHost({}, lambda _: iter(()), name="db1")
    with pytest.raises(HostError, match=r"^db1: memory and processors cannot be read; look at"):
        facts(host)


@pytest.mark.parametrize(
    ("speed", "shown"),
    [
        ("10000", "ixgbe, 10 Gbit/s"),
        ("-1", "ixgbe, speed not known"),
        ("", "ixgbe, speed not known"),
    ],
)
def test_an_interface_is_shown_with_driver_and_speed(speed, shown):
    lines = ["/proc/meminfo:MemTotal: 1024 kB", "/proc/cpuinfo:processor : 0"]
    lines += ["/sys/class/net/eth0/device/uevent:DRIVER=ixgbe"]
    lines += [f"/sys/class/net/eth0/speed:{speed}"] if speed else []
    lines += ["/sys/class/net/veth1/speed:10000"]  # of the kernel's own making
    details = parse("\n".join(lines).encode()).details
    assert details["interface eth0"] == shown
    assert "interface veth1" not in details


@pytest.mark.parametrize(
    ("threads", "replica", "most", "refused"),
    [(150, False, "151", False), (151, False, "151", True), (150, True, "151", True)],
)
def test_a_load_leaves_room_for_our_own_connections(threads, replica, most, refused):
    """Ours are there first, and the load's last thread was let in no more."""
    info = WorkloadInfo("rw", needs_server=True)
    campaign = SimpleNamespace(
        workloads={"rw/1": SimpleNamespace(info=info, threads=threads)},
        treatments={"A": split({"db/mysqld.max_connections": most})},
        spec=SimpleNamespace(stack=SimpleNamespace(replicated=replica)),
    )
    if refused:
        with pytest.raises(
            SpecError, match=f"lets {most} connections in, and mydyno itself needs {1 + replica}"
        ):
            refuse_connections(campaign)
    else:
        refuse_connections(campaign)
