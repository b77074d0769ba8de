"""The sampler when the server restarts, stops, refuses it, is not there, or is none."""

import os
import signal
import socket
import subprocess
import threading
import time

import numpy as np
import pytest

from integration.probe_steps import (
    ACCOUNT,
    CANARY,
    account,
    answers,
    binary,
    leaks,
    login,
    notes,
    option_file,
    probing,
    series,
    texts,
    watched,
)
from integration.server_steps import MARIADB

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]
MYSQL8 = "mysql-8.0.33"
STOPPED_S = 5.0


@pytest.fixture(params=(MARIADB, MYSQL8))
def modern(running, request):
    return watched(running, request.param)


@pytest.fixture(params=(MARIADB, MYSQL8))
def own(running, request):
    """A server that a test may stop: the next one starts it again."""
    yield watched(running, request.param)
    running.stop(request.param)


def test_a_restart_is_noted_and_values_come_after_it(own, tmp_path):
    with probing(tmp_path, login(tmp_path, own)) as probe:
        probe.readings(3)
        own.stop()
        probe.seen(notes)
        own.start()
        probe.seen(lambda sampled: ("back", "") in notes(sampled), within_s=120)
        before = len(answers(probe.sampled()))
        probe.readings(before + 2)
        sampled = probe.stop()
    assert notes(sampled) == [("gap", ""), ("restart", ""), ("back", "")]
    assert len(sampled.restarts("status.questions")) == 1
    assert series(sampled, "status.questions")[-1] > 0


def test_a_lost_connection_alone_is_no_restart(modern, tmp_path):
    with probing(tmp_path, login(tmp_path, modern)) as probe:
        probe.readings(2)
        shown = modern.query("SHOW PROCESSLIST")
        (ours,) = [row[0] for row in shown if row[1] == ACCOUNT]
        modern.query(f"KILL {ours}")
        probe.seen(lambda sampled: ("back", "") in notes(sampled))
        assert notes(probe.stop()) == [("gap", ""), ("back", "")]


def test_a_server_that_stops_has_one_question_and_the_host_goes_on(own, tmp_path):
    with probing(tmp_path, login(tmp_path, own), "--server-deadline", "500ms") as probe:
        before = probe.readings(2)
        os.kill(own.pid, signal.SIGSTOP)
        try:
            time.sleep(STOPPED_S)
        finally:
            os.kill(own.pid, signal.SIGCONT)
        probe.seen(lambda sampled: notes(sampled)[-1:] == [("back", "")])
        sampled = probe.stop()
    assert ("gap", "") in notes(sampled)
    assert "no answer within 0.5 s" in texts(sampled)
    gaps = np.diff(series(sampled, "probe.read_at", "server"))
    assert gaps.max() > STOPPED_S - 1
    assert len(sampled.seqs) > len(before.seqs) + STOPPED_S - 2
    assert sampled.end.missed == 0
    assert sampled.find("probe.late").max() < 0.5
    # Over the gap: the one that was under way and came late, and the one after it.
    asked = np.diff(series(sampled, "status.com_show_status"))
    assert asked[gaps.argmax()] == asked.max() == 2


def test_a_wrong_password_is_noted_tried_again_and_never_seen(modern, tmp_path):
    wrong = "Wrong-canary-0815"
    with probing(tmp_path, login(tmp_path, modern, password=wrong)) as probe:
        probe.seen(lambda sampled: len(sampled.seqs) > 2)
        sampled = probe.sampled()
        assert notes(sampled) == [("gap", "")]
        assert "Access denied" in texts(sampled)[0]
        assert leaks(probe, wrong) == []
        account(modern, password=wrong)
        probe.seen(lambda sampled: ("back", "") in notes(sampled), within_s=120)
        assert leaks(probe, wrong) == []
        probe.stop()


def test_without_the_right_to_the_engines_metrics_there_is_status(modern, tmp_path):
    account(modern, grant="")
    with probing(tmp_path, login(tmp_path, modern)) as probe:
        probe.readings(3)
        sampled = probe.stop()
    assert notes(sampled) == [("gap", "innodb")]
    assert "PROCESS" in texts(sampled)[0]
    assert series(sampled, "status.uptime")[-1] > 0
    assert not [c for c in sampled.columns if c.name.startswith("innodb.")]


def test_a_server_may_come_later(running, tmp_path):
    instance = watched(running, MARIADB)
    running.stop(MARIADB)
    with probing(tmp_path, login(tmp_path, instance)) as probe:
        sampled = probe.seen(lambda sampled: len(sampled.seqs) > 3)
        assert notes(sampled) == [("gap", "")]
        assert str(instance.place.socket) in texts(sampled)[0]
        assert np.isfinite(sampled.find("cpu.user", "all")).sum() > 2
        instance.start()
        probe.seen(lambda sampled: ("back", "") in notes(sampled), within_s=120)
        probe.stop()


def test_what_is_no_server_is_noted(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def junk():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"\x0a\x00\x00\x00\x0anot a server\x00 at all" * 9)

        thread = threading.Thread(target=junk, daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        lines = ["[client]", "user = u", "host = 127.0.0.1", f"port = {port}"]
        with probing(tmp_path, option_file(tmp_path, lines)) as probe:
            sampled = probe.seen(lambda sampled: len(sampled.seqs) > 3)
            assert notes(sampled) == [("gap", "")]
            probe.stop(code=3)  # it was asked for, and never answered
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def complaint(defaults, tmp_path):
    argv = [binary(), "sample", "--out", str(tmp_path / "out.bin"), "--duration", "100ms"]
    done = subprocess.run(
        [*argv, "--server-defaults", str(defaults)], capture_output=True, check=False
    )
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


def test_an_option_file_that_cannot_be_used_is_a_wrong_request(tmp_path):
    secret = f"password = {CANARY}"
    for lines, message in (
        (["[client]", secret], "no user"),
        (["[client]", "user = u", secret, "host = db", "ssl-mode = REQUIRED"], "TLS"),
        (["[client]", "user = u", secret, "!include /etc/my.cnf"], "line 4"),
    ):
        code, words = complaint(option_file(tmp_path, lines), tmp_path)
        assert (code, message in words, CANARY in words) == (2, True, False), words
    assert complaint(tmp_path / "absent.cnf", tmp_path)[0] == 2
    assert not (tmp_path / "out.bin").exists()


def test_a_password_that_others_can_read_is_warned_of(tmp_path):
    lines = ["[client]", "user = u", f"password = {CANARY}", f"socket = {tmp_path}/none.sock"]
    code, words = complaint(option_file(tmp_path, lines, mode=0o644), tmp_path)
    assert (code, "chmod 600" in words, CANARY in words) == (3, True, False)
    (tmp_path / "out.bin").unlink()
    code, words = complaint(option_file(tmp_path, lines), tmp_path)
    assert (code, "chmod 600" in words) == (3, False)


def test_a_server_that_never_answered_is_reported_once_and_ends_with_3(tmp_path):
    lines = ["[client]", "user = u", f"password = {CANARY}", f"socket = {tmp_path}/none.sock"]
    argv = [binary(), "sample", "--out", str(tmp_path / "o.bin"), "--duration", "2500ms"]
    defaults = str(option_file(tmp_path, lines))
    done = subprocess.run([*argv, "--server-defaults", defaults], capture_output=True, check=False)
    assert done.returncode == 3
    assert done.stderr.decode().count("none.sock: No such file or directory") == 1
    assert (tmp_path / "o.bin").stat().st_size > 1000
