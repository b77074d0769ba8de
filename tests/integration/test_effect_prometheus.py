"""`mydyno effect` on a real Prometheus whose history was back-filled with a known change."""

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from datetime import UTC, datetime

import numpy as np
import pytest

from command_line import mydyno, shown
from mydyno.keep.history import peaks
from mydyno.model import SpecError

pytestmark = [pytest.mark.slow]
STEP_S, WEEKS, AFTER_H = 300, 6, 48
CHANGE_S = 1_760_000_000 // 86400 * 86400  # a midnight of 2025
BEGIN_S = CHANGE_S - WEEKS * 7 * 86400
RATIO = 0.8


def openmetrics(path):
    """Write counters and levels of two servers; the first gets faster at the change."""
    chance = np.random.default_rng(5)
    lines = {"queries": [], "running": []}
    for name, gain in (("db1:9104", RATIO), ("db2:9104", 1.0)):
        total = 0.0
        for at in range(BEGIN_S, CHANGE_S + AFTER_H * 3600, STEP_S):
            daily = np.sin(2 * np.pi * (at % 86400) / 86400)
            rate = 400 * np.exp(0.5 * daily + chance.normal(0, 0.05))
            mean = (
                0.004
                * np.exp(0.2 * daily + chance.normal(0, 0.1))
                * (gain if at >= CHANGE_S else 1)
            )
            total += rate * STEP_S
            label = f'{{instance="{name}"}}'
            lines["queries"].append(f"mysql_global_status_questions{label} {total:.0f} {at}")
            lines["running"].append(
                f"mysql_global_status_threads_running{label} {rate * mean:.5f} {at}"
            )
    text = [
        "# TYPE mysql_global_status_questions gauge", *lines["queries"],
        "# TYPE mysql_global_status_threads_running gauge", *lines["running"], "# EOF",
    ]  # fmt: skip
    path.write_text("\n".join(text) + "\n")


@contextmanager
def prometheus(folder):
    """Yield the address of a Prometheus of ours on these blocks."""
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [
        "prometheus", f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.retention.time=100y",
    ]  # fmt: skip
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(argv, stdout=log, stderr=log) as running,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            for _ in range(1200):
                time.sleep(0.1)
                try:
                    urllib.request.urlopen(f"{url}/-/ready", timeout=5).close()  # noqa: S310 - ours
                    break
                except OSError:
                    assert running.poll() is None, (folder / "log").read_text()[-2000:]
            yield url
        finally:
            running.terminate()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    if not shutil.which("promtool"):
        pytest.skip("promtool is missing: install prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    openmetrics(folder / "history")
    argv = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        "--max-block-duration=744h",  # else one block for each two hours of 44 days
        folder / "history",
        folder / "data",
    ]
    subprocess.run(argv, check=True, capture_output=True)
    with prometheus(folder) as address:
        yield address


def moments(first, last):
    return "..".join(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M}" for at in (first, last))


def asked(url, *arguments, command=shown):
    done = command("effect", *arguments, "--prometheus", url, "--json")
    assert done.returncode in {0, 1}, done.stderr
    return json.loads(done.stdout)


def test_the_change_of_one_server_is_found_and_of_the_other_none(url):
    when = (
        "--after",
        moments(CHANGE_S, CHANGE_S + AFTER_H * 3600),
        "--before",
        moments(BEGIN_S, CHANGE_S),
    )
    found = asked(url, "db1:9104", *when)
    assert found["low"] < RATIO < found["high"] < 1
    assert found["hours"] >= AFTER_H - 2
    assert found["verdict"] == "keep"
    other = asked(url, "db2:9104", *when)
    assert other["low"] < 1 < other["high"]
    both = asked(url, "db1:9104", *when, "--control", "db2:9104")
    assert both["low"] < RATIO < both["high"] < 1


def test_what_the_history_can_show_and_what_it_cannot(url):
    before = ("--before", moments(BEGIN_S, CHANGE_S))
    found = asked(url, "db1:9104", *before, command=mydyno)["can_show"]
    assert 0 < found["24"] < 0.2
    done = shown("effect", "db9:9104", *before, "--prometheus", url)
    assert done.returncode == 2
    assert "weeks before the change" in done.stderr
    wrong = shown("effect", "db1:9104", *before, "--prometheus", url, "--load", "rate(")
    assert wrong.returncode == 2
    assert "Prometheus refuses it" in wrong.stderr
    many = shown("effect", "db.*", *before, "--prometheus", url)
    assert many.returncode == 2
    assert "gives 2 series" in many.stderr


def test_peaks_of_a_month_are_those_of_the_fastest_hour(url):
    """Of a counter that the exporter has; others are absent."""
    queries = "max_over_time(rate(mysql_global_status_questions{instance='db1:9104'}[1h])[30d:1h])"
    at = f"&time={CHANGE_S}"
    asked_for = urllib.parse.quote(queries)
    address = f"{url}/api/v1/query?query={asked_for}{at}"
    with urllib.request.urlopen(address) as answer:  # noqa: S310 - ours
        (series,) = json.load(answer)["data"]["result"]
    assert 500 < float(series["value"][1]) < 800  # 400 * exp(0.5) at the top of the day
    assert peaks(url, "db1:9104", ["questions"]) == {}  # the history ended long ago
    with pytest.raises(SpecError, match="label instance"):
        peaks(url, "db1'} or x{a='", ["questions"])
