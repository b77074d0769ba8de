"""A connection that is cut: whoever waits for a response learns it, wherever its reader is."""

import os
import threading
from contextlib import suppress

from mydyno.host import ssh_connection
from mydyno.host.ssh_connection import SshConnection, SshRoute, parse

FAKE = """#!/bin/sh
case " $* " in *" -G "*) echo "stricthostkeychecking true"; exit;; esac
printf 'mydyno a\\n'; read -r line; printf y; exec cat >/dev/null
"""


def test_a_request_ends_when_its_connection_is_aborted_between_two_reads(monkeypatch, tmp_path):
    fake = tmp_path / "ssh"
    fake.write_text(FAKE)
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    between, go, replies = threading.Event(), threading.Event(), []

    def held(descriptor):
        raw = b""
        with suppress(OSError):
            raw = os.read(descriptor, 1 << 16)
        between.set()
        go.wait(10)
        return raw

    monkeypatch.setattr(ssh_connection, "_read", held)
    connection = SshConnection(SshRoute(parse("ssh://root@far")), "true")
    asker = threading.Thread(target=lambda: replies.append(connection.request(["x"], b"", 20)))
    asker.start()
    assert between.wait(10)
    ender = threading.Thread(target=connection.abort)
    ender.start()
    ender.join(1)
    go.set()
    asker.join(20)
    assert replies == [None]
    ender.join(10)
    assert not ender.is_alive()
