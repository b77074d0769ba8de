"""Doses as settings: what is a dose, what its latency becomes, and where one is refused."""

from pathlib import Path

import msgspec
import pytest

from mydyno.campaign.doses import STRENGTHS, factor, title
from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.host import Completed
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import SpecError
from mydyno.stack import Ledger, Site, converge
from mydyno.stack.doses import (
    LabDisk,
    Slow,
    credit_level,
    parse_caps,
    parse_disk,
    parse_slow,
    resolved,
)
from mydyno.stack.protocol import split
from mydyno.testing import FakeHost

SPEC = """
[stack]
server = "auto"
{stack}
[treatments.A]
{settings}
[workloads.w]
tool = "sysbench-oltp"
script = "oltp_read_only"
threads = 4
{response}
[design]
kind = "diagnose"
{design}
[decide]
baseline = "A"
"""
IDLE = b'{"scale":0.7,"dose_us":[0.0,0.0,0.0],"capped":true,"disks":[{}],"caps":{},"vm":null}'
LAB = 'device = { lab = "loop", size = "1G", class = "aws-gp3" }'
LINK = '"net.address" = "lab"\n"net.transport" = "tcp"\n"link.rate" = "{}"'
HOST = Environment(2**30, 2, "mariadb", (10, 11, 19))


def campaign(stack=LAB, settings="", design="", response=""):
    named = response and f'response = "{response}"'
    text = SPEC.format(stack=stack, settings=settings, design=design, response=named)
    return plan(decode(text, "a.toml"), text, "a.toml", HOST)


def test_the_doses_are_what_lab_link_and_host_allow():
    names = [n for n in campaign().treatments if n != "A"]
    assert names == [
        *("disk.rate 80%", "disk.rate 125%", "disk.read_latency 125%", "disk.flush_latency 125%"),
        *("slow.host 80%", "all 80%"),
        *("disk.rate 70%", "disk.rate 143%", "disk.read_latency 143%", "disk.flush_latency 143%"),
        *("slow.host 70%", "all 70%"),
        *(n for n in names if n.startswith("try ")),
    ]
    assert "disk.rate 80%" not in campaign(LAB.replace(', class = "aws-gp3"', "")).treatments
    far = campaign('host = "ssh://root@db1"\n' + LAB).treatments
    assert "slow.host 80%" not in far


def test_server_and_load_are_slowed_apart_where_each_has_cpus_of_its_own():
    pins = '"cpus.allowed" = "0"\n"load/cpus.allowed" = "{}"'
    names = [n for n in campaign(settings=pins.format("1")).treatments if n.startswith("slow.")]
    assert names == ["slow.server 80%", "slow.load 80%", "slow.server 70%", "slow.load 70%"]
    shared = campaign(settings=pins.format("0-1")).treatments
    assert [n for n in shared if n.startswith("slow.")] == ["slow.host 80%", "slow.host 70%"]


def test_all_at_once_is_every_dose_that_slows_and_no_other():
    found = campaign(settings=LINK.format("40mbit")).treatments
    own = {**found["A"]}
    for slower, longer in STRENGTHS:
        some = {n for n in found if n.endswith((slower, longer)) and factor(n) < 1}
        worse = some - {f"all {slower}"}
        doses = {k: v for n in worse for k, v in found[n].items() if own.get(k) != v}
        assert {**found[f"all {slower}"]} == {**own, **doses}
        assert len(doses) == len(worse) == 5
    assert found["link.rate 80%"]["db/link.rate"] == "32mbit"
    assert found["link.rate 125%"]["db/link.rate"] == "50mbit"


def test_a_servers_quota_is_lowered_and_raised_where_it_has_one():
    found = campaign(settings='"cgroup.cpu" = "50%"').treatments
    quotas = {n: s["db/cgroup.cpu"] for n, s in found.items() if n.startswith("cgroup.cpu")}
    assert quotas == {
        "cgroup.cpu 80%": "40%",
        "cgroup.cpu 125%": "62.5%",
        "cgroup.cpu 70%": "35%",
        "cgroup.cpu 143%": "71.5%",
    }
    assert not [name for name in campaign().treatments if name.startswith("cgroup")]


def test_a_rate_that_is_a_share_of_the_traffic_stays_one():
    found = campaign(settings=LINK.format("40%")).treatments
    assert found["link.rate 80%"]["db/link.rate"] == "32%"
    assert not [name for name in found if name.startswith("try ")]  # it would change the traffic


def test_a_longer_round_trip_is_a_dose_and_a_shorter_one_relaxes_it():
    far = LINK.format("1gbit") + '\n"link.delay" = "2ms"'
    found = campaign(settings=far).treatments
    worse, better = found["link.delay 125%"], found["link.delay 80%"]
    assert (worse["db/link.delay"], better["db/link.delay"]) == ("2500us", "1600us")
    assert factor("link.delay 125%") == pytest.approx(0.8)
    assert factor("link.delay 80%") == pytest.approx(1.25)
    assert found["all 80%"]["db/link.delay"] == "2500us"
    assert not [n for n in campaign(settings=LINK.format("1gbit")).treatments if "delay" in n]


def test_chosen_doses_only_and_an_unknown_one_is_refused():
    found = campaign(design='doses = ["disk.rate"]').treatments
    assert [*found] == ["A", *(f"disk.rate {n}%" for n in (80, 125, 70, 143))]
    with pytest.raises(SpecError, match="did you mean"):
        campaign(design='doses = ["disk.rat"]')


def test_a_setting_that_is_relief_already_is_not_tried():
    stock = campaign().treatments
    assert "try mysqld.sort_buffer_size=256K" in stock
    same = campaign(settings='"mysqld.sort_buffer_size" = "256K"').treatments
    assert "try mysqld.sort_buffer_size=256K" not in same


@pytest.mark.parametrize(
    ("setting", "value", "tried"),
    [
        ("innodb_flush_log_at_trx_commit", "1", True),
        ("innodb_flush_log_at_trx_commit", "0", False),
        ("innodb_flush_log_at_trx_commit", "3", True),
        ("sync_binlog", "1", True),
        ("sync_binlog", "0", False),
        ("sort_buffer_size", "2M", True),
        ("sort_buffer_size", "64K", False),
        ("tmp_table_size", "16M", True),
        ("tmp_table_size", '256M"\n"mysqld.max_heap_table_size" = "256M', False),
        ("tmp_table_size", "256M", True),  # the other one is smaller by default, and counts
    ],
)
def test_a_relief_is_on_the_relieving_side_of_what_the_treatment_has(setting, value, tried):
    found = campaign(settings=f'"mysqld.{setting}" = "{value}"').treatments
    assert any(name.startswith(f"try mysqld.{setting}=") for name in found) == tried


def test_a_relief_leaves_what_is_larger_already():
    """The larger one alone counts on MySQL 8; another server gets the smaller one raised."""
    found = campaign(settings='"mysqld.tmp_table_size" = "256M"').treatments
    arm = found["try mysqld.tmp_table_size=64M"]
    assert arm["db/mysqld.tmp_table_size"] == "256M"
    assert arm["db/mysqld.max_heap_table_size"] == "64M"
    assert "try mysqld.sync_binlog=0" not in found  # which of the defaults it has is not known


def test_a_larger_thread_pool_is_tried_where_there_is_one():
    """A server without one does not know the variable, and would refuse the campaign."""
    larger = "try mysqld.thread_pool_size=64"
    pool = '"mysqld.thread_handling" = "pool-of-threads"'
    assert larger in campaign(settings=pool).treatments
    assert larger not in campaign().treatments
    assert larger not in campaign(settings=f'{pool}\n"mysqld.thread_pool_size" = "64"').treatments


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('"slow.host" = "80%"', "is a dose of `mydyno diagnose` only"),
        ('"disk.rate" = "60%"', "from 70% to 150%"),
        ('"disk.flush_latency" = "2s"', "such as 250us"),
        ('"disk.read_latency" = "150%"', "such as 250us"),
        ('"disk.latency" = "1us"', "did you mean"),
    ],
)
def test_a_wrong_dose_is_refused(settings, message):
    with pytest.raises(SpecError, match=message):
        campaign(settings=settings)


def test_a_latency_of_the_treatments_own_stays_under_a_dose():
    found = campaign(settings='"disk.read_latency" = "2000us"').treatments
    measured = {"read_latency": 0.004}
    for name in ("disk.read_latency 125%", "all 80%"):
        assert resolved(found[name], measured)["db/disk.read_latency"] == "3000us"
    assert resolved(found["disk.read_latency 125%"], {})["db/disk.read_latency"] == "2000us"
    assert resolved(found["disk.flush_latency 125%"], measured)["db/disk.read_latency"] == "2000us"


def test_a_dose_of_the_rate_is_a_share_of_what_the_treatment_has():
    found = campaign(settings='"disk.rate" = "70%"').treatments
    rates = {n: s["db/disk.rate"] for n, s in found.items() if n.startswith("disk.rate")}
    assert rates["disk.rate 80%"] == "56%"
    assert rates["disk.rate 125%"] == "87.5%"
    assert found["all 80%"]["db/disk.rate"] == "56%"
    (order,) = LabDisk(Path("ctl")).plan({**parse_disk(IDLE), "rate": "70%"}, {"rate": "56%"})
    assert order.after == "56%"


def test_a_class_that_a_treatment_gives_the_disk_has_a_rate():
    bare = LAB.replace(', class = "aws-gp3"', "")
    assert "disk.rate 80%" in campaign(bare, '"disk.class" = "aws-gp3"').treatments


def test_a_link_without_a_rate_has_no_dose_of_it():
    found = campaign(settings=LINK.format("unlimited")).treatments
    assert not [name for name in found if name.startswith("link.rate")]
    assert found["slow.host 80%"]["db/link.rate"] == "unlimited"


def test_larger_tables_in_memory_are_tried_with_both_settings():
    """Of all servers but MySQL from 8.0 on, the smaller of the two is what counts."""
    name = "try mysqld.tmp_table_size=64M"
    found = campaign().treatments[name]
    keys = ("db/mysqld.tmp_table_size", "db/mysqld.max_heap_table_size")
    assert [found[key] for key in keys] == ["64M", "64M"]
    assert title(name) == "mysqld.tmp_table_size and mysqld.max_heap_table_size = 64M"


def test_full_credits_are_tried_on_a_disk_that_bursts_and_begins_with_none():
    burst = LAB.replace("aws-gp3", "azure-p10")
    assert campaign(burst).treatments["try disk.credits=full"]["db/disk.credits"] == "full"
    for other in (LAB, burst[:-2] + ', credits = "full" }'):
        assert "try disk.credits=full" not in campaign(other).treatments
    assert "try disk.credits=full" not in campaign(burst, '"disk.credits" = "50%"').treatments


def test_nothing_that_can_be_slowed_is_refused():
    with pytest.raises(SpecError, match="nothing can be slowed"):
        campaign('host = "ssh://root@db1"\ndevice = "here"', design="doses = []")
    with pytest.raises(SpecError, match="nothing can be slowed"):  # settings alone prove nothing
        campaign('host = "ssh://root@db1"\ndevice = "here"')


def test_a_load_whose_response_is_a_latency_is_refused():
    """It rises where a throughput falls, so that every limit was refuted."""
    with pytest.raises(SpecError, match="the response is latency_p99_s; name a throughput"):
        campaign(response="latency_p99_s")


def test_a_latency_given_as_a_share_becomes_what_is_added_to_the_measured_one():
    settings = split({"db/disk.flush_latency": "125%", "db/disk.rate": "80%"})
    found = resolved(settings, {"flush_latency": 0.004})
    assert {**found} == {"db/disk.rate": "80%", "db/disk.flush_latency": "1000us"}
    assert {**resolved(settings, {})} == {"db/disk.rate": "80%"}  # not measured: nothing is added


def test_the_daemons_state_is_read_back():
    raw = (
        b'{"scale":0.8,"dose_us":[0.0,0.0,1000.0],"capped":true,"disks":[{},{}],'
        b'"caps":{"iops":{"base":500.0,"burst":3500.0},"bytes_per_s":null},"vm":null}'
    )
    now = {"rate": "80%", "read_latency": "0us", "write_latency": "0us", "flush_latency": "1000us"}
    now["credits"] = "0%"
    assert parse_disk(raw) == now
    want = {"rate": "80%", "flush_latency": "1000us"}
    assert LabDisk(Path("ctl")).plan(now, want) == []
    (back,) = LabDisk(Path("ctl")).plan({**now, "flush_latency": "0us"}, {"rate": "100%"})
    assert back.action.stdin == b"scale 1.0\nlatency 0 0 0\n"
    assert parse_caps(raw) == {"disk.cap_ios": 800.0, "disk.burst_ios": 5600.0}  # at that rate
    assert parse_caps(raw.replace(b'"capped":true', b'"capped":false')) == {"disk.uncapped": 1.0}


def test_each_lab_disk_has_its_own_doses(tmp_path):
    """A baseline on a second disk was measured under the dose of the treatment before it."""
    control = {name: tmp_path / name for name in "ab"}
    scales = dict.fromkeys("ab", 1.0)

    class Disks(FakeHost):
        def run(self, action, **_):
            name = Path(action.argv[-1]).name
            if action.argv[0] == "tee":
                scales[name] = float(action.stdin.split()[1])
            state = {"pid": ord(name), "scale": scales[name], "capped": True}
            return Completed(action, 0, msgspec.json.encode(state), b"")

    host, ledger = Disks({}, iter), Ledger(MemoryRecords(), MemoryJournal())
    for trial, (name, want) in enumerate([("a", "70%"), ("b", "70%"), ("a", ""), ("b", "")]):
        settings = split({"db/disk.rate": want} if want else {})
        layer = LabDisk(control[name])
        converge(Site("db", host, (layer,)), settings, ledger, trial)
    assert scales == {"a": 1.0, "b": 1.0}


def test_an_older_daemon_has_no_dose():
    assert parse_disk(b'{"capped":true}')["rate"] == "100%"


def test_only_the_roles_that_there_are_get_orders():
    layer = Slow(Path("/x"))
    now = {"server": "100%", "load": "100%"}
    (change,) = layer.plan(now, {"load": "80%"})
    assert (change.key, change.before, change.after) == ("load", "100%", "80%")
    assert change.action.stdin == b"server 1.0\nload 0.8\n"


def test_slices_of_cpus_are_ordered_in_one_file():
    layer = Slow(Path("spin"))
    assert parse_slow(b"host 0.8\n") == {"host": "80%"}
    (change,) = layer.plan({"host": "100%"}, {"host": "80%"})
    assert change.action.stdin == b"host 0.8\n"
    (undone,) = layer.plan({"host": "80%"}, {})
    assert undone.action.stdin == b"host 1.0\n"


BURST = b'{"credits_level":0.25,"caps":{"iops":{"base":500.0,"burst":3500.0},"bytes_per_s":null}}'


@pytest.mark.parametrize(
    ("text", "level"), [("empty", "0%"), ("full", "100%"), ("2.5%", "2.5%"), ("0.25", "25%")]
)
def test_credits_are_a_share_of_a_full_bucket(text, level):
    assert credit_level(text) == level


@pytest.mark.parametrize("text", ["", "half", "101%", "-1%", "1.1", "nan", "250us"])
def test_a_level_that_cannot_be_is_refused(text):
    with pytest.raises(SpecError, match=r"disk.credits = .*write empty, full, or a share"):
        credit_level(text)


def test_credits_have_an_order_of_their_own_and_go_back_to_the_labs():
    now = parse_disk(BURST)
    assert now["credits"] == "25%"
    lab = LabDisk(Path("ctl"), "10%")
    (change,) = lab.plan(now, {"credits": "full"})
    assert (change.after, change.action.stdin) == ("100%", b"credits 1.0\n")
    (back,) = lab.plan(now, {})
    assert (back.after, back.action.stdin) == ("10%", b"credits 0.1\n")
    (slower,) = lab.plan({**now, "credits": "10%"}, {"rate": "80%"})
    assert b"credits" not in slower.action.stdin


def test_a_disk_that_never_bursts_has_no_credits():
    now = parse_disk(BURST.replace(b"3500", b"500"))
    assert "credits" not in now
    assert LabDisk(Path("ctl")).plan(now, {}) == []
    with pytest.raises(SpecError, match="never bursts; choose a class that does"):
        LabDisk(Path("ctl")).plan(now, {"credits": "full"})


def test_treatments_whose_loads_begin_with_credits_may_fall_by_themselves():
    assert campaign(settings='"disk.credits" = "5%"').rule.bursts >= {"A"}
    assert campaign(LAB[:-2] + ', credits = "full" }').rule.bursts >= {"A"}
    assert campaign().rule.bursts == frozenset()
    machine = 'device = { lab = "vm", class = "azure-p15", credits = "full" }'
    assert campaign(machine).rule.bursts >= {"A"}
    empty = machine.replace("full", "empty")
    assert campaign(empty).rule.bursts == {"try disk.credits=full"}
    assert campaign(empty, '"disk.credits" = "5%"').rule.bursts >= {"A"}
    with pytest.raises(SpecError, match=r"disk\.rate: the disks of a virtual machine"):
        campaign(machine, '"disk.credits" = "5%"\n"disk.rate" = "80%"')
    with pytest.raises(SpecError, match=r"disk.credits = 'some'"):
        campaign(settings='"disk.credits" = "some"')
