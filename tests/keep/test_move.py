"""A data directory that moves: compared, with its rights, whatever ends the move half way."""

import random
import signal
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from keep.desk import MYDYNO
from keep.guest import until

pytestmark = [pytest.mark.root, pytest.mark.mysqld]
UNIT = "mydyno-move.service"
NEW = "/data/mysql"
ROWS = 40_000


def fill(desk, rows=ROWS):
    """Make a table whose contents can be recognised."""
    desk.guest.sql(
        "CREATE DATABASE IF NOT EXISTS kept; DROP TABLE IF EXISTS kept.t; "
        "CREATE TABLE kept.t (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(1000));"
        "INSERT INTO kept.t (text) VALUES (REPEAT('a', 1000));"
    )
    while rows > 1:
        desk.guest.sql("INSERT INTO kept.t (text) SELECT text FROM kept.t")
        rows //= 2


def kept(desk):
    """Return where the data are, and what identifies them."""
    where = desk.guest.sql("SELECT @@datadir").rstrip("/")
    return where, desk.guest.sql("CHECKSUM TABLE kept.t; SELECT COUNT(*) FROM kept.t")


def listed(desk, folder):
    """Return names, modes, owners and sizes below a folder."""
    argv = ("find", folder, "-printf", "%y %m %U:%G %P\n")
    return sorted(desk.guest.inside(*argv).splitlines())


def move(desk, *more, new=NEW, code=0):
    words = ("move", desk.guest.ssh, new, "--yes-to", desk.guest.name)
    return desk.run(*words, *more, code=code)


def left(desk):
    """Return what a move may have left besides the two folders."""
    places = ("/run/mydyno-move", f"/run/systemd/system/{UNIT}", f"{NEW}.mydyno-part")
    return [one for one in places if desk.guest.try_in("test", "-e", one)]


@pytest.fixture
def parent(desk):
    desk.guest.inside("mkdir", "-p", "/data")
    fill(desk)
    return desk


@pytest.mark.parametrize("desk", ["mariadb", "mysql"], indirect=True)
def test_the_data_move_with_their_rights_and_can_move_again(parent):
    desk, first = parent, parent.guest.state()
    old, content = kept(desk)
    assert "1 restart" in move(desk, "--dry-run")
    assert kept(desk) == (old, content)
    files = set(listed(desk, f"{old}/kept"))
    printed = move(desk)
    assert f"the data are in {NEW}" in printed
    assert f"{old} is as it was before" in printed
    assert kept(desk) == (NEW, content)
    assert set(listed(desk, f"{NEW}/kept")) == set(listed(desk, f"{old}/kept")) == files
    own = ("stat", "-c", "%a %U:%G")
    assert desk.guest.inside(*own, NEW) == desk.guest.inside(*own, old)
    new = {name for name in desk.guest.state() if name not in first}
    assert {name.rpartition("/")[2] for name in new} >= {"zz-mydyno-move.cnf"}
    assert left(desk) == []
    desk.guest.reboot()
    assert kept(desk) == (NEW, content)
    move(desk, new="/data/again")
    assert kept(desk) == ("/data/again", content)
    assert "move" in desk.guest.inside("journalctl", "-q", "-t", "mydyno-move", "-o", "cat")


WATCHED = """#!/bin/sh
[ ! -e /etc/mysql/mariadb.conf.d/zz-mydyno-move.cnf ] && echo "$*" >>/run/synced
exec /usr/bin/sync.own "$@"
"""


def test_the_name_of_the_copy_is_durable_before_a_file_names_it(parent):
    own = parent.guest.root / "usr/bin/sync"
    own.rename(own.with_name("sync.own"))
    own.write_text(WATCHED)
    own.chmod(0o755)
    assert f"the data are in {NEW}" in move(parent)
    assert f"-f {NEW}" in parent.guest.inside("cat", "/run/synced").splitlines()


RELUCTANT = """#!/bin/sh
[ "$1" != daemon-reload ] || [ ! -e /run/mydyno-move/state ] || exit 1
exec /usr/bin/systemctl.own "$@"
"""


def test_a_manager_that_refuses_to_reload_does_not_keep_the_server_down(parent):
    """As it does where /run is nearly full."""
    desk, content = parent, kept(parent)[1]
    own = desk.guest.root / "usr/bin/systemctl"
    own.rename(own.with_name("systemctl.own"))
    own.write_text(RELUCTANT)
    own.chmod(0o755)
    assert f"the data are in {NEW}" in move(desk)
    assert kept(desk) == (NEW, content)


def test_an_option_file_is_not_written_where_others_can_put_a_link(parent):
    parent.guest.inside("chown", "mysql", "/etc/mysql/mariadb.conf.d")
    printed = move(parent, "--dry-run", code=4)
    assert "/etc/mysql/mariadb.conf.d: root would write there" in printed


def begin(desk):
    """Start a move, and return once its unit runs."""
    words = ("move", desk.guest.ssh, NEW, "--yes-to", desk.guest.name)
    process = subprocess.Popen(
        [MYDYNO, *words], env=desk.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    until(lambda: desk.guest.try_in("test", "-e", "/run/mydyno-move/state"), 60)
    return process


def reset(desk, old):
    """Bring the data back to the old folder, as nothing else does."""
    desk.guest.inside("systemctl", "stop", "mariadb")
    desk.guest.inside("rm", "-rf", NEW, f"{NEW}.mydyno-part")
    files = (
        "/etc/mysql/mariadb.conf.d/zz-mydyno-move.cnf",
        "/etc/systemd/system/mariadb.service.d",
    )
    desk.guest.inside("rm", "-rf", *files)
    desk.guest.inside("systemctl", "daemon-reload")
    desk.guest.inside("systemctl", "start", "mariadb")
    until(desk.guest.answers)
    assert kept(desk)[0] == old


def test_killed_at_any_moment_it_goes_on_or_back(parent):
    desk, chance, ends = parent, random.Random(7), []
    old, content = kept(desk)
    first = desk.guest.state()
    for _ in range(12):
        process = begin(desk)
        for _ in range(chance.choice((1, 1, 3))):
            time.sleep(chance.uniform(0, 0.8))
            desk.guest.try_in("systemctl", "kill", "--signal=KILL", UNIT)
        process.communicate(timeout=120)
        until(desk.guest.answers, 60)
        until(lambda: left(desk) == [], 30)
        where, found = kept(desk)
        assert found == content
        ends.append(where)
        if where == old:
            assert desk.guest.state() == first
            assert not desk.guest.try_in("test", "-e", NEW)
        else:
            reset(desk, old)
    assert old in ends


def test_a_power_cut_at_any_moment_leaves_the_data_in_one_place(parent):
    desk, chance = parent, random.Random(9)
    old, content = kept(desk)
    for _ in range(6):
        process = begin(desk)
        time.sleep(chance.uniform(0, 1.5))
        desk.guest.reboot()
        _, printed = process.communicate(timeout=60)
        assert process.returncode in {0, 3}, printed  # moved before the cut, or lost
        where, found = kept(desk)
        assert found == content
        assert where in {old, NEW}
        if where == NEW:
            reset(desk, old)
        elif desk.guest.try_in("test", "-e", NEW):
            desk.guest.inside("rm", "-rf", NEW)  # compared, but not in use yet
    move(desk)  # what a cut has left of a copy is no obstacle
    assert kept(desk) == (NEW, content)


def test_it_needs_no_session(parent):
    desk = parent
    _, content = kept(desk)
    process = begin(desk)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    until(lambda: desk.guest.answers() and kept(desk)[0] == NEW, 60)
    assert kept(desk) == (NEW, content)


def test_a_server_that_does_not_use_the_copy_goes_on_where_it_was(parent):
    desk = parent
    later = desk.guest.root / "etc/mysql/mariadb.conf.d/zzz-later.cnf"
    later.write_text("[mysqld]\ndatadir = /var/lib/mysql\n")
    before = kept(desk)
    first = desk.guest.state()
    assert "it runs where it was, and the copy is left" in move(desk, code=3)
    assert kept(desk) == before
    assert desk.guest.state() == first


def test_a_copy_that_may_hold_commits_stays_when_the_way_back_is_killed(parent):
    desk = parent
    folder = desk.guest.root / "etc/mysql/mariadb.conf.d"
    (folder / "zzz-later.cnf").write_text("[mysqld]\ndatadir = /var/lib/mysql\n")
    before = kept(desk)
    process = begin(desk)
    option = folder / "zz-mydyno-move.cnf"
    until(option.exists, 60)
    until(lambda: not option.exists(), 60)
    desk.guest.inside("systemctl", "kill", "--signal=KILL", UNIT)
    process.communicate(timeout=120)
    until(desk.guest.answers, 60)
    until(lambda: left(desk) == [], 30)
    assert kept(desk) == before
    assert desk.guest.try_in("test", "-e", f"{NEW}/kept/t.ibd")


def test_a_copy_that_differs_is_not_used(parent):
    desk = parent
    before, first = kept(desk), desk.guest.state()
    victim = desk.guest.root / "data/mysql.mydyno-part/kept/t.ibd"

    def spoil():
        until(victim.exists, 60)
        with suppress(OSError):
            while victim.exists():
                with victim.open("r+b") as file:
                    file.write(b"x")
                time.sleep(0.01)

    threading.Thread(target=spoil, daemon=True).start()
    assert "the data did not move; the server runs where it was" in move(desk, code=3)
    assert kept(desk) == before
    assert desk.guest.state() == first
    assert left(desk) == []


def test_what_would_not_hold_is_refused_before_anything_stops(parent):
    desk = parent
    desk.guest.inside("mkdir", "-p", "/shared", "/home/me", "/shut", "/mounted", "/data/there")
    desk.guest.inside("chmod", "777", "/shared")
    desk.guest.inside("chmod", "700", "/shut")
    desk.guest.inside("mount", "--bind", "/data", "/mounted")
    since = desk.guest.inside("systemctl", "show", "-p", "InvocationID", "mariadb")
    for new, words, code in (
        ("/shared/mysql", "others than root can change it", 4),
        ("/run/mysql", "tmpfs is empty after a reboot", 4),
        ("/home/me/mysql", "ProtectHome of mariadb.service keeps the server out", 4),
        ("/usr/mysql", "ProtectSystem of mariadb.service keeps the server out", 4),
        ("/shut/mysql", "mysql cannot enter it", 4),
        ("/mounted/mysql", "neither fstab nor a unit mounts it", 4),
        ("/data/there", "exists on", 2),
        ("/none/mysql", "not a folder on", 2),
        ("mysql", "by its full path", 2),
        ("/var/lib/mysql/new", "inside the other", 2),
    ):
        assert words in move(desk, new=new, code=code), new
    desk.guest.inside("ln", "-s", "/data", "/var/lib/mysql/link")
    assert "/var/lib/mysql/link: a link; put its target into /var/lib/mysql" in move(desk, code=4)
    desk.guest.inside("rm", "/var/lib/mysql/link")
    option = desk.guest.root / "etc/mysql/mariadb.conf.d/99-log.cnf"
    for stays in ("log_bin = /var/lib/mysql/binlog", "innodb_log_group_home_dir = /var/lib/mysql"):
        option.write_text(f"[mysqld]\n{stays}\n")
        assert f"99-log.cnf:2: {stays} stays in the old folder" in move(desk, code=4)
    option.unlink()
    desk.apply("[mysqld]\nmax_connections = 300\n")
    assert "is on trial there" in move(desk, code=4)
    assert desk.guest.inside("systemctl", "show", "-p", "InvocationID", "mariadb") == since
