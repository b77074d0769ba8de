"""Every host fulfils the contract: commands run once, exit kinds differ, files are complete."""

import time

import pytest

from integration.ssh_steps import connected, hosts
from mydyno.host import Local
from mydyno.model import Action, HostError


@pytest.fixture(scope="module")
def net():
    with hosts("db") as made:
        yield made


@pytest.fixture(params=["local", pytest.param("ssh", marks=pytest.mark.root)])
def host(request):
    if request.param == "local":
        yield Local()
        return
    net = request.getfixturevalue("net")
    with connected(net, net.db) as far:
        yield far


def sh(text, *words, stdin=b""):
    return Action(("sh", "-c", text, "test", *words), stdin)


def test_outputs_and_exit_code_come_apart(host):
    done = host.run(sh("echo out; echo err >&2; exit 3"))
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    with pytest.raises(HostError, match="exit 3: err"):
        done.check()


def test_an_exit_code_of_255_is_the_command_s_own(host):
    assert host.run(sh("exit 255")).returncode == 255


@pytest.mark.parametrize("word", ["a b", "'", '"', "$HOME", "`id`", "\\", "*", "", "-n", "ü\n!x"])
def test_words_arrive_as_they_are(host, word):
    done = host.run(sh('printf "%s|" "$@"', word, "last"))
    assert done.stdout.decode() == f"{word}|last|"


def test_input_arrives_byte_for_byte(host):
    raw = bytes(range(256)) * 400
    assert host.run(Action(("cat",), raw)).stdout == raw
    assert host.run(Action(("cat",))).stdout == b""


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
