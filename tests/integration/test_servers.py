"""Real servers, private: made, started, set up by the layers, asked, refused and ended."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from integration.server_steps import (
    HOST,
    MARIADB,
    MORE,
    SERVERS,
    SMALL,
    applied,
    clear,
    drift,
    forked,
    open_folder,
    write,
)
from mydyno.host import Process, ask, processes
from mydyno.journal.records import FileRecords, things
from mydyno.model import Cost, HostError, RefusedError, SpecError
from mydyno.server import find, prepare, sweep
from mydyno.stack.cgroup import refusal
from mydyno.stack.launch_file import Limits, Server
from mydyno.testbed import server_runner

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]


@pytest.fixture(params=SERVERS)
def one(bench, request):
    made = bench.take(request.param)
    yield made
    made.instance.stop()
    clear(made)


@pytest.fixture(params=(*SERVERS, *MORE))
def each(bench, request):
    made = bench.take(request.param)
    yield made
    made.instance.stop()
    clear(made)


def status(instance, name):
    return int(instance.query(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1])


def test_a_list_of_pages_fills_the_pool_at_every_start(one):
    instance = one.instance
    with applied(one):
        instance.query("CREATE TABLE sbtest.full (id INT PRIMARY KEY AUTO_INCREMENT, t CHAR(250))")
        instance.query("INSERT INTO sbtest.full (t) VALUES (REPEAT('x', 250))")
        for _ in range(15):
            instance.query("INSERT INTO sbtest.full (t) SELECT t FROM sbtest.full")
        pages = server_runner.page_list(instance)
    listed = len(pages.splitlines())
    assert listed * 16384 > 8_000_000
    server_runner.write_page_list(instance, pages)
    with applied(one):
        server_runner.load_buffer_pool(instance)
        held = status(instance, "Innodb_buffer_pool_pages_data")
        before = status(instance, "Innodb_buffer_pool_reads")
        assert instance.query("SELECT SUM(LENGTH(t)) FROM sbtest.full") == [("8192000",)]
        assert held >= 0.7 * listed  # a file has pages that are not used yet
        assert status(instance, "Innodb_buffer_pool_reads") - before < listed / 50
    kept = instance.place.data / "ib_buffer_pool"
    assert kept.read_bytes() == pages, "a stop replaces the list"
    kept.unlink()
    with applied(one):
        server_runner.load_buffer_pool(instance)  # without a list there is nothing to wait for
        instance.query("DROP TABLE sbtest.full")


def test_stock_is_what_the_build_does_unasked(each):
    stock = each.layers.mysqld.stock
    build = each.instance.build
    synced = build.flavour == "mysql" and build.version >= (5, 7)
    mysql8 = build.flavour != "mariadb" and build.version >= (8,)
    assert stock["innodb_buffer_pool_size"] == str(128 * 1024**2)
    assert stock["innodb_flush_log_at_trx_commit"] == "1"
    assert stock["sync_binlog"] == ("1" if synced else "0")
    assert stock["log_bin"] == ("1" if mysql8 else "0")
    assert stock["performance_schema"] == ("0" if build.flavour == "mariadb" else "1")
    assert stock["transaction_isolation"] == "REPEATABLE-READ"
    assert stock["skip_networking"] == "1"
    assert ".".join(map(str, build.version)) in stock["version"]
    assert "owned" not in stock


def test_one_file_and_one_restart_serve_every_setting(one):
    want = {**SMALL, "sync_binlog": "1000", "log_bin": "ON", "innodb_log_buffer_size": "9M"}
    changes = one.layers.mysqld.plan(one.layers.mysqld.stock, want)
    assert len({change.action for change in changes}) == 1
    assert max(change.cost for change in changes) is Cost.RESTART
    with applied(one, mysqld=want) as instance:
        assert instance.query("SELECT @@sync_binlog, @@log_bin") == [("1000", "1")]
        now = ask(HOST, one.layers.mysqld.observe())
        back = one.layers.mysqld.plan(now, {})
        HOST.run(back[0].action).check()
        instance.stop()
        instance.start()
        after = ask(HOST, one.layers.mysqld.observe())
    stock = one.layers.mysqld.stock
    assert {key: after[key] for key in want} == {key: stock[key] for key in want}


def test_dynamic_settings_need_no_restart(one):
    want = {"innodb_io_capacity": "321", "sync_binlog": "7", "sql_mode": "ANSI_QUOTES"}
    one.instance.start()
    pid = one.instance.pid
    layer = one.layers.mysqld
    changes = layer.plan(ask(HOST, layer.observe()), want)
    assert {change.cost for change in changes} == {Cost.ONLINE}
    HOST.run(changes[0].action).check()
    for action in layer.online(changes):
        HOST.run(action).check()
    assert drift(layer, want) == []
    assert one.instance.pid == pid


def test_unknown_settings_are_refused_with_what_replaced_them(one):
    build = one.instance.build
    wrong = {
        "mariadb": {"innodb_redo_log_capacity": "innodb_log_file_size"},
        "mysql8": {"query_cache_size": "removed in 8.0", "tx_isolation": "transaction_isolation"},
        "mysql5": {"innodb_redo_log_capacity": "innodb_log_files_in_group"},
    }["mariadb" if build.flavour == "mariadb" else "mysql8" if build.version >= (8,) else "mysql5"]
    for key, word in {**wrong, "sync_binlgo": "sync_binlog", "datadir": "mydyno sets"}.items():
        with pytest.raises(SpecError, match=word):
            one.layers.mysqld.plan(one.layers.mysqld.stock, {key: "1"})


def test_a_server_that_refuses_its_settings_is_quoted(one):
    place = one.instance.place
    place.owned.write_text("[mysqld]\ninnodb_page_size=8192\n")
    with pytest.raises(HostError, match=r"refused to start[\s\S]*(page|InnoDB)") as error:
        one.instance.start()
    assert str(place.log) in str(error.value)
    assert one.instance.pid == 0
    place.owned.write_text("[mysqld]\nno_such_option=1\n")
    with pytest.raises(HostError, match=r"unknown (variable|option).*no_such_option"):
        one.instance.start()
    place.owned.write_text("[mysqld]\n")
    one.instance.start()
    assert one.instance.query("SELECT 1") == [("1",)]


def test_what_the_layers_ask_for_is_seen_in_the_process_and_gone_after_it(one):
    """Allocator, limits, environment, CPUs and, where a group can be made, a quota of them."""
    refused, layer, groups = ask(HOST, refusal()), one.layers.cgroup, []
    wants = {"limits": {"nofile": "4321", "memlock": "65536"}, "env": {"TZ": "Etc/GMT+7"}}
    wants |= {"cpus": {"allowed": "0"}, "mysqld": SMALL}
    wants |= {} if refused else {"cgroup": {"cpu": "50%", "period": "20ms"}}
    jemalloc = {"library": "jemalloc", "tunables": "narenas:3"}
    with applied(one, alloc=jemalloc, **wants) as instance:
        pid = instance.pid
        assert "libjemalloc" in Path(f"/proc/{pid}/maps").read_text()
        rows = Path(f"/proc/{pid}/limits").read_text().splitlines()
        assert next(row for row in rows if "open files" in row).split()[3:5] == ["4321", "4321"]
        assert instance.query("SELECT @@open_files_limit <= 4321") == [("1",)]
        assert instance.query("SELECT TIMEDIFF(NOW(), UTC_TIMESTAMP())") == [("-07:00:00",)]
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        assert len(threads) > 5
        assert {frozenset(os.sched_getaffinity(int(t.name))) for t in threads} == {frozenset({0})}
        if not refused:
            groups = list(Path("/sys/fs/cgroup").glob(f"**/{layer.group}"))
            holds_its_quota_and_takes_another(instance, layer, groups)
    assert not any(group.exists() for group in groups)
    with applied(one, alloc={"library": "tcmalloc"}, mysqld=SMALL) as instance:
        maps = Path(f"/proc/{instance.pid}/maps").read_text()
        assert "libtcmalloc" in maps
        assert "libjemalloc" not in maps
        assert os.sched_getaffinity(instance.pid) == os.sched_getaffinity(0)
        assert layer.group not in Path(f"/proc/{instance.pid}/cgroup").read_text()
    if refused:
        pytest.skip(f"all but a quota of CPU: {refused}")


def holds_its_quota_and_takes_another(instance, layer, groups):
    own = [int(line) for one in groups for line in (one / "cgroup.procs").read_text().split()]
    assert {*own} == {instance.pid}
    assert cpus_used(instance) < 0.6
    want = {"cpu": "80%", "period": "10ms"}
    changes = layer.plan(ask(HOST, layer.observe()), want)
    assert {change.cost for change in changes} == {Cost.ONLINE}
    write(layer, ask(HOST, layer.observe()), want)
    assert drift(layer, want) != []  # the file alone
    for action in layer.online(changes):
        HOST.run(action).check()
    assert drift(layer, want) == []
    assert instance.pid in own  # the same server


def cpus_used(instance):
    """Return how many CPUs the server uses on average while it has enough to do for one."""
    began_s, before_s = time.monotonic(), _cpu_s(instance.pid)
    instance.query("SELECT BENCHMARK(5000000, SHA1('x'))", timeout_s=600)
    return (_cpu_s(instance.pid) - before_s) / (time.monotonic() - began_s)


def _cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("name", ["mariadb-10.1.23", "mysql-9.7"])
def test_a_server_with_an_allocator_of_its_own_never_gets_a_second_one(bench, name):
    """One is part of the program, the other a library that it is linked against."""
    made = bench.take(name)
    own, other = ("jemalloc", "tcmalloc") if name == "mariadb-10.1.23" else ("tcmalloc", "jemalloc")
    try:
        with applied(made, alloc={"library": own}) as instance:
            maps = Path(f"/proc/{instance.pid}/maps").read_text()
            assert other not in maps
            assert not (instance.place.launch / "alloc").exists()
            assert ask(HOST, made.layers.alloc.observe())["library"] == own
        for refused in (other, "glibc"):
            with pytest.raises(SpecError, match=f"this server is linked to {own}"):
                made.layers.alloc.plan({}, {"library": refused})
    finally:
        made.instance.stop()
        clear(made)


def test_a_server_takes_no_one_without_a_password_and_ends_without_a_trace(each):
    each.instance.start()
    needs_a_password(each.instance)
    pid, place = each.instance.pid, each.instance.place
    (known,) = things(each.instance.records.entries(), "server")
    assert known.facts["pid"] == str(pid)
    if os.geteuid() == 0:
        assert Path(f"/proc/{pid}").stat().st_uid != 0
        assert f"Uid:\t{each.instance.identity.uid}\t" in Path(f"/proc/{pid}/status").read_text()
    each.instance.stop()
    assert not Path(f"/proc/{pid}").exists()
    assert not place.socket.exists()
    assert not place.pid_file.exists()


def needs_a_password(instance):
    """No account works without one, and no other user of the machine can read one."""
    for user in ("root", "mydyno", "nobody", ""):
        argv = (str(instance.build.client), "--no-defaults", f"--user={user}")
        where = f"--socket={instance.place.socket}"
        done = subprocess.run((*argv, where, "-e", "SELECT 1"), capture_output=True, check=False)
        assert b"Access denied" in done.stderr, user
    users = {row[0] for row in instance.query("SELECT user FROM mysql.user")}
    assert users <= {"root", "mydyno", "mariadb.sys", "mysql.sys", "mysql.session",
                     "mysql.infoschema"}  # fmt: skip
    assert instance.place.home.stat().st_mode & 0o777 in {0o710, 0o700}
    assert instance.place.load.stat().st_mode & 0o777 == 0o600


@pytest.fixture
def mariadb(bench):
    made = bench.take(MARIADB)
    yield made
    made.instance.stop()
    clear(made)


def test_data_that_are_there_are_never_overwritten(mariadb):
    with pytest.raises(RefusedError, match="not empty"):
        mariadb.instance.initialise()


def test_an_existing_home_keeps_its_accounts(mariadb):
    place = mariadb.instance.place
    made = mariadb.instance
    again = prepare(HOST, made.build, places=(place.home, place.data), records=made.records)
    again.start()
    assert again.query("SELECT CURRENT_USER()") == [("root@localhost",)]
    again.stop()


def test_a_client_that_reaches_no_server_is_quoted(mariadb, tmp_path):
    """One that was moved without its character sets: the server itself is up."""
    made, moved = mariadb.instance, tmp_path / "mysql"
    moved.write_text("#!/bin/sh\necho utf8 is not compiled in >&2\nexit 1\n")
    moved.chmod(0o755)
    places = (made.place.home, made.place.data)
    build = replace(made.build, client=moved)
    again = prepare(HOST, build, places=places, records=made.records)
    with pytest.raises(HostError, match="after 2 s, its client: utf8 is not compiled in"):
        again.start(timeout_s=2)
    assert again.pid == 0


def test_a_busy_port_is_answered_by_another(mariadb, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        offered = [taken.getsockname()[1]]
        free = sys.modules["mydyno.server.instance"].free_port
        choose = lambda host: offered.pop() if offered else free(host)  # noqa: E731 - one line
        monkeypatch.setattr("mydyno.server.instance.free_port", choose)
        with applied(mariadb, net={"transport": "tcp"}) as instance:
            assert instance.endpoint.tcp_port != taken.getsockname()[1]


def test_a_socket_whose_path_is_too_long_lies_elsewhere(mariadb):
    place = mariadb.instance.place
    home = place.home.parent / ("deep" * 25)
    made = mariadb.instance
    deep = prepare(HOST, made.build, places=(home, place.data), records=made.records)
    try:
        assert len(str(deep.place.socket)) < 107
        shutil.copy(place.admin, deep.place.admin)
        text = deep.place.admin.read_text().replace(str(place.socket), str(deep.place.socket))
        deep.place.admin.write_text(text)
        deep.start()
        assert deep.query("SELECT 1") == [("1",)]
    finally:
        deep.close()
    assert not deep.place.run.exists()


def test_a_killed_owner_leaves_no_server(mariadb):
    place, build = mariadb.instance.place, mariadb.instance.build
    path = place.home.parent / "changes"
    with closing(FileRecords(path)) as records:
        for entry in mariadb.instance.records.entries():
            records.add(entry)

    def owner():
        prepare(HOST, build, places=(place.home, place.data), records=FileRecords(path)).start()
        os.kill(os.getpid(), signal.SIGKILL)

    assert forked(owner) == -signal.SIGKILL
    with closing(FileRecords(path)) as records:
        (left,) = things(records.entries(), "server")
        end = time.monotonic() + 60
        process = Process.of(left.facts)
        while processes.alive(HOST, process) and time.monotonic() < end:
            time.sleep(0.02)
        assert not processes.alive(HOST, process)
        assert sweep(HOST, records) == ([], [])
    mariadb.instance.start()
    assert mariadb.instance.query("SELECT 1") == [("1",)]


def test_a_server_that_outlived_its_owner_is_swept(mariadb):
    mariadb.instance.start()
    pid, place = mariadb.instance.pid, mariadb.instance.place
    assert sweep(HOST, mariadb.instance.records) == ([f"server {pid}"], [])
    assert mariadb.instance.pid == 0
    assert not place.socket.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can become another user")
def test_an_ordinary_user_has_a_server_too():
    folder = open_folder()
    user = pwd.getpwnam("nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)

    def ordinary():
        os.setgroups([])
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
        instance = prepare(HOST, find(HOST, "auto"), places=(folder / "home", folder / "data"))
        instance.initialise()
        layer = Limits(Server(*(instance.place.launch / "limits", instance.place.pid_file,
                                instance.place.options)))  # fmt: skip
        write(layer, {}, {"nofile": "999"})
        instance.start()
        assert ask(HOST, layer.observe())["nofile"] == "999"
        assert instance.query("SELECT CURRENT_USER()") == [("root@localhost",)]
        instance.close()

    try:
        assert forked(ordinary) == 0
    finally:
        shutil.rmtree(folder)
