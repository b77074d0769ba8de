"""Every host passes the conformance suite, and a false one does not."""

from dataclasses import replace

import pytest

from integration.ssh_steps import connected, hosts
from mydyno.host import Local, Namespaced
from mydyno.host.protocol import Completed
from mydyno.model import HostError
from mydyno.testing.conformance import ConformanceError, check_host


def test_the_local_host(tmp_path):
    check_host(Local(), tmp_path)


@pytest.mark.root
def test_a_host_over_ssh(tmp_path):
    with hosts("db") as net, connected(net, net.db) as far:
        check_host(far, tmp_path)


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
    """It does not tell the two outputs apart."""

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


<<<<<<< HEAD
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
=======
def test_marks_in_an_output_are_not_taken_for_ours(host):
    text = "mydyno 1\n\nmydyno 2 0\nmydyno over\n"
    done = host.run(sh('printf %s "$1"; printf %s "$1" >&2; exit 4', text))
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (4, text, text)


def test_a_missing_program_is_named(host):
    for attempt in (host.run, host.start):
        with pytest.raises(HostError, match="no-such-program: not found on"):
            attempt(Action(("no-such-program",)))


def test_a_command_that_takes_too_long_is_ended(host, tmp_path):
    with pytest.raises(HostError, match="timed out"):
        host.run(sh('echo $$ >"$1"; sleep 100', str(tmp_path / "pid")), timeout_s=5)
    assert not alive(host, int((tmp_path / "pid").read_text()))


def test_a_running_command_is_read_as_it_goes(host):
    running = host.start(sh("for i in 1 2 3; do echo $i; sleep 0.4; done; printf end; exit 7"))
    came = [(line, time.monotonic()) for line in running.lines()]
    assert [line for line, _ in came] == [b"1\n", b"2\n", b"3\n", b"end"]
    assert came[-1][1] - came[0][1] > 0.3
    assert running.stop() == 7
    assert running.returncode() == 7


def test_a_running_command_has_its_pid(host):
    running = host.start(sh('echo "$$"; exec sleep 100'))
    assert int(next(running.lines())) == running.pid
    assert running.returncode() is None
    assert running.stop(grace_s=5) == -15
    assert running.returncode() == -15


def test_a_command_that_ignores_sigterm_is_killed_with_its_children(host, tmp_path):
    text = 'trap "" TERM; sleep 100 & echo "$!"; wait; sleep 100'
    running = host.start(sh(text))
    child = int(next(running.lines()))
    assert running.stop(grace_s=1) == -9
    end = time.monotonic() + 5
    while alive(host, child) and time.monotonic() < end:
        time.sleep(0.1)
    assert not alive(host, child)


def alive(host, pid):
    stat = host.run(Action(("cat", f"/proc/{pid}/stat"))).stdout
    return bool(stat) and stat.rpartition(b")")[2].split()[0] != b"Z"


def test_complaints_go_to_a_file_of_the_host(host, tmp_path):
    errors = tmp_path / "err"
    errors.write_text("before\n")
    running = host.start(sh("echo after >&2"), stderr=errors)
    for _ in running.lines():
        pass
    running.stop()
    assert errors.read_text() == "before\nafter\n"


def test_files_are_copied_both_ways_completely_with_their_mode(host, tmp_path):
    here, there, back = (tmp_path / name for name in ("here", "th ere", "back"))
    here.write_bytes(bytes(range(256)) * 1000)
    here.chmod(0o750)
    host.push(here, there)
    assert there.read_bytes() == here.read_bytes()
    assert there.stat().st_mode & 0o777 == 0o750
    host.pull(there, back)
    assert back.read_bytes() == here.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back", "here", "th ere"]
    with pytest.raises(HostError, match="nowhere"):
        host.pull(tmp_path / "nowhere", back)
>>>>>>> wt-words
