"""A private server harms nothing: not the original of its data, nor root by its own user's hands.

Attacks here use commands and files only.
"""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command_line import COMMAND, mydyno

pytestmark = [
    pytest.mark.root,
    pytest.mark.mysqld,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
MYSQL = Path(os.environ.get("MYDYNO_CACHE") or "/var/cache/mydyno") / "servers/mysql-8.0.33"
SPEC = """
[campaign]
name = "harm"
[stack]
server = "{server}"
data = "{data}"
device = "here"
[treatments.STOCK]
[treatments.POOL]
"mysqld.innodb_buffer_pool_size" = "64M"
[workloads.w]
tool = "command"
server = true
argv = ["sh", "{load}"]
[protocol]
warmup_s = 1
window_s = 2
blocks = 1
"""
SECONDS = r'for s in 1 2 3 4 5 6 7 8; do echo "{{\"t_s\": $s, \"tps\": 5}}"; {pause}; done'


def digest(*folders):
    """Return every file below the folders: content, owner, mode."""
    found = {}
    for path in sorted(p for folder in folders for p in [folder, *folder.rglob("*")]):
        seen = path.lstat()
        text = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (seen.st_mode, seen.st_uid, seen.st_gid, text)
    return found


def spec(folder, data="", load="true", server="auto"):
    path = folder / "spec.toml"
    script = folder / "load.sh"
    script.write_text(load)
    text = SPEC.format(data=data, load=script, server=server)
    path.write_text(text.replace('data = ""\n', ""))
    return path


class Original:
    """A production server of MySQL 8 with files outside of its data directory."""

    def __init__(self, folder, *, outside):
        self.data, self.far = folder / "original", folder / "far away"
        self.far.mkdir()
        shutil.chown(self.far, "nobody", "nogroup")
        self.socket = folder / "sock"
        self.base = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.base += [str(MYSQL / "bin/mysqld"), "--no-defaults", f"--datadir={self.data}"]
        self.base += [f"--innodb-directories={self.far}", f"--log-error={self.far}/err"]
        self.data.mkdir()
        shutil.chown(self.data, "nobody", "nogroup")
        shutil.chown(folder, "nobody", "nogroup")
        subprocess.run([*self.base, "--initialize-insecure"], check=True, capture_output=True)
        argv = [*self.base, "--skip-networking", "--mysqlx=0", f"--socket={self.socket}"]
        with subprocess.Popen(argv) as process:
            try:
                self.sql("CREATE DATABASE shop")
                self.sql("CREATE TABLE shop.inside (a INT PRIMARY KEY)")
                for statement in outside:
                    self.sql(statement.format(far=self.far))
            finally:
                process.terminate()
        shutil.chown(folder, "root", "root")

    def sql(self, statement):
        argv = [str(MYSQL / "bin/mysql"), "--no-defaults", "-uroot", f"--socket={self.socket}"]
        for _ in range(300):
            done = subprocess.run([*argv, "-e", statement], capture_output=True, check=False)
            if b"Can't connect" not in done.stderr:
                break
            time.sleep(0.1)
        assert done.returncode == 0, done.stderr


OUTSIDE = {
    "DATA DIRECTORY": (
        "CREATE TABLE shop.there (a INT PRIMARY KEY) DATA DIRECTORY = '{far}'",
        "INSERT INTO shop.there VALUES (1)",
    ),
    "general tablespace": (
        "CREATE TABLESPACE ts ADD DATAFILE '{far}/ts.ibd'",
        "CREATE TABLE shop.general (a INT PRIMARY KEY) TABLESPACE ts",
    ),
    "undo tablespace": ("CREATE UNDO TABLESPACE undo_x ADD DATAFILE '{far}/undo_x.ibu'",),
}


@pytest.mark.skipif(not MYSQL.is_dir(), reason="run packaging/servers.sh")
@pytest.mark.parametrize("kind", OUTSIDE)
def test_files_outside_of_the_original_are_named_and_never_written(folder, kind):
    there = Original(folder, outside=OUTSIDE[kind])
    before = digest(there.data, there.far)
    done = mydyno("run", spec(folder, there.data, server=MYSQL), "-o", folder / "run")
    assert done.returncode in {3, 4}, done.stderr
    assert str(there.far) in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert digest(there.data, there.far) == before
    mydyno("rollback", folder / "run")
    assert digest(there.data, there.far) == before


@pytest.mark.skipif(not MYSQL.is_dir(), reason="run packaging/servers.sh")
def test_a_copy_runs_and_sees_nothing_of_the_original(folder):
    there = Original(folder, outside=())
    before = digest(there.data, there.far)
    load = SECONDS.format(pause="sleep 0.2")
    path = spec(folder, there.data, load, server=MYSQL)
    argv = [*COMMAND, "run", str(path), "-o", str(folder / "run")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        pid = server_of(folder, process)
        look = ["nsenter", "--target", pid, "--mount", "--root", "sh", "-c"]
        for words in (
            f"test -e {there.data}/ibdata1",
            f"touch {folder}/written",
            "touch /etc/written",
            "touch /dev/shm/written",
        ):
            assert subprocess.run([*look, words], check=False, capture_output=True).returncode
        process.wait()
        assert process.returncode == 0, process.stderr.read()
    assert digest(there.data, there.far) == before


def server_of(folder, process, patience_s=120):
    """Return the pid of the campaign's server once a trial's load runs."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        begun = list((folder / "run/trials").glob("*/load.out"))
        argument = f"--defaults-file={folder}/run/work/server/my.cnf"
        found = subprocess.run(
            ["pgrep", "-f", "--", argument], capture_output=True, text=True, check=False
        )
        if begun and found.stdout:
            return found.stdout.split()[0]
        time.sleep(0.05)
    raise AssertionError(patience_s)


ATTACK = r"""
import os, pathlib, sys, time
victim, *folders = sys.argv[1:]
end = time.monotonic() + 60
while time.monotonic() < end:
    for folder in map(pathlib.Path, folders):
        try:
            names = [*map(str, folder.iterdir())] + [str(folder / n) for n in (
                "mysqld.err", "my.cnf", "ib_buffer_pool", "mysqld.sock", "mysqld.pid", "x")]
        except OSError:
            names = [str(folder)]
        for name in names:
            for make in (os.symlink, os.link):
                try:
                    os.rename(name, name + ".gone")
                except OSError:
                    pass
                try:
                    make(victim, name)
                except OSError:
                    pass
    time.sleep(0.01)
"""


@contextlib.contextmanager
def protected(value):
    """Set the kernel's protection of links, and restore it."""
    files = [Path("/proc/sys/fs", f"protected_{kind}") for kind in ("symlinks", "hardlinks")]
    found = [file.read_text() for file in files]
    try:
        for file in files:
            file.write_text(str(value))
        yield
    finally:
        for file, text in zip(files, found, strict=True):
            file.write_text(text)


@pytest.mark.parametrize("value", [1, 0])
def test_the_servers_user_cannot_make_root_touch_anything(folder, value):
    victim = folder / "victim"
    victim.write_text("precious")
    victim.chmod(0o644)  # so that hard links to it are allowed to everybody where unprotected
    before = digest(victim)
    path = spec(folder, load=SECONDS.format(pause="sleep 0.3"))
    argv = [*COMMAND, "run", str(path), "-o", str(folder / "run")]
    with protected(value), subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        pid = server_of(folder, process)
        uid = Path(f"/proc/{pid}").stat().st_uid
        assert uid >= 61184
        work = folder / "run/work"
        homes = [work, work / "server", work / "data", work / "server/run", work / "server/tmp"]
        homes += [work / "server/launch", folder / "run", folder / "run/trials/0000"]
        user = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "python3", "-c"]
        attack = subprocess.Popen([*user, ATTACK, str(victim), *map(str, homes)])
        try:
            _, words = process.communicate(timeout=180)
        finally:
            attack.kill()
            attack.wait()
    assert "Traceback" not in words
    assert digest(victim) == before
    done = mydyno("rollback", folder / "run")
    assert done.returncode == 0, done.stderr
    assert digest(victim) == before
    assert not (folder / "run/work").exists()


def test_nothing_of_a_campaign_can_be_read_by_other_users(folder):
    path = spec(folder, load=SECONDS.format(pause="sleep 0.3"))
    argv = [*COMMAND, "run", str(path), "-o", str(folder / "run")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
        server_of(folder, process)
        open_ = readable(folder / "run") + readable(Path("/var/lib/mydyno"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert open_ == []
    assert readable(folder / "run") == []


def readable(folder):
    """Return what other users may read or write: folders that they may only pass through aside."""
    found = []
    for path in [folder, *folder.rglob("*")]:
        with contextlib.suppress(FileNotFoundError):
            seen = path.lstat()
            passing = 0o001 if path.is_dir() else 0
            # a socket has the mode that the server gives it, in a folder of its user alone
            if not (path.is_symlink() or path.is_socket()) and seen.st_mode & 0o007 & ~passing:
                found.append((str(path), oct(seen.st_mode)))
    return found


def test_a_forged_record_in_the_work_folder_ends_nobody(folder):
    load = SECONDS.format(pause="sleep 1")
    argv = [*COMMAND, "run", str(spec(folder, load=load)), "-o", str(folder / "run")]
    with subprocess.Popen(["sleep", "600"]) as victim:
        try:
            with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True) as process:
                server_of(folder, process)
                process.kill()
                process.wait()
            start = Path(f"/proc/{victim.pid}/stat").read_text().rpartition(")")[2].split()[19]
            home = folder / "run/work/server"
            record = {"options": str(home / "my.cnf"), "pid": victim.pid, "start": int(start)}
            (home / "server.json").write_text(json.dumps(record))
            (home / "mysqld.pid").write_text(f"{victim.pid}\n")
            done = mydyno("rollback", folder / "run")
            assert done.returncode == 0, done.stderr
            assert victim.poll() is None
        finally:
            victim.kill()
    assert not (folder / "run/work").exists()
