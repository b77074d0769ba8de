"""A CPU quota: what the kernel keeps, who starts in a group, where it is exported to."""

from pathlib import Path

import pytest

from mydyno.audit.host_facts import cpu_quota
from mydyno.host import Local
from mydyno.keep.forms import docker, systemd
from mydyno.keep.kept import Kept
from mydyno.model import Cost, SpecError
from mydyno.stack.cgroup import Cgroup, group_of, joined, parse_cgroup, removal
from mydyno.stack.launch_file import Server

HOME = Path("/var/tmp/mydyno-1/server")  # noqa: S108 - a name


@pytest.fixture
def layer():
    return Cgroup(Server(HOME / "launch" / "cgroup", HOME / "mysqld.pid", HOME / "my.cnf"))


def test_the_own_file_holds_what_the_kernel_is_given(layer):
    (change,) = layer.plan({}, {"cpu": "150%"})
    assert change.action.stdin == b"cpu=150%\nmax=150000 100000\n"
    assert change.cost is Cost.RESTART  # it starts in its group
    changes = layer.plan({"cpu": "150%", "owned": "cpu"}, {"cpu": "80%"})
    assert [one.cost for one in changes] == [Cost.ONLINE]
    assert layer.online(changes)[0].argv[-1] == str(layer.server.own)
    assert layer.online([]) == []


def test_a_server_with_a_quota_starts_in_a_group_that_only_its_home_has(layer):
    assert joined(HOME, {}, ("mysqld",)) == ("mysqld",)
    argv = joined(HOME, {"cpu": "50%", "max": "50000 100000"}, ("mysqld", "--x"))
    assert argv[-4:] == (layer.group, "50000 100000", "mysqld", "--x")
    assert layer.group == group_of(HOME) != group_of(HOME.with_name("server-2"))


def test_what_is_in_force_is_shown_for_what_was_asked():
    assert parse_cgroup(b"") == {}
    assert parse_cgroup(b"cpu=50%\nmax=50000 100000\n")["cpu"] == "50%"  # it does not run
    running = b"cpu=50%\nmax=50000 100000\nnow=25000 100000\n"
    assert parse_cgroup(running) == {"cpu": "25%", "owned": "cpu"}
    for other in (b"max 100000", b"-1 100000", b"", b" "):  # of others; outside of its group
        seen = parse_cgroup(b"cpu=50%\nnow=" + other + b"\n")
        assert seen == {"cpu": "unlimited", "owned": "cpu"}


def test_a_group_that_is_not_there_is_removed():
    done = Local().run(removal("mydyno-of-nobody"))
    assert (done.returncode, done.stderr) == (0, b"")


def test_it_is_kept_as_a_unit_and_a_container_say_it():
    kept = Kept({"cgroup.cpu": "150%", "cgroup.period": "10ms"})
    assert systemd.limits(kept) == {"CPUQuota": "150%", "CPUQuotaPeriodSec": "10ms"}
    (file,) = docker.FORM.write(kept)
    assert "    cpu_period: 10000\n    cpu_quota: 15000\n" in file.text
    # taken back: systemd would ignore another word, and keep what an earlier file has
    assert systemd.limits(Kept({"cgroup.cpu": "unlimited"})) == {"CPUQuota": ""}
    with pytest.raises(SpecError, match="write cpu as 150%"):
        docker.FORM.write(Kept({"cgroup.cpu": "1,5"}))
    (file,) = docker.FORM.write(Kept({"cgroup.cpu": "50%"}))
    assert "    cpu_period: 100000\n    cpu_quota: 50000\n" in file.text


def test_the_quota_of_a_servers_unit_is_read():
    assert cpu_quota({}) == {}
    assert cpu_quota({"cgroup": "memory_max=max\ncpu_max=150000 100000\n"}) == {
        "cpu": "150%",
        "period": "100ms",
    }
    assert cpu_quota({"cgroup": "cpu_max=max 100000"})["cpu"] == "unlimited"
