"""Reading what somebody else wrote: option files, pipes, secrets, servers that are not there."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from mydyno.audit.option_files import every, groups
from mydyno.cli import audit as command
from mydyno.host import Local
from mydyno.model import HostError, SpecError
from mydyno.server import existing as module
from mydyno.server.existing import (
    Existing,
    ServerProcess,
    environment_of,
    host_outputs,
    option_files,
    processes,
    reached,
    statements,
    texts_of,
)


def server(*words, pid=None, data="/"):
    process = ServerProcess(pid or os.getpid(), "mariadbd", words)
    return Existing(Local(), (), "mariadb", (10, 11, 19), "", "", data, process)


def test_option_files_are_read_with_their_includes_and_without_secrets(tmp_path):
    main, folder = tmp_path / "my.cnf", tmp_path / "conf.d"
    folder.mkdir()
    main.write_text(
        f"[client]\npassword = Canary-4711\n[mysqld]\nsync_binlog=1\n!includedir {folder}\n"
        "default-authentication-plugin = mysql_native_password\n"
    )
    (folder / "b.cnf").write_text("[mysqld]\nmax_connections=5\nssl-key-passphrase=Canary-4711\n")
    (folder / "b.txt").write_text("[mysqld]\nmax_connections=6\n")
    start, texts, modes = option_files(server(f"--defaults-file={main}"), {})
    assert start == (str(main),)
    assert "Canary-4711" not in str(texts)
    found = every(start, texts, groups("mariadb", (10, 11, 19)))
    assert [(o.name, o.value, o.line) for o in found] == [
        ("sync_binlog", "1", 4), ("max_connections", "5", 2),
        ("default_authentication_plugin", "mysql_native_password", 6),
    ]  # fmt: skip
    (folder / "b.cnf").chmod(0o666)
    assert option_files(server(f"--defaults-file={main}"), {})[2][str(folder / "b.cnf")] == "666"
    assert modes[str(main)] == "644"


def test_a_pipe_a_loop_and_a_huge_file_are_no_option_files(tmp_path):
    """As root it reads what another user wrote: it must neither wait nor swell."""
    main = tmp_path / "my.cnf"
    names = {name: tmp_path / f"{name}.cnf" for name in ("pipe", "huge", "again", "gone", "null")}
    main.write_text("[mysqld]\n" + "".join(f"!include {p}\n" for p in names.values()))
    os.mkfifo(names["pipe"])
    names["huge"].write_text("[mysqld]\n" + "# x\n" * 400_000)
    names["again"].write_text(f"[mysqld]\nback_log=7\n!include {main}\n")
    names["null"].symlink_to("/dev/zero")
    start, texts, _ = option_files(server(f"--defaults-file={main}"), {})
    assert set(texts) == {str(main), str(names["again"])}
    found = every(start, texts, groups("mariadb", (10, 11, 19)))
    assert [(o.name, o.value) for o in found] == [("back_log", "7")]


def test_a_line_that_looks_like_our_mark_is_a_line(tmp_path):
    main = tmp_path / "my.cnf"
    main.write_text("[mysqld]\n@0123456789abcdef 644 /etc/shadow\nback_log=7\n")
    _, texts, _ = option_files(server(f"--defaults-file={main}"), {})
    assert set(texts) == {str(main)}
    assert set(texts_of(Local(), [str(main), str(tmp_path / "none")])) == {str(main)}


def test_the_host_of_a_process_is_read_in_one_go(tmp_path):
    found = host_outputs(server(data=str(tmp_path)))
    assert found["process"].count("VmRSS") == 1
    assert found["mount"].split()[0]
    assert "vm_swappiness=" in found["sysctl"]
    assert host_outputs(Existing(Local(), (), "mysql", (8, 0, 33), "", "", "/", None)) == {}


def test_a_name_with_shell_in_it_is_a_name(tmp_path):
    evil = tmp_path / "a$(touch owned)`touch owned`;touch owned"
    evil.mkdir()
    host_outputs(server(data=str(evil)))
    main = evil / "my.cnf"
    main.write_text("[mysqld]\nback_log=7\n")
    assert option_files(server(f"--defaults-file={main}"), {})[1]
    assert not list(Path().glob("owned"))
    assert not list(tmp_path.rglob("owned"))


def test_statements_set_nothing_global_and_open_no_table():
    for flavour, version in (
        ("mariadb", (10, 11, 19)),
        ("mysql", (5, 6, 14)),
        ("mysql", (8, 0, 33)),
    ):
        for text in statements(flavour, version, 3):
            assert text.startswith(("SET SESSION ", "SELECT ", "SHOW ", "DO SLEEP(1)")), text
            assert "GLOBAL" not in text or text.startswith("SHOW GLOBAL")
            assert "information_schema.tables" not in text.lower()


@pytest.mark.parametrize(
    ("there", "named", "message"),
    [
        ([], "", "no server runs here"),
        ([1, 2], "", "2 servers run here; name one"),
        ([], "mysql://root@db1", r"into \[client\] of an option file"),
    ],
)
def test_which_server_is_never_guessed(monkeypatch, there, named, message):
    running = [ServerProcess(pid, "mysqld", [f"--socket=/run/{pid}.sock"]) for pid in there]
    monkeypatch.setattr(module, "processes", lambda _: running)
    with pytest.raises(SpecError, match=message):
        reached(Local(), named)


def test_the_socket_of_another_user_s_server_gets_no_password(monkeypatch):
    """While the real server is down, anybody can run one, and root's client would log in there."""
    running = [ServerProcess(7, "mysqld", ["--socket=/tmp/x"])]
    monkeypatch.setattr(module, "processes", lambda _: running)
    with pytest.raises(SpecError, match=r"another user.*pid 7.*--server FILE"):
        reached(Local())
    running = [ServerProcess(7, "mysqld", ["--socket=/none/x"], is_known=True)]
    with pytest.raises(HostError, match="does not answer"):
        reached(Local())


def test_a_list_of_tunables_is_in_one_piece_again():
    """glibc 2.36 ends a string at each colon of it, as the process shows it here."""
    cut = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=2", "glibc.malloc.mmap_max": "4", "A": "1"}
    with subprocess.Popen(["/bin/sleep", "60"], env=cut) as running:
        try:
            found = environment_of(Local(), running.pid)
        finally:
            running.kill()
    tunables = "glibc.malloc.arena_max=2:glibc.malloc.mmap_max=4"
    assert found == {"GLIBC_TUNABLES": tunables, "A": "1"}


def test_a_server_that_does_not_answer_is_an_error_with_the_next_step(tmp_path):
    options = tmp_path / "client.cnf"
    options.write_text(f"[client]\nsocket={tmp_path}/none.sock\n")
    with pytest.raises(HostError, match="name a client option file"):
        reached(Local(), str(options))


@contextmanager
def started(user=None):
    """Run a program named mysqld; `user` can reach it, which pytest's own folders do not allow."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        program = Path(folder) / "mysqld"
        program.write_bytes(Path("/bin/sleep").read_bytes())
        for path in (program, program.parent):
            path.chmod(0o755)
        with subprocess.Popen([program, "60"], user=user) as running:
            try:
                yield running.pid
            finally:
                running.kill()


def test_servers_are_found_by_their_processes():
    with started() as pid:
        found = {one.pid: one for one in processes(Local())}
    assert found[pid].program == "mysqld"
    assert found[pid].option("socket") == ""
    assert found[pid].is_known


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a program as another user")
def test_a_server_of_another_user_is_not_taken_for_one_of_ours():
    with started(user=65534) as pid:
        found = {one.pid: one for one in processes(Local())}
    assert not found[pid].is_known


@pytest.mark.parametrize("late", [False, True])
def test_a_spec_is_never_written_through_a_link(tmp_path, monkeypatch, late):
    """As root in a folder that others share, a link there chooses what would be overwritten."""
    victim, path = tmp_path / "victim", tmp_path / "db1.toml"

    def looked(*_):
        path.symlink_to(victim) if late else None
        return Existing(Local(), (), "", (0, 0, 0), "", "", "", None)

    monkeypatch.setattr(command, "reached", looked)
    for name in ("gathered", "facts", "judged", "campaign_text"):
        monkeypatch.setattr(command, name, lambda *_: "text")
    if not late:
        path.symlink_to(victim)
    with pytest.raises(FileExistsError if late else SpecError):
        command.audit(spec=path, watch="0s")
    assert not victim.exists()
