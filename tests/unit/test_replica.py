"""A replica: its lag and speed from what it has recorded, what counts as keeping up, refusals."""

import json

import pytest

from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.model import Metric, Outcome, SpecError, Trial, TrialStatus, Window
from mydyno.report.verdicts import ceiling_sentences
from mydyno.sample.lag import FILE, metrics
from mydyno.stack.flavours import quirks
from mydyno.stats.ceiling import ceilings
from mydyno.stats.result import Comparison
from mydyno.stats.rule import known

WINDOW = Window(10.0, 30.0)
SPEC = """
[stack]
server = "auto"
replica = true
{stack}
[treatments.A]
[treatments.B]
"{key}" = {value}
[workloads.w]
{load}
[design]
kind = "{kind}"
[protocol]
{protocol}
"""
LOAD = 'tool = "sysbench-oltp"\nscript = "oltp_read_write"\nthreads = 4'
HOST = Environment(2**30, 2, "mariadb", (10, 11, 19))


def recorded(folder, rows):
    (folder / FILE).write_text(json.dumps(rows))
    return {m.name: m.value for m in metrics(folder, WINDOW)}


def test_the_speed_is_what_a_second_of_the_replica_takes_in(tmp_path):
    before = [[25.0, 400.0]]  # of the warm-up: not in the window
    steps = [[20.0 - n, 1.0 + 0.4 * n] for n in range(20)]
    found = recorded(tmp_path, before + steps)
    assert found["replica_speed_ratio"] == pytest.approx(0.6)
    assert found["replica_lag_s"] == pytest.approx(1.0 + 0.4 * 9.5)
    assert recorded(tmp_path, [[20.0, 0.1], [1.0, 0.1]])["replica_speed_ratio"] == 1
    catching_up = recorded(tmp_path, [[20.0, 30.0], [0.0, 10.0]])
    assert catching_up["replica_speed_ratio"] == pytest.approx(2.0)


@pytest.mark.parametrize(
    "rows", [[], [[3.0, 0.1]], [[3.0, 0.1], [3.0, 0.1]], [[90.0, 1], [80.0, 1]]]
)
def test_too_little_is_no_metric(tmp_path, rows):
    assert recorded(tmp_path, rows) == {}


def test_no_file_and_a_broken_one_are_no_metric(tmp_path):
    assert metrics(tmp_path, WINDOW) == ()
    (tmp_path / FILE).write_text("[[1")
    assert metrics(tmp_path, WINDOW) == ()


def test_each_has_a_better_side():
    assert known("replica_lag_s") == "lower"
    assert known("replica_speed_ratio") == "higher"


def outcome(number, rate, tps, speed):
    found = (Metric("tps", tps, "/s"), Metric("replica_speed_ratio", speed, "ratio"))
    return Outcome(Trial(number, "a", f"w/4@{rate}", 0, 1), TrialStatus.OK, WINDOW, found)


def test_a_rate_that_the_replica_does_not_follow_is_not_kept_up_with():
    every = [outcome(0, 100, 100.0, 1.0), outcome(1, 200, 200.0, 0.99), outcome(2, 400, 400.0, 0.7)]
    (found,) = ceilings(every)
    assert (found.kept, found.missed, found.did, found.speed) == (200, 400, 400.0, 0.7)
    compared = Comparison("c", "tps", "a", 1.0, None, {}, [], ceilings=[found])
    assert ceiling_sentences(compared) == [
        "a, w/4: keeps up with 200 /s; of 400 /s it did 400 /s, and its replica 70 % of it."
    ]


def planned(*, stack="", key="mysqld.sync_binlog", value="1", load=LOAD, kind="race", protocol=""):
    text = SPEC.format(stack=stack, key=key, value=value, load=load, kind=kind, protocol=protocol)
    return plan(decode(text, "a.toml"), text, "a.toml", HOST)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"stack": 'data = "/srv/data"'}, "one private server"),
        ({"stack": 'servers = { b = "/opt/b" }'}, "one private server"),
        ({"kind": "switchback"}, "restarted before each trial"),
        ({"kind": "diagnose"}, "restarted before each trial"),
        ({"protocol": 'reset = "none"'}, "restarted before each trial"),
        ({"key": "net.tls", "value": '"on"'}, "remove net.tls"),
    ],
)
def test_where_none_can_follow_it_is_refused(given, words):
    with pytest.raises(SpecError, match=r"a\.toml:4: stack\.replica: ") as refused:
        planned(**given)
    assert words in str(refused.value)


def test_a_small_budget_restarts_all_the_same():
    text = SPEC.format(
        stack="", key="mysqld.sync_binlog", value=1, load=LOAD, kind="auto", protocol=""
    ).replace('kind = "auto"', 'budget = "3m"')
    assert plan(decode(text, "a.toml"), text, "a.toml", HOST).design.__class__.__name__ == "Race"
    alone = text.replace("replica = true", "")
    other = plan(decode(alone, "a.toml"), alone, "a.toml", HOST)
    assert other.design.__class__.__name__ == "Switchback"


@pytest.mark.parametrize(
    ("flavour", "version", "words"),
    [
        ("mariadb", (10, 11), ("CHANGE MASTER TO", "MASTER_USE_GTID = no", "START SLAVE")),
        ("mysql", (5, 7, 22), ("CHANGE MASTER TO", "START SLAVE")),
        ("mysql", (8, 0, 20), ("CHANGE MASTER TO", "GET_MASTER_PUBLIC_KEY = 1", "START SLAVE")),
        ("mysql", (9, 7, 4), ("CHANGE REPLICATION SOURCE TO", "SOURCE_PORT", "START REPLICA")),
    ],
)
def test_each_version_has_its_statements(flavour, version, words):
    found = quirks(flavour, version).replication
    text = found.follow.format(host="h", port=1, user="u", password="p", file="f", at=4)  # noqa: S106
    assert all(word in text for word in words)
    assert ("MASTER" in text) == (version < (9,) or flavour == "mariadb")
    new = flavour == "mysql" and version > (8, 4)
    assert found.position == ("SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")
