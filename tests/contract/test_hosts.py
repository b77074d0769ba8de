"""Every host passes the conformance suite, and a false one does not."""

from dataclasses import replace

import pytest

from integration.ssh_steps import connected, hosts
from mydyno.host import Local, Namespaced
from mydyno.host.protocol import Completed
from mydyno.model import Action, HostError
from mydyno.testing.conformance import ConformanceError, check_host


def test_the_local_host(tmp_path):
    check_host(Local(), tmp_path)


@pytest.mark.root
def test_a_host_over_ssh(tmp_path):
    with hosts("db") as net, connected(net, net.db) as far:
        check_host(far, tmp_path)


@pytest.mark.root
def test_what_a_command_over_ssh_makes_is_not_open_to_others(tmp_path):
    """Whatever the login's own umask is."""
    errors = tmp_path / "errors"
    with hosts("db") as net, connected(net, net.db) as far:
        assert far.run(Action(("sh", "-c", "umask"))).stdout == b"0077\n"
        assert [*far.start(Action(("true",)), stderr=errors).lines()] == []  # waits for its end
    assert errors.stat().st_mode & 0o077 == 0


@pytest.mark.root
def test_the_namespace_of_a_host(tmp_path):
    with hosts("db") as net:
        check_host(Namespaced(Local(), net.db.ns), tmp_path)


class Twice(Local):
    """It repeats a command whose reply it has lost."""

    def run(self, action, *, timeout_s=60.0):
        super().run(action, timeout_s=timeout_s)
        return super().run(action, timeout_s=timeout_s)


class Merged(Local):
    """It merges the two outputs."""

    def run(self, action, *, timeout_s=60.0):
        done = super().run(action, timeout_s=timeout_s)
        return replace(done, stdout=done.stdout + done.stderr, stderr=b"")


class Deaf(Local):
    """It passes on no input."""

    def run(self, action, *, timeout_s=60.0):
        return super().run(replace(action, stdin=b""), timeout_s=timeout_s)


class Mute(Local):
    """It does not report that a command was ended."""

    def run(self, action, *, timeout_s=60.0):
        try:
            return super().run(action, timeout_s=timeout_s)
        except HostError as error:
            if "timed out" not in str(error):
                raise
            return Completed(action, 0, b"", b"")


@pytest.mark.parametrize(
    ("host", "promise"),
    [
        (Twice(), "carried out once"),
        (Merged(), "both outputs"),
        (Deaf(), "not limited"),
        (Mute(), "longer than its timeout"),
    ],
)
def test_a_host_that_breaks_a_promise(tmp_path, host, promise):
    with pytest.raises(ConformanceError, match=promise):
        check_host(host, tmp_path)
