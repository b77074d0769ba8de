"""A lab's link: what it gives at each rate, a real load across it, and what is left of it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from integration.load_steps import HOST, prepare
from integration.server_steps import MARIADB, clear, forked, write
from mydyno.host import ask
from mydyno.journal.register import state_folder
from mydyno.lab import measure_round_trip, measure_throughput, sweep_links
from mydyno.lab.lab_link import available, planned
from mydyno.loads import sysbench_oltp
from mydyno.model import Action, HostError, RefusedError
from mydyno.sample.sampler import interface_to, link_speed
from mydyno.stack.link import Link, bytes_per_s
from mydyno.stack.net import Net
from mydyno.testbed.server_runner import target_of

pytestmark = [pytest.mark.root, pytest.mark.slow]


@pytest.fixture
def link():
    made = planned(HOST)
    made.up()
    yield made
    made.down()


def layer(link):
    return Link(link.state.device, link.state.link, link.state.peer)


def limit(link, rate):
    rated = layer(link)
    for change in rated.plan(ask(HOST, rated.observe()), {"rate": rate}):
        HOST.run(change.action).check()
    assert ask(HOST, rated.observe()) == {"rate": rate}


def traces(name):
    """All that could be left of a link: interfaces, namespace, record."""
    found = subprocess.run(("ip", "-br", "link"), capture_output=True, check=True).stdout.decode()
    places = [Path("/run/netns"), state_folder("links")]
    files = [f.name for place in places if place.is_dir() for f in place.iterdir()]
    return [word for word in (*found.split(), *files) if name in word]


@pytest.mark.timed
@pytest.mark.parametrize("rate", ["20mbit", "100mbit"])
def test_the_link_gives_its_rate_both_ways(link, rate):
    limit(link, rate)
    found = [measure_throughput(link) for _ in range(3)]  # a busy machine may not fill it at once
    for given in (max(f.to_load for f in found), max(f.from_load for f in found)):
        assert given == pytest.approx(bytes_per_s(rate), rel=0.05)


def receiver(monkeypatch, folder, first):
    """Let every receiver do `first` before it listens."""
    script, real = folder / "iperf3", shutil.which("iperf3")
    script.write_text(f'#!/bin/sh\ncase "$*" in *--server*) {first};; esac\nexec {real} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_a_receiver_that_starts_late_is_waited_for(link, monkeypatch, tmp_path):
    receiver(monkeypatch, tmp_path, "sleep 3")
    assert measure_throughput(link).to_load > 0


def test_a_receiver_that_ends_is_no_traffic(link, monkeypatch, tmp_path):
    receiver(monkeypatch, tmp_path, "exit 1")
    with pytest.raises(HostError, match=r"no traffic passes .*refused"):
        measure_throughput(link)


def test_the_inside_sees_this_link_only(link):
    devices = ask_inside(link, "ip", "-br", "link")
    assert sorted(line.split()[0].partition("@")[0] for line in devices) == ["lo", link.state.peer]
    assert len(ask_inside(link, "ip", "route")) == 1  # to the other end, and none to anywhere else
    forwarding = ask_inside(link, "cat", "/proc/sys/net/ipv4/ip_forward")
    assert forwarding == ["0"]
    assert link_speed(HOST, link.state.device) is None  # the driver reports 10000
    assert interface_to(HOST, link.state.load_address) == link.state.device
    assert interface_to(HOST, "127.0.0.1") == "lo"


def ask_inside(link, *argv):
    return link.inside.run(Action(argv)).check().stdout.decode().splitlines()


@pytest.mark.timed
@pytest.mark.mysqld
def test_a_real_load_across_the_link_gets_its_rate(bench, link):
    rate = "8mbit"
    made = bench.take(MARIADB)
    instance = made.instance
    net = Net(instance.place.launch / "net", instance.client, "mariadb", (), link.state.address)
    write(net, {}, {"address": "lab"})
    instance.start()
    try:
        assert net.plan(ask(HOST, net.observe()), {"address": "lab"}) == []
        assert instance.endpoint.tcp_host == link.state.address
        with tempfile.TemporaryDirectory() as name:
            target = target_of(instance, Path(name), Path(name))
            params = {"script": "oltp_read_only", "threads": 8, "table_size": 2000}
            cell = sysbench_oltp.cells("ro", sysbench_oltp.OltpParams(**params))[0]
            prepare(cell, target)
            limit(link, rate)
            given = max(traffic(link, cell, target) for _ in range(3))  # as above: a busy machine
        assert given == pytest.approx(bytes_per_s(rate), rel=0.05)
    finally:
        instance.stop()
        clear(made)


def traffic(link, cell, target, warm_s=3.0, measured_s=8.0):
    running = link.inside.start(cell.run(target, 7, {}))
    counter = Path(f"/sys/class/net/{link.state.device}/statistics/tx_bytes")
    first = None
    try:
        for interval in cell.parse(running.lines()):
            now = (time.monotonic(), int(counter.read_text()))
            first = first or (now if interval.t_s >= warm_s else None)
            if first and now[0] - first[0] >= measured_s:
                return (now[1] - first[1]) / (now[0] - first[0])
    finally:
        running.stop()
    pytest.fail("the load ended by itself")


def test_a_link_whose_owner_was_killed_is_swept(link):
    names = Path(tempfile.mkdtemp())

    def work():
        mine = planned(HOST)
        mine.up()
        (names / mine.state.link).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    assert forked(work) == -signal.SIGKILL
    (name,) = (path.name for path in names.iterdir())
    assert traces(name)
    lines = sweep_links(HOST)
    assert any(name in line for line in lines)
    assert not traces(name)
    assert traces(link.state.link)  # whose owner lives
    assert sweep_links(HOST) == []


@pytest.fixture
def wired(tmp_path):
    made = planned(HOST, tmp_path / "wire")
    made.up()
    yield made
    made.down()


def delayed(link, delay):
    """Order a delay, as a trial does; return the round trip in seconds."""
    rated = Link(link.state.device, link.state.link, link.state.peer, link.wire.folder)
    for change in rated.plan(ask(HOST, rated.observe()), {"delay": delay}):
        HOST.run(change.action).check()
    assert ask(HOST, rated.observe())["delay"] == delay
    return measure_round_trip(link)


def test_a_delay_makes_each_round_trip_longer_and_goes_again(wired):
    own, longer = delayed(wired, "0us"), delayed(wired, "5000us")
    assert 0.005 < longer < 0.015
    assert own < 0.003
    assert delayed(wired, "0us") < 0.003
    assert measure_throughput(wired).to_load > 30e6  # bytes a second, beside other tests


def test_a_link_with_a_delay_has_a_rate_too(wired):
    rated = Link(wired.state.device, wired.state.link, wired.state.peer, wired.wire.folder)
    want = {"rate": "20mbit", "delay": "2000us"}
    for change in rated.plan(ask(HOST, rated.observe()), want):
        HOST.run(change.action).check()
    assert ask(HOST, rated.observe()) == want
    assert measure_throughput(wired).to_load < bytes_per_s("20mbit") * 1.05


def test_nothing_is_left_of_a_link_with_a_delay(wired):
    pid = wired.wire.pid
    assert wired.down()
    assert not traces(wired.state.link)
    assert not Path(f"/proc/{pid}").exists()


def test_a_wire_that_has_ended_is_seen_and_takes_its_ends_with_it(wired):
    wired.wire.check()
    os.kill(wired.wire.pid, signal.SIGKILL)
    wait_for(lambda: not wired.wire.pid)
    with pytest.raises(HostError, match=r"link\.delay: its process .* has ended"):
        wired.wire.check()
    assert wired.state.device not in traces(wired.state.link)


def test_a_wire_ends_with_its_owner(tmp_path):
    def work():
        mine = planned(HOST, tmp_path / "wire")
        mine.up()
        (tmp_path / "pid").write_text(str(mine.wire.pid))
        (tmp_path / "name").write_text(mine.state.link)
        os.kill(os.getpid(), signal.SIGKILL)

    assert forked(work) == -signal.SIGKILL
    pid, name = (tmp_path / "pid").read_text(), (tmp_path / "name").read_text()
    wait_for(lambda: not Path(f"/proc/{pid}").exists())
    assert any(name in line for line in sweep_links(HOST))
    assert not traces(name)


def test_no_delay_where_the_kernel_makes_no_interfaces(monkeypatch, tmp_path):
    monkeypatch.setattr("mydyno.lab.lab_link._TUN", "/dev/net/none")
    assert "load the module `tun`" in available(HOST, delayed=True)
    assert available(HOST) == ""


def wait_for(done):
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


class Cut:
    """This host until it has run so many commands that change something."""

    name = HOST.name

    def __init__(self, host, steps):
        self.host, self.left = host, steps

    def run(self, action, *, timeout_s=60.0):
        changes = action.argv[0] == "ip" and {"add", "set"} & set(action.argv)
        if changes and self.left == 0:
            raise HostError("cut")
        self.left -= bool(changes)
        return self.host.run(action, timeout_s=timeout_s)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_link_half_made_is_swept(monkeypatch, steps):
    link = planned(Cut(HOST, steps))
    monkeypatch.setattr(link, "down", lambda: ())  # as if we were killed there
    with pytest.raises(HostError, match="cut"):
        link.up()
    assert traces(link.state.link)
    monkeypatch.setattr("mydyno.host.processes.alive", lambda host, process: False)
    assert any(link.state.link in line for line in sweep_links(HOST))
    assert not traces(link.state.link)


def test_no_link_without_its_tools(monkeypatch):
    monkeypatch.setattr("mydyno.lab.lab_link._TOOLS", ("no-such-tool",))
    link = planned(HOST)
    with pytest.raises(RefusedError, match="no-such-tool not found"):
        link.up()
    assert not traces(link.state.link)
