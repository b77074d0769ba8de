"""Doses as settings: what is a dose, what its latency becomes, and where one is refused."""

from pathlib import Path

import pytest

from mydyno.campaign.doses import factor
from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.model import SpecError
from mydyno.stack.doses import LabDisk, Slow, parse_caps, parse_disk, parse_slow, resolved
from mydyno.stack.protocol import split

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
[design]
kind = "diagnose"
{design}
[decide]
baseline = "A"
"""
LAB = 'device = { lab = "loop", size = "1G", class = "aws-gp3" }'
LINK = '"net.address" = "lab"\n"net.transport" = "tcp"\n"link.rate" = "{}"'
HOST = Environment(2**30, 2, "mariadb", (10, 11, 19))


def campaign(stack=LAB, settings="", design=""):
    text = SPEC.format(stack=stack, settings=settings, design=design)
    return plan(decode(text, "a.toml"), text, "a.toml", HOST)


def test_the_doses_are_what_lab_link_and_host_allow():
    names = [n for n in campaign().treatments if n != "A"]
    assert names == [
        *("disk.rate 80%", "disk.rate 125%", "disk.read_latency 125%", "disk.flush_latency 125%"),
        *("slow.host 80%", "all"),
        *(n for n in names if n.startswith("try ")),
    ]
    assert "disk.rate 80%" not in campaign(LAB.replace(', class = "aws-gp3"', "")).treatments
    far = campaign('host = "ssh://root@db1"\n' + LAB).treatments
    assert "slow.host 80%" not in far


def test_all_at_once_is_every_dose_that_slows_and_no_other():
    found = campaign(settings=LINK.format("40mbit")).treatments
    worse = [n for n in found if n not in {"A", "all"} and factor(n) < 1]
    own = {**found["A"]}
    doses = {k: v for n in worse for k, v in found[n].items() if own.get(k) != v}
    assert {**found["all"]} == {**own, **doses}
    assert len(doses) == len(worse) == 5
    assert found["link.rate 80%"]["db/link.rate"] == "32mbit"
    assert found["link.rate 125%"]["db/link.rate"] == "50mbit"


def test_a_rate_that_is_a_share_of_the_traffic_stays_one():
    found = campaign(settings=LINK.format("40%")).treatments
    assert found["link.rate 80%"]["db/link.rate"] == "32%"
    assert not [name for name in found if name.startswith("try ")]  # it would change the traffic


def test_chosen_doses_only_and_an_unknown_one_is_refused():
    found = campaign(design='doses = ["disk.rate"]').treatments
    assert [*found] == ["A", "disk.rate 80%", "disk.rate 125%"]
    with pytest.raises(SpecError, match="did you mean"):
        campaign(design='doses = ["disk.rat"]')


def test_a_setting_that_is_relief_already_is_not_tried():
    stock = campaign().treatments
    assert "try mysqld.sort_buffer_size=256K" in stock
    same = campaign(settings='"mysqld.sort_buffer_size" = "256K"').treatments
    assert "try mysqld.sort_buffer_size=256K" not in same


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('"slow.host" = "80%"', "is a dose of `mydyno diagnose` only"),
        ('"disk.rate" = "60%"', "from 70% to 150%"),
        ('"disk.flush_latency" = "2s"', "such as 250us"),
        ('"disk.latency" = "1us"', "did you mean"),
    ],
)
def test_a_wrong_dose_is_refused(settings, message):
    with pytest.raises(SpecError, match=message):
        campaign(settings=settings)


def test_nothing_that_can_be_slowed_is_refused():
    with pytest.raises(SpecError, match="nothing can be slowed"):
        campaign('host = "ssh://root@db1"\ndevice = "here"', design="doses = []")


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
    assert parse_disk(raw) == now
    want = {"rate": "80%", "flush_latency": "1000us"}
    assert LabDisk(Path("ctl")).plan(now, want) == []
    (back,) = LabDisk(Path("ctl")).plan({**now, "flush_latency": "0us"}, {"rate": "100%"})
    assert back.action.stdin == b"scale 1.0\nlatency 0 0 0\n"
    assert parse_caps(raw) == {"disk.cap_ios": 1000.0, "disk.burst_ios": 7000.0}
    assert parse_caps(raw.replace(b'"capped":true', b'"capped":false')) == {"disk.uncapped": 1.0}


def test_an_older_daemon_has_no_dose():
    assert parse_disk(b'{"capped":true}')["rate"] == "100%"


def test_slices_of_cpus_are_ordered_in_one_file():
    layer = Slow(Path("spin"))
    assert parse_slow(b"host 0.8\n") == {"host": "80%"}
    (change,) = layer.plan({"host": "100%"}, {"host": "80%"})
    assert change.action.stdin == b"host 0.8\n"
    (undone,) = layer.plan({"host": "80%"}, {})
    assert undone.action.stdin == b"host 1.0\n"
