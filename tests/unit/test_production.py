"""The effect of a change in production: found, not invented, refused where nothing shows it."""

import json
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import numpy as np
import pytest

from mydyno.cli import effect as command
from mydyno.keep.history import Samples, from_csv, from_prometheus, from_samples, peaks
from mydyno.model import HostError, SpecError
from mydyno.stats.production import DAY_H, WEEK_H, History, TooLittleError, can_show, effect
from unit.sampler_file import File

WEEKS = 6
CHANGE = 490_000 // DAY_H * DAY_H + WEEKS * WEEK_H


def pair(seed=1, change=0.0, hours=72, *, weeks=WEEKS, drift=0.0, growth=0.0):
    """Return a server with a daily curve and noise, and a control that shares its drift."""
    chance = np.random.default_rng(seed)
    count = weeks * WEEK_H + hours
    hour = np.arange(CHANGE - weeks * WEEK_H, CHANGE + hours)
    daily = 0.5 * np.sin(2 * np.pi * (hour % DAY_H) / DAY_H)
    common = np.cumsum(chance.normal(0, drift / np.sqrt(DAY_H), count))
    made = []
    for mine in (True, False):
        load = 6 + daily + growth * (hour >= CHANGE) + chance.normal(0, 0.05, count)
        level = 0.3 * daily + common + chance.normal(0, 0.03, count)
        level += change * (hour >= CHANGE) * mine
        made.append(History(hour, np.exp(level - 5), np.exp(load)))
    return made


def test_a_change_is_found_with_its_size():
    own, _ = pair(change=np.log(0.85))
    found = effect(own, CHANGE, 72)
    assert found.low < 0.85 < found.high
    assert found.verdict == "keep"
    worse, _ = pair(change=np.log(1.2))
    assert effect(worse, CHANGE, 72).verdict == "revert"


def test_no_change_is_none_in_most_histories():
    """At the nominal rate: the bench has the tables; this is what breaks first."""
    alarms = 0
    for seed in range(60):
        own, _ = pair(seed, drift=0.05, hours=24)
        found = effect(own, CHANGE, 24)
        alarms += not found.low <= 1 <= found.high
    assert alarms <= 9  # binomial, 5 %: more in 1 of 1,000


def test_hours_to_come_do_not_make_the_error_smaller():
    """As where a timer looks each hour: 24 hours were asked for, and one is there."""
    wrong = 0
    for seed in range(20):
        own, _ = pair(seed, hours=1)
        found = effect(own, CHANGE, 24)
        assert found.half_width == effect(own, CHANGE, 1).half_width
        wrong += found.verdict == "revert"
    assert wrong <= 1
    own, _ = pair(hours=24)
    few = np.ones(len(own.hour), dtype=bool)
    few[-23:-3] = False
    with pytest.raises(TooLittleError, match="4 of the 24 hours"):
        effect(History(own.hour[few], own.value[few], own.load[few]), CHANGE, 24)


def test_a_control_takes_away_what_both_share():
    own, other = pair(drift=0.15)
    assert can_show(own, CHANGE, 24, other) < 0.5 * can_show(own, CHANGE, 24)
    own, other = pair(3, change=np.log(0.85), drift=0.15, hours=24)
    found = effect(own, CHANGE, 24, other)
    assert found.low < 0.85 < found.high < 1


def test_what_can_be_shown_is_known_before_the_change():
    own, _ = pair(hours=24)
    foretold = can_show(
        History(*(a[: WEEKS * WEEK_H] for a in (own.hour, own.value, own.load))), CHANGE, 24
    )
    assert foretold == pytest.approx(effect(own, CHANGE, 24).half_width, rel=0.01)


def test_gaps_are_left_out():
    own, _ = pair(change=np.log(0.8))
    there = np.random.default_rng(2).random(len(own.hour)) > 0.2
    found = effect(History(own.hour[there], own.value[there], own.load[there]), CHANGE, 72)
    assert found.low < 0.8 < found.high
    assert found.hours < 72


def test_a_day_before_the_change_without_data_is_refused():
    own, _ = pair(change=np.log(0.8))
    there = (own.hour < CHANGE - 30) | (own.hour >= CHANGE)
    with pytest.raises(TooLittleError, match="no hour of the day before the change"):
        effect(History(own.hour[there], own.value[there], own.load[there]), CHANGE, 24)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"weeks": 3}, "3.0 weeks before the change; at least 4"),
        ({"growth": 2.0}, "not comparable: the load of"),
        ({"hours": 0}, "no hour after the change"),
    ],
)
def test_what_cannot_be_shown_is_refused(made, reason):
    own, _ = pair(**made)
    with pytest.raises(TooLittleError, match=reason):
        effect(own, CHANGE, made.get("hours", 72) or 24)


def table(path, history):
    rows = zip(history.hour, history.value, history.load, strict=True)
    lines = [f"{h * 3600 + 60},{v},{q}" for h, v, q in rows]
    path.write_text("\n".join(["time,value,load", *lines]) + "\n")
    return path


def moments(first, last):
    return "..".join(
        f"{datetime.fromtimestamp(h * 3600, UTC):%Y-%m-%dT%H:%M}" for h in (first, last)
    )


def test_the_command_reads_tables_and_exits_with_1_where_it_is_worse(tmp_path, capsys):
    own, other = pair(change=np.log(1.3))
    files = [str(table(tmp_path / f"{name}.csv", h)) for name, h in (("a", own), ("b", other))]
    with pytest.raises(command.typer.Exit) as ended:
        command.effect(files[0], after=moments(CHANGE, CHANGE + 72), control=files[1])
    assert ended.value.exit_code == 1
    text = capsys.readouterr().out
    assert "compared with an untouched control" in text
    assert "revert: it is worse" in text
    command.effect(files[1], after=moments(CHANGE, CHANGE + 72), json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] in {"keep", "wait"}
    assert found["low"] < 1 < found["high"]
    command.effect(files[0], before=moments(CHANGE - 5 * WEEK_H, CHANGE))
    assert "24 h after it: a change of" in capsys.readouterr().out


def test_hours_of_samples_are_statements_at_once_over_statements_a_second():
    """Two files of one server: what is between them, and less than half an hour, is a gap."""
    first = np.arange(0, 3600 * 2, 5.0)
    second = np.arange(3600 * 3 + 2400, 3600 * 5, 5.0)
    parts = [
        Samples(wall, np.full(len(wall), 2.0), 100.0 * (wall - wall[0])) for wall in (first, second)
    ]
    found = from_samples(parts)
    assert [*found.hour] == [0, 1, 4]
    assert found.value == pytest.approx([0.02] * 3)
    assert found.load == pytest.approx([100.0] * 3)
    restarted = Samples(first, np.full(len(first), 2.0), (100.0 * first) % 200_000)
    assert from_samples([restarted]).load == pytest.approx([100.0] * 2)


def test_a_connection_that_the_server_counts_twice_as_it_ends_adds_no_statements(tmp_path):
    """Its fall is no step, but its rise would be one."""
    file = File().define(
        "server",
        ("status.threads_running", "", "gauge", 1.0),
        ("status.questions", "", "counter", 1.0),
    )
    for seq in range(2000):
        asked = 100 * seq + (90_000 if seq % 100 == 50 else 0)
        seen = {("status.threads_running", ""): 3, ("status.questions", ""): asked}
        file.tick(seq, seen, read=("server",))
    found = command._sampled([file.end(0).written(tmp_path)])  # noqa: SLF001 - not 24 h of it
    assert found.load == pytest.approx([100.0] * len(found.load))
    assert len(found.load)


def test_a_file_of_the_sampler_without_a_server_is_refused(tmp_path):
    file = File().define("host", ("host.x", "", "gauge", 1.0))
    file.tick(0, {("host.x", ""): 1}).end(0).written(tmp_path)
    with pytest.raises(SpecError, match="has no server; sample with --server-defaults"):
        command.effect(str(tmp_path), after=moments(CHANGE, CHANGE + 72))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "no column 'time'"),
        ("time,value,load\n1,2,x\n", ":2: "),
        ("time,value,load\nyesterday,2,3\n", ":2: "),
        ("time,value,load\n1,2\n", ":2: "),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path, text, message):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(SpecError, match=message):
        from_csv(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"after": "2026-11-10"}, "write 2026-11-10"),
        ({"after": "2026-11-10..2026-11-09"}, "ends before it begins"),
        ({"after": "soon..later"}, "write 2026-11-10"),
        ({"after": "2026-11-10..2026-11-12", "before": "2026-10-01..2026-11-11"}, "must end where"),
        ({}, "no such file"),
        ({"value": "up"}, "add --prometheus URL"),
        ({"load": "up"}, "add --prometheus URL"),
    ],
)
def test_bad_input_names_the_next_step(given, message):
    with pytest.raises(SpecError, match=message):
        command.effect("none.csv", **given)


class Flaky(BaseHTTPRequestHandler):
    """Answers 503 twice, then one series; an expression with `bad` is refused."""

    asked = 0

    def do_GET(self):
        Flaky.asked += 1
        code = 400 if "bad" in self.path else 503 if Flaky.asked <= 2 else 200
        series = {"values": [[3600 * 101, "2.5"], [3600 * 102, "NaN"]], "value": [0, "7.5"]}
        body = {"data": {"result": [series]}}
        if code == 400:
            body = {"error": "parse error"}
        if "two" in self.path:
            body["data"]["result"] *= 2
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        """Print nothing."""


def test_prometheus_is_asked_again_and_what_it_refuses_is_named(monkeypatch):
    monkeypatch.setattr("mydyno.keep.history._PAUSE_S", 0.0)
    server = HTTPServer(("127.0.0.1", 0), Flaky)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    try:
        Flaky.asked = 0
        found = from_prometheus(url, "value", "load", 100, 102)
        assert (list(found.hour), list(found.value)) == ([100], [2.5])  # NaN is a gap
        with pytest.raises(SpecError, match="bad: Prometheus refuses it: parse error"):
            from_prometheus(url, "bad", "load", 100, 102)
        assert peaks(url, "db1:9104", ["questions"]) == {"questions": 7.5}
        with pytest.raises(SpecError, match="2 series have this instance"):
            peaks(url, "two", ["questions"])
        with pytest.raises(SpecError, match="gives 2 series"):
            from_prometheus(url, "two", "load", 100, 102)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    with pytest.raises(HostError, match="no answer after 4 tries"):
        from_prometheus(url, "value", "load", 100, 102)
    with pytest.raises(SpecError, match="write http://HOST:9090"):
        from_prometheus("file:///etc/passwd", "value", "load", 100, 102)
