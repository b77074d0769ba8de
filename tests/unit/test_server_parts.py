"""The parts of a private instance that need no server: its files, command, accounts, record."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mydyno.host import Local, processes
from mydyno.journal.records import Made, MemoryRecords, things
from mydyno.model import Action, SpecError
from mydyno.server import Build, Place, client, find, instance, programs, sweep
from mydyno.server.place import Identity, client_options, options, password_in, refuse_unreachable

PLACE = Place(Path("/srv/h"), Path("/mnt/d"), Path("/srv/h"))
MYSQL = Identity("mysql", 102, 105)


def build(flavour="mysql", version=(8, 0, 33)):
    return Build(flavour, version, "text", Path("/b/bin/mysqld"), Path("/b"), Path("/b/bin/mysql"))


def test_the_option_file_is_off_the_network_unless_a_port_is_given():
    closed = options(build(), PLACE)
    assert "skip_networking\n" in closed
    assert "port" not in closed
    opened = options(build(), PLACE, "127.0.0.1", 21000)
    assert "skip_networking" not in opened
    assert "bind_address = 127.0.0.1\nport = 21000\n" in opened


def test_the_treatment_s_file_is_read_last_so_that_it_wins():
    assert options(build(), PLACE).endswith("!include /srv/h/zz-mydyno.cnf\n")


@pytest.mark.parametrize(
    ("flavour", "version", "there"),
    [("mysql", (8, 0, 33), True), ("mysql", (5, 6, 14), False), ("mariadb", (11, 4, 5), False)],
)
def test_the_x_protocol_is_off_where_it_exists(flavour, version, there):
    assert ("mysqlx = 0" in options(build(flavour, version), PLACE)) is there


def test_paths_with_blanks_and_quotes_are_quoted():
    place = Place(Path('/srv/a "b"'), Path("/mnt/c d"), Path("/run/x"))
    text = options(build(), place)
    assert 'datadir = "/mnt/c d"\n' in text
    assert 'tmpdir = "/srv/a \\"b\\"/tmp"\n' in text


def test_a_password_can_be_read_back_from_its_file():
    text = client_options("root", "My1-abc", Path("/srv/h/mysqld.sock"))
    assert password_in(text) == "My1-abc"
    assert password_in("[client]\n") == ""


def test_launch_files_become_environment_limits_and_network():
    raw = (
        b"/srv/h/launch/alloc:LD_PRELOAD=/lib/libjemalloc.so.2\n"
        b"/srv/h/launch/alloc:MALLOC_CONF=narenas:2\n"
        b"/srv/h/launch/env:TZ=Europe/Berlin\n"
        b"/srv/h/launch/env:ODD=a=b:c\n"
        b"/srv/h/launch/limits:nofile=4096\n"
        b"/srv/h/launch/net:transport=tcp\n"
    )
    asked = programs.parse_launch(raw, PLACE.launch)
    assert asked.environment == {
        "LD_PRELOAD": "/lib/libjemalloc.so.2",
        "MALLOC_CONF": "narenas:2",
        "TZ": "Europe/Berlin",
        "ODD": "a=b:c",
    }
    assert asked.limits == {"nofile": "4096"}
    assert asked.net == {"transport": "tcp"}


def test_no_launch_files_ask_for_nothing():
    assert programs.parse_launch(b"", PLACE.launch) == programs.Launch()


def test_the_server_gets_its_limits_before_the_drop_and_its_preload_after():
    asked = programs.Launch({"LD_PRELOAD": "/x.so"}, {"nofile": "10", "memlock": "unlimited"})
    argv = programs.command(build(), PLACE, MYSQL, asked).argv
    assert argv[:3] == ("prlimit", "--memlock=unlimited:unlimited", "--nofile=10:10")
    drop = argv.index("setpriv")
    preload = argv.index("LD_PRELOAD=/x.so")
    assert 0 < drop < argv.index("env") < preload < argv.index("/b/bin/mysqld")
    assert argv[-1] == "--defaults-file=/srv/h/my.cnf"
    assert argv[argv.index("--reuid") + 1] == "102"


def test_an_ordinary_user_only_asks_to_die_with_its_parent():
    argv = programs.command(build(), PLACE, Identity(), programs.Launch()).argv
    assert argv[:3] == ("setpriv", "--pdeathsig", "KILL")
    assert "--reuid" not in argv


def sql(which, *, native):
    users = [("root", "localhost"), ("root", "::1"), ("", "localhost"), ("mysql.sys", "localhost")]
    words = {"root_password": "R", "load_password": "L"}
    return client.statements(which, users, native=native, **words)


def test_anonymous_and_remote_accounts_are_dropped_and_internal_ones_stay():
    text = sql(build(), native=True)
    assert "DROP USER ''@'localhost';" in text
    assert "DROP USER 'root'@'::1';" in text
    assert "DROP USER 'root'@'localhost'" not in text
    assert "DROP USER 'mysql.sys'" not in text


@pytest.mark.parametrize(
    ("flavour", "version", "native", "clause", "root"),
    [
        ("mysql", (5, 6, 14), True, "IDENTIFIED BY 'L'", "SET PASSWORD FOR 'root'@'localhost'"),
        ("mysql", (8, 0, 33), True, "IDENTIFIED WITH mysql_native_password BY 'L'", "ALTER USER"),
        ("mysql", (9, 7, 4), False, "IDENTIFIED BY 'L'", "ALTER USER 'root'@'localhost'"),
        ("mariadb", (11, 4, 5), True, "IDENTIFIED BY 'L'", "SET PASSWORD FOR 'root'@'localhost'"),
    ],
)
def test_accounts_speak_each_server_s_dialect(flavour, version, native, clause, root):
    text = sql(build(flavour, version), native=native)
    assert f"CREATE USER 'mydyno'@'%' {clause};" in text
    assert root in text
    assert text.index("sql_log_bin") < text.index("'L'")


def test_the_reply_of_the_client_becomes_rows():
    assert client.rows(b"a\tb\\tc\\n\\\\\nNULL\t\n") == [("a", "b\tc\n\\"), ("NULL", "")]
    assert client.rows(b"") == []


def test_ports_in_use_are_read_from_proc():
    raw = (
        b"  sl  local_address rem_address   st\n"
        b"   0: 0100007F:5208 00000000:0000 0A 00000000:00000000 00:00000000 00000000\n"
        b"  12: 00000000000000000000000001000000:5209 00000000000000000000000000000000:0000 0A\n"
    )
    assert instance.used(raw) == {0x5208, 0x5209}


def test_a_port_is_free_when_it_is_chosen():
    assert instance.free_port(Local()) in range(20000, 32000)


def test_nothing_to_find_names_the_folder_and_what_to_do(tmp_path):
    with pytest.raises(SpecError, match="no bin/mariadbd or bin/mysqld there"):
        find(Local(), str(tmp_path))


def test_the_files_of_statements_stay_in_the_home():
    """MySQL 9.7 of Debian stops where the folder that is compiled in does not exist."""
    assert 'secure_file_priv = "/srv/h/tmp"\n' in options(build(), PLACE)


def test_a_server_that_is_too_old_is_refused_before_anything_is_made():
    with tempfile.TemporaryDirectory(prefix="mydyno-test-") as name:
        base = Path(name)
        base.chmod(0o755)  # root asks the program as nobody
        program = base / "bin/mysqld"
        program.parent.mkdir(mode=0o755)
        program.write_text("#!/bin/sh\necho 'mysqld  Ver 5.5.62 for Linux on x86_64 (MySQL)'\n")
        program.chmod(0o755)
        refused = f"{program}: MySQL 5.5.62 is not supported; use MySQL 5.6 or later"
        with pytest.raises(SpecError, match=re.escape(refused)):
            find(Local(), name)


@pytest.mark.parametrize(
    ("words", "tls", "allocator"),
    [
        ("", "", "glibc"),
        ("Comparing have_openssl and have_ssl shows YaSSL", "", "glibc"),
        ("the SSL library (OpenSSL or\nyaSSL). Permitted values", "", "glibc"),
        ("_ZN5yaSSL3SSLD2Ev", "yaSSL", "glibc"),
        ("wolfSSL_shutdown <jemalloc>: Error in munmap()", "wolfSSL", "jemalloc"),
        ("TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES", "", "tcmalloc"),
        ("mimalloc: error: ", "", "mimalloc"),
    ],
)
def test_a_program_shows_the_libraries_that_it_contains(words, tls, allocator):
    with tempfile.TemporaryDirectory(prefix="mydyno-test-") as name:
        base = Path(name)
        base.chmod(0o755)  # root asks the program as nobody
        program = base / "bin/mysqld"
        program.parent.mkdir(mode=0o755)
        program.write_text("#!/bin/sh\necho 'mysqld  Ver 8.0.33 for Linux'\nexit\n" + words)
        program.chmod(0o755)
        (program.parent / "mysql").symlink_to("/bin/true")
        found = find(Local(), name)
        assert (found.tls, found.allocator) == (tls, allocator)
        known = f"flavour mysql, TLS by {tls or 'an unknown library'}, allocator {allocator}"
        assert found.description == f"mysqld  Ver 8.0.33 for Linux, {known}"


def test_a_program_that_is_no_server_is_refused(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mysqld").symlink_to("/bin/true")
    with pytest.raises(SpecError):
        find(Local(), str(tmp_path))


def test_a_path_out_of_reach_is_refused():
    with pytest.raises(SpecError, match="cannot reach it"):
        refuse_unreachable(Local(), Identity(), Path("/no/such/place"))


def sleeper(argument):
    """Start a process that carries `argument` and does nothing; return it and what it is."""
    argv = (sys.executable, "-c", "import time; time.sleep(60)", argument)
    running = Local().start(Action(argv))
    return running, processes.identify(Local(), running.pid).facts


def recorded(options, facts):
    records = MemoryRecords()
    records.add(Made("server", str(options)))
    records.add(Made("server", str(options), facts))
    return records


def end(running):
    """Stop a process, read its output to the end so that the pipe closes, return its code."""
    code = running.stop()
    assert list(running.lines()) == []
    return code


def test_a_leftover_server_is_ended_and_its_record_removed(tmp_path):
    running, facts = sleeper(f"--defaults-file={tmp_path}/my.cnf")
    records = recorded(tmp_path / "my.cnf", facts)
    assert sweep(Local(), records) == ([f"server {running.pid}"], [])
    assert end(running) != 0
    assert things(records.entries(), "server") == []
    assert sweep(Local(), records) == ([], [])


def test_a_server_that_was_announced_only_is_found_by_its_option_file(tmp_path):
    running, _ = sleeper(f"--defaults-file={tmp_path}/my.cnf")
    records = recorded(tmp_path / "my.cnf", {})
    assert sweep(Local(), records) == ([f"server {running.pid}"], [])
    end(running)


@pytest.mark.parametrize("fault", ["argument", "start", "exe", "boot"])
def test_a_stranger_with_the_same_pid_is_left_alone(tmp_path, fault):
    argument = "--defaults-file=/other.cnf" if fault == "argument" else ""
    running, facts = sleeper(argument or f"--defaults-file={tmp_path}/my.cnf")
    try:
        wrong = facts if fault == "argument" else {**facts, fault: f"{facts[fault]}1"}
        assert sweep(Local(), recorded(tmp_path / "my.cnf", wrong)) == ([], [])
        time.sleep(0.05)
        assert running.returncode() is None
    finally:
        end(running)


@pytest.mark.parametrize("name", ["sleep", "sl)eep (x)", "sl\neep"])
def test_a_process_whose_program_was_replaced_is_still_that_process(tmp_path, name):
    """An upgrade unlinks a program that runs; its process was taken for one that had ended."""
    program = tmp_path / name
    shutil.copy("/bin/sleep", program)
    with subprocess.Popen([program, "60"]) as child:
        try:
            there = processes.identify(Local(), child.pid)
            assert there is not None
            program.unlink()
            assert processes.identify(Local(), child.pid) == there
            assert processes.alive(Local(), there)
        finally:
            child.kill()


def test_a_process_that_is_gone_is_nothing():
    assert processes.identify(Local(), 2**22 + 1) is None
    me = processes.identify(Local(), os.getpid())
    assert me.pid == os.getpid()
    assert processes.Process.of(me.facts) == me
