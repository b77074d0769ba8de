"""Hosts over ssh: refused clearly, cut at any moment, and nothing done twice or left behind."""

import random
import threading
import time
from pathlib import Path

import pytest

from integration.ssh_steps import cmdline, configure, connected, hosts, join, key
from mydyno.host import Ssh, ask, reach, remote_work_folder, uploaded, uploaded_program
from mydyno.host.ssh_connection import Address, SshConnection, parse
from mydyno.model import Action, HostError, Probe, RefusedError, SpecError, UnknownEndError
from mydyno.sample import facts, probe_binary
from mydyno.sample.probe_file import read
from mydyno.testbed import lock

pytestmark = [pytest.mark.root, pytest.mark.slow]
COUNT = 'echo "$2" >>"$1"; sleep "$3"; echo done'


@pytest.fixture(scope="module")
def net():
    with hosts("db") as made:
        yield made


@pytest.fixture
def far(net):
    with connected(net, net.db) as host:
        yield host
    end = time.monotonic() + 60
    while (net.db.left() or net.db.processes()) and time.monotonic() < end:
        time.sleep(0.2)
    assert net.db.left() == []
    assert net.db.processes() == []


def sh(text, *words):
    return Action(("sh", "-c", text, "test", *map(str, words)))


def later(seconds, act):
    thread = threading.Timer(seconds, act)
    thread.start()
    return thread


# What is refused, and what to do about it


def refused(net, far, kind, match, **options):
    host = Ssh(Address(far.address, "root", **options), config=net.config, patience_s=1)
    with pytest.raises(kind, match=match):
        host.run(Action(("true",)))


def test_an_unknown_host_key_is_refused(net):
    known = net.folder / "known_hosts"
    text = known.read_text()
    known.write_text("")
    try:
        refused(net, net.db, RefusedError, "host key unknown; connect once")
    finally:
        known.write_text(text)


def test_a_changed_host_key_is_refused(net):
    known = net.folder / "known_hosts"
    text = known.read_text()
    key(net.folder / "other")
    other = (net.folder / "other.pub").read_text().split()
    known.write_text(f"{net.db.address} {other[0]} {other[1]}\n")
    try:
        refused(net, net.db, RefusedError, "differs from known_hosts.*ssh-keygen -R")
    finally:
        known.write_text(text)
        (net.folder / "other").unlink()


def test_a_configuration_that_checks_no_keys_is_refused(net):
    configure(net.folder, "  StrictHostKeyChecking no")
    try:
        refused(net, net.db, RefusedError, "StrictHostKeyChecking no")
    finally:
        configure(net.folder)


def test_keys_that_are_stored_nowhere_are_refused(net):
    configure(
        net.folder,
        "  StrictHostKeyChecking accept-new\n  UserKnownHostsFile /dev/null\n"
        "  GlobalKnownHostsFile none",
    )
    try:
        refused(net, net.db, RefusedError, "host keys are not checked")
    finally:
        configure(net.folder)


def test_a_new_key_is_accepted_where_the_user_allows_it(net):
    known = net.folder / "known_hosts"
    text = known.read_text()
    known.write_text("")
    configure(net.folder, "  StrictHostKeyChecking accept-new")
    try:
        with connected(net, net.db) as host:
            assert host.run(Action(("true",))).returncode == 0
    finally:
        configure(net.folder)
        known.write_text(text)


def test_a_key_that_is_not_let_in(net):
    allowed = net.db.home / "authorized_keys"
    text = allowed.read_text()
    allowed.write_text("")
    try:
        refused(net, net.db, HostError, "authentication failed.*ssh-agent")
    finally:
        allowed.write_text(text)


def test_nobody_listens(net):
    refused(net, net.db, HostError, "connection refused; check the port", port=2222)


def test_an_unknown_host_name_is_reported(net):
    host = Ssh(Address("no-such-host.invalid"), config=net.config)
    with pytest.raises(HostError, match="host name not found"):
        host.run(Action(("true",)))


@pytest.mark.parametrize(
    "text", ["db1", "ssh://", "ssh://-oProxyCommand=x", "ssh://a b", "ssh://db/x", "ssh://db:port"]
)
def test_an_invalid_host_is_refused(text):
    with pytest.raises(SpecError, match="invalid host"):
        parse(text)


def test_a_password_is_refused_and_not_repeated():
    with pytest.raises(SpecError, match="contains a password") as raised:
        parse("ssh://root:secret@db")
    assert "secret" not in str(raised.value)


def test_addresses_as_a_spec_writes_them():
    for text in ("ssh://db", "ssh://root@db:2222", "ssh://me@[fe80::1]:22"):
        assert parse(text).text == text
    assert parse("ssh://root@db:2222").words == ("-l", "root", "-p", "2222", "--", "db")


def test_a_jump_host():
    with hosts("jump", "inner") as net:
        join(net.inner, net.jump)
        way = f"Host {net.inner.address}\n  ProxyJump root@{net.jump.address}\nHost *"
        configure(net.folder, way)
        with connected(net, net.inner) as host:
            assert host.run(Action(("echo", "here"))).stdout == b"here\n"
            assert host.addresses()[1] == net.inner.address
        assert "Accepted publickey" in (net.jump.home / "sshd.log").read_text()


# What a host is for


def test_facts_in_one_round_trip(far, monkeypatch):
    orders = []
    original = Ssh.run
    monkeypatch.setattr(Ssh, "run", lambda *a, **k: orders.append(a) or original(*a, **k))
    found = facts(far)
    assert found.cores > 0
    assert found.memory_bytes > 1 << 28
    assert len(orders) == 1


def test_the_probe_is_uploaded_and_runs_there(far, tmp_path):
    there = uploaded_program(far, probe_binary())
    assert there == uploaded_program(far, probe_binary())
    with remote_work_folder(far, tmp_path) as folder:
        argv = (there, "sample", "--out", str(folder / "probe.bin"))
        running = far.start(Action(argv))
        end = time.monotonic() + 20
        while not ticks(folder / "probe.bin"):
            assert time.monotonic() < end, "it writes nothing"
            time.sleep(0.1)
        assert running.stop() == 0
    assert (tmp_path / "probe.bin").read_bytes().startswith(b"mydyno-probe 1\n")
    assert ticks(tmp_path / "probe.bin") > 0


def ticks(file):
    """Return how many samples a file of the probe holds, which may not be there yet."""
    return len(read(file).seqs) if file.exists() and file.stat().st_size > 100 else 0


def test_our_files_are_uploaded(far, tmp_path):
    mine, other = tmp_path / "mine.cfg", Path("/etc/hostname")
    mine.write_text("text")
    mine.chmod(0o600)
    action = uploaded(far, Action(("cat", str(mine), f"--file={mine}", str(other))), tmp_path)
    _, plain, option, foreign = action.argv
    assert Path(plain).read_text() == "text"
    assert Path(plain).stat().st_mode & 0o777 == 0o600
    assert option == f"--file={plain}"
    assert foreign == str(other)


def test_secrets_are_in_no_argument(far, net):
    seen = []

    def look():
        while not over.wait(0.02):
            seen.extend(cmdline(p.name) for p in Path("/proc").glob("[0-9]*"))

    thread, over = threading.Thread(target=look), threading.Event()
    thread.start()
    for _ in range(5):
        far.run(Action(("sh", "-c", "cat >/dev/null; sleep 0.3"), b"canary-in-stdin"))
    over.set()
    thread.join()
    assert [line for line in seen if "canary" in line] == []
    assert [line for line in seen if "remote.sh act" in line] != []


# What is cut


@pytest.mark.parametrize("seed", range(4))
def test_no_act_is_done_twice_wherever_the_link_is_hung_up(net, far, tmp_path, seed):
    """Each act leaves one line, whatever the moment at which the connection is killed."""
    chance = random.Random(seed)
    done = tmp_path / "done"
    far.run(Action(("true",)))
    for number in range(6):
        thread = later(chance.uniform(0.0, 0.8), net.db.hang_up)
        try:
            reply = far.run(sh(COUNT, done, number, f"{chance.uniform(0, 0.5):.2f}"), timeout_s=90)
        finally:
            thread.join()
        assert reply.stdout == b"done\n"
    assert done.read_text().split() == [str(n) for n in range(6)]


def test_an_act_goes_on_through_a_silent_cut(net, far, tmp_path):
    """The link goes down without a word; what ran goes on, and its end is learnt afterwards."""
    done = tmp_path / "done"
    far.run(Action(("true",)))
    thread = later(0.5, lambda: net.db.cut(25))
    assert far.run(sh(COUNT, done, "one", "8"), timeout_s=120).stdout == b"done\n"
    thread.join()
    assert done.read_text() == "one\n"


def test_one_connection_follows_another(net, far):
    """The far end may not learn for hours that a connection is dead: the next one ends it."""
    running = far.start(Action(("sleep", "300")))
    session = running.session
    fresh = SshConnection(session.route, session.order("line"))
    try:
        end = time.monotonic() + 60
        while len(lines := [p for p in net.db.processes() if p.endswith("line")]) > 1:
            assert time.monotonic() < end, lines
            time.sleep(0.1)
        assert fresh.alive
    finally:
        fresh.abort()
    assert running.returncode() is None
    assert far.run(Action(("echo", "again"))).stdout == b"again\n"


def test_a_load_is_read_on_from_the_byte_where_we_were(net, far):
    text = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo line $i; sleep 0.1; done; exit 5"
    running = far.start(sh(text))
    came = []
    for line in running.lines():
        came.append(line.decode().strip())
        if len(came) in {10, 30}:
            net.db.hang_up()
    assert came == [f"line {i}" for i in range(1, 61)]
    assert running.stop() == 5


def test_a_host_that_stays_away_ends_what_was_begun_there(net, tmp_path):
    """After the lease nothing of ours runs there; what was under way is unknown."""
    with connected(net, net.db, lease_s=12, patience_s=4) as far:
        running = far.start(sh('sleep 300 & echo "$!"; wait'))
        next(running.lines())
        old = far.folder()
        thread = later(0.5, lambda: net.db.cut(45))
        with pytest.raises(UnknownEndError):
            far.run(sh(COUNT, tmp_path / "done", "one", "20"), timeout_s=120)
        end = time.monotonic() + 30
        while net.db.processes() and time.monotonic() < end:
            time.sleep(0.5)
        assert net.db.processes() == []  # though the far sshd may not know yet that we are gone
        thread.join()
        with pytest.raises(UnknownEndError):
            far.run(Action(("true",)))
        assert far.run(Action(("echo", "again"))).stdout == b"again\n"
        assert far.folder() != old
        assert running.stop() == -9
        assert (tmp_path / "done").read_text().count("one") <= 1
    assert net.db.left() == []


def test_a_question_is_asked_again_after_a_session_was_lost(net):
    with connected(net, net.db, lease_s=5, patience_s=2) as far:
        far.run(Action(("true",)))
        net.db.cut(30)
        time.sleep(1)
        question = Probe(Action(("echo", "answer")), lambda raw: raw.strip())
        assert ask(far, question) == b"answer"


def test_a_lock_is_held_there_and_ends_with_us(net, monkeypatch):
    monkeypatch.setattr(lock, "_PATIENCE_S", 1)
    with connected(net, net.db) as one, connected(net, net.db) as two:
        refused = pytest.raises(RefusedError, match="locked by a campaign of process")
        with lock.host_lock(one), refused, lock.host_lock(two):
            pass
        with lock.host_lock(two):
            pass


def test_reach_follows_the_spec(net, monkeypatch):
    monkeypatch.setenv("MYDYNO_SSH_CONFIG", str(net.config))
    host = reach(f"ssh://root@{net.db.address}")
    assert host.run(Action(("echo", "hi"))).stdout == b"hi\n"
    host.close()
    monkeypatch.setenv("MYDYNO_SSH_CONFIG", "/nowhere/config")
    with pytest.raises(SpecError, match="no such file"):
        reach("ssh://db")
