"""A treatment on a production host: on trial, confirmed, restored; in a guest run by systemd."""

import json
import re
import subprocess
import time
from contextlib import suppress

import pytest

from keep.desk import MYDYNO
from keep.guest import ROOT, run, until
from keep.kill_points import file, lease

pytestmark = [pytest.mark.root, pytest.mark.mysqld]
GUARD = "/usr/local/libexec/mydyno-guard"
HOT = """
[mysqld]
innodb_io_capacity = 400
max_connections = 300
[kernel]
"sysctl.net.core.somaxconn" = 2048
"""
COLD = """
[mysqld]
innodb_log_buffer_size = "32M"
table_open_cache = 500
[limits]
nofile = 15000
"""
DROP_IN = "/run/systemd/system/{}.d/zzz-mydyno-trial.conf"


@pytest.mark.parametrize("desk", ["mariadb", "mysql"], indirect=True)
def test_a_treatment_goes_on_trial_is_kept_and_goes_without_a_trace(desk):
    first, values = desk.guest.state(), desk.values()
    assert "restart" in desk.apply(COLD)
    etc = {k: v for k, v in desk.guest.state().items() if k.startswith("etc/")}
    assert etc == {k: v for k, v in first.items() if k.startswith("etc/")}, "of a trial, nothing"
    assert desk.values() != values
    assert "zz-mydyno.cnf" in desk.run("confirm", desk.guest.ssh)
    assert "0 not as kept" in desk.run("verify", desk.guest.ssh)
    desk.apply(HOT)
    desk.run("confirm", desk.guest.ssh)
    desk.guest.reboot()
    assert "6 settings, 0 not as kept" in desk.run("verify", desk.guest.ssh)
    assert (
        desk.guest.inside("systemctl", "show", "-p", "Result", "--value", "mydyno-verify")
        == "success\n"
    )
    assert "undone" in desk.run("rollback", desk.guest.ssh, "--to", "FIRST", "--forget")
    assert desk.guest.state() == first
    assert desk.values() == values
    desk.guest.reboot()
    assert (desk.guest.state(), desk.values()) == (first, values)


@pytest.mark.parametrize("text", [HOT, COLD])
def test_a_trial_that_nobody_confirms_ends_in_time(desk, text):
    first, values = desk.guest.state(), desk.values()

    def is_back():
        with suppress(AssertionError):  # the server is restarted between two looks at it
            return desk.guest.answers() and desk.values() == values

    began = time.monotonic()
    desk.apply(text, lease="10s")
    until(is_back, 20)
    assert time.monotonic() - began < 10 + 10
    until(lambda: desk.leases() == ["reverted"])
    desk.run("rollback", desk.guest.ssh, "--forget")
    assert desk.guest.state() == first


@pytest.mark.parametrize("text", [HOT, COLD])
def test_a_power_cut_ends_a_trial(desk, text):
    first, values = desk.guest.state(), desk.values()
    desk.apply(text)
    desk.guest.reboot()
    assert desk.values() == values
    assert desk.leases() == ["reverted"]
    desk.run("rollback", desk.guest.ssh, "--forget")
    assert desk.guest.state() == first


def test_a_dead_man_outlives_isolate_and_is_armed_again_after_a_soft_reboot(desk):
    """That one stops every timer, and leaves the boot's id and /run as they are."""
    desk.apply(HOT, lease="20s")
    timers = ("systemctl", "is-active", "mydyno-deadman-*.timer")
    desk.guest.inside("systemctl", "isolate", "multi-user.target")
    assert desk.guest.inside(*timers) == "active\n"
    desk.guest.inside("systemctl", "stop", "mydyno-deadman-*.timer")
    assert not desk.guest.try_in(*timers)
    desk.guest.inside(GUARD, "boot")
    assert desk.guest.inside(*timers) == "active\n"
    desk.guest.inside(GUARD, "boot")  # what is armed stays
    until(lambda: desk.leases() == ["reverted"], 40)


def test_a_server_that_its_account_cannot_enter_any_more_is_restored(desk):
    desk.apply(COLD)
    desk.guest.sql("ALTER USER root@localhost IDENTIFIED BY 'somebody changed it'")
    began = time.monotonic()
    desk.run("rollback", desk.guest.ssh)
    assert time.monotonic() - began < 100
    assert desk.leases() == ["reverted"]
    limits = desk.guest.inside("sh", "-c", "grep 'open files' /proc/$(pidof mariadbd)/limits")
    assert "15000" not in limits


def test_a_password_in_roots_option_file_ends_a_trial_as_it_began_it(desk):
    """A unit has no HOME of its own: what the session could set, the dead man must take back."""
    desk.guest.sql("ALTER USER root@localhost IDENTIFIED BY 'secret'")
    (desk.guest.root / "root/.my.cnf").write_text("[client]\npassword = secret\n")
    values = desk.values()
    desk.apply(HOT, lease="10s")
    assert desk.values() != values
    until(lambda: desk.leases() == ["reverted"], 25)
    assert desk.values() == values


def test_a_revert_that_systemd_does_not_answer_comes_again(desk):
    values = desk.values()
    desk.apply(HOT, lease="10s")
    desk.guest.inside("mount", "--bind", "/bin/false", "/usr/bin/systemctl")
    until(lambda: desk.values() == values, 25)
    assert desk.leases() == ["reverting"]
    desk.guest.inside("umount", "/usr/bin/systemctl")
    until(lambda: desk.leases() == ["reverted"], 20)


@pytest.mark.parametrize("desk", ["mysql"], indirect=True)
def test_an_assignment_that_outlives_its_client_does_not_land_after_the_revert(desk):
    """MySQL's waits for another session's lock, also where who asked for it has gone."""
    desk.guest.sql("CREATE DATABASE kept; CREATE TABLE kept.t (a INT)")
    lock = ("mariadb", "-e", "LOCK TABLES kept.t WRITE; DO SLEEP(45)")
    with subprocess.Popen(desk.guest.argv(*lock)) as locked:
        until(lambda: "SLEEP" in desk.guest.sql("SHOW PROCESSLIST"))
        printed = desk.apply("[mysqld]\nread_only = 1\n", code=3)
        assert "not done in 20 s" in printed
        assert "everything was restored" in printed
        assert locked.poll() is None, "the lock was held until here"
        assert "SET GLOBAL read_only" not in desk.guest.sql("SHOW FULL PROCESSLIST")
    assert desk.guest.sql("SELECT @@GLOBAL.read_only") == "0"


CAMPAIGN = """
[stack]
host = "{}"
server = "none"
[treatments.MORE]
"kernel.sysctl.net.core.somaxconn" = 1024
[workloads.w]
tool = "command"
argv = ["true"]
response = "tps"
"""


def test_a_campaign_and_a_trial_do_not_take_each_others_values_for_the_hosts(desk):
    note = "echo 'elsewhere campaign x may have changed settings' >/run/mydyno-open/a"
    desk.guest.inside("sh", "-c", f"mkdir /run/mydyno-open; {note}")
    assert "has settings changed by a campaign: campaign x" in desk.apply(HOT, code=4)
    desk.guest.inside("rm", "-r", "/run/mydyno-open")
    lock = "/var/lib/mydyno/lock"
    desk.guest.inside("mkdir", "-p", "-m", "700", "/var/lib/mydyno", lock)
    desk.guest.inside("systemd-run", "--unit=other", "flock", f"{lock}/lock", "sleep", "300")
    until(lambda: desk.guest.inside("sh", "-c", f"flock -n {lock}/lock true || echo held"))
    assert "locked by a campaign" in desk.apply(HOT, code=4)
    desk.guest.inside("systemctl", "stop", "other")
    desk.guest.inside("rm", "-r", lock)
    desk.apply(HOT)
    spec = desk.folder / "spec.toml"
    spec.write_text(CAMPAIGN.format(desk.guest.ssh))
    words = ("run", str(spec), "-o", str(desk.folder / "out"), "--allow", "host")
    assert "is on trial there since it was begun by" in desk.run(*words, code=4)


def test_tunables_of_the_allocator_are_kept_and_go_with_a_rollback(desk):
    environment = ("sh", "-c", "tr '\\0' '\\n' </proc/$(pidof mariadbd)/environ")
    desk.apply('[alloc]\ntunables = "glibc.malloc.arena_max=2"\n')
    desk.run("confirm", desk.guest.ssh)
    assert "GLIBC_TUNABLES=glibc.malloc.arena_max=2" in desk.guest.inside(*environment)
    desk.run("rollback", desk.guest.ssh)
    assert "GLIBC_TUNABLES" not in desk.guest.inside(*environment)
    desk.guest.inside("systemctl", "restart", "mariadb")
    until(desk.guest.answers)
    assert "GLIBC_TUNABLES" not in desk.guest.inside(*environment)


def test_a_program_of_the_servers_user_is_not_run(desk):
    """Which process is the server's is in a file of that user."""
    group = desk.guest.inside("sh", "-c", "cat /proc/$(pidof mariadbd)/cgroup").split("::")[1]
    own = "/var/lib/mysql/mariadbd"
    desk.guest.inside("cp", "/bin/sh", own)
    desk.guest.inside("chown", "mysql", own)
    # of two servers that share their option files none would be changed
    script = "-c 'sleep 1000; :' --defaults-file=/etc/mysql/my.cnf"
    start = f"echo $$ >/sys/fs/cgroup{group.strip()}/cgroup.procs; exec {own} {script}"
    find = 'for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" != $1 ] || echo ${p#/proc/}; done'
    pid_of = ("sh", "-c", find, "find", own)
    with subprocess.Popen(desk.guest.argv("sh", "-c", start)) as process:
        try:
            until(lambda: desk.guest.inside(*pid_of).strip())
            pid, pid_file = desk.guest.inside(*pid_of).strip(), desk.guest.sql("SELECT @@pid_file")
            desk.guest.inside("sh", "-c", f"echo {pid} >{pid_file}")
            socket = ("--server", "/run/mysqld/mysqld.sock")
            words = desk.apply(COLD, "--dry-run", *socket)
        finally:
            process.kill()
    assert f"warning: options are not tried: {own}: not safe to run" in words


def test_an_export_changes_the_files_of_the_host_that_it_is_applied_to(desk):
    export = desk.folder / "export"
    export.mkdir()
    elsewhere = {"include": "/etc/elsewhere", "fstab": "# of another host\n", "disk": "sdx"}
    kept = {"settings": {"mysqld.max_connections": "300"}, "target": elsewhere}
    (export / "kept.json").write_text(json.dumps(kept))
    words = ("apply", str(export), "--to", desk.guest.ssh, "--yes-to", desk.guest.name)
    fstab = ("--target", f"fstab={desk.file('# a table')}")
    assert "edits the host's own table" in desk.run(*words, *fstab, code=2)
    assert "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf" in desk.run(*words)
    assert "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf" in desk.run("confirm", desk.guest.ssh)
    assert not desk.guest.try_in("test", "-e", "/etc/elsewhere")


def test_a_variable_without_a_value_gets_one_and_loses_it(desk):
    assert desk.guest.sql("SELECT @@GLOBAL.log_slow_verbosity") == ""
    desk.apply('[mysqld]\nlog_slow_verbosity = "query_plan,explain"\n')
    assert desk.guest.sql("SELECT @@GLOBAL.log_slow_verbosity") == "query_plan,explain"
    desk.run("rollback", desk.guest.ssh)
    assert desk.guest.sql("SELECT @@GLOBAL.log_slow_verbosity") == ""


@pytest.mark.parametrize("desk", ["mariadb", "mysql"], indirect=True)
def test_an_account_that_may_set_variables_suffices(desk):
    """As docs/guide/apply.md has it."""
    guide = (ROOT / "docs/guide/apply.md").read_text()
    flavour = "MariaDB" if "Maria" in desk.guest.sql("SELECT VERSION()") else "MySQL"
    ((rights,),) = [re.findall(rf"{flavour} .*: `(GRANT [^`]*)`", guide)]
    desk.guest.sql(f"CREATE USER keeper@localhost IDENTIFIED BY 'k'; {rights} TO keeper@localhost")
    login = "[client]\nuser = keeper\npassword = k\n"
    desk.guest.inside("install", "-m", "600", "/dev/stdin", "/root/keeper.cnf", stdin=login)
    values = desk.values()
    desk.apply(HOT, "--server", "/root/keeper.cnf")
    assert desk.values() != values
    desk.run("confirm", desk.guest.ssh)
    desk.run("rollback", desk.guest.ssh, "--server", "/root/keeper.cnf")
    assert desk.values() == values


@pytest.mark.parametrize("desk", ["mariadb", "mysql"], indirect=True)
def test_a_variable_that_is_no_option_is_not_kept(desk):
    """The server would not start again."""
    words = desk.apply('[mysqld]\ntime_zone = "+00:00"\n', code=2)
    assert "the server does not take it: " in words
    assert "unknown variable 'time_zone" in words


def test_what_was_confirmed_and_not_stored_is_undone_by_a_rollback(desk):
    values, first = desk.values(), desk.guest.state()
    desk.apply(HOT)
    lease = json.loads(desk.run("status", desk.guest.ssh, "--json"))[0]["lease"]["id"]
    cut = ("strace", "-qq", "-o", "/dev/null", "-e", "inject=rename:signal=KILL")
    desk.guest.inside(*cut, GUARD, "confirm", lease, "--who", "ada", check=False)
    assert desk.leases() == ["confirmed"]
    assert "was confirmed, and is stored" in desk.run("rollback", desk.guest.ssh)
    assert desk.values() == values
    desk.run("rollback", desk.guest.ssh, "--forget")
    assert desk.guest.state() == first


def test_a_decision_that_is_not_durable_is_none(desk):
    desk.apply(HOT)
    lease = json.loads(desk.run("status", desk.guest.ssh, "--json"))[0]["lease"]["id"]
    fails = ("strace", "-qq", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO")
    desk.guest.inside(*fails, GUARD, "confirm", lease, "--who", "ada", check=False)
    assert desk.leases() == ["trial"]


@pytest.mark.parametrize("change", ["chmod 2775 /usr/local", "chmod 777 /usr/local/libexec"])
def test_the_guard_is_not_put_where_others_could_replace_it(desk, change):
    desk.guest.inside("mkdir", "-p", "/usr/local/libexec")
    desk.guest.inside("sh", "-c", change)
    place = change.rpartition(" ")[2]
    mode = desk.guest.inside("stat", "-c", "%a", place)
    assert "can be written to by other users" in desk.apply(HOT, code=4)
    assert desk.guest.inside("stat", "-c", "%a", place) == mode


def test_what_an_operator_has_set_during_a_trial_is_left(desk):
    desk.apply(HOT)
    desk.guest.sql("SET GLOBAL max_connections = 222")
    assert "max_connections: somebody has changed it" in desk.run("confirm", desk.guest.ssh, code=4)
    assert "max_connections" in desk.run("rollback", desk.guest.ssh, code=3)
    assert desk.guest.sql("SELECT @@max_connections, @@innodb_io_capacity") == "222\t200"


def test_a_file_that_an_operator_has_edited_is_not_replaced(desk):
    desk.apply(HOT)
    desk.run("confirm", desk.guest.ssh)
    path = desk.guest.root / "etc/mysql/mariadb.conf.d/zz-mydyno.cnf"
    path.write_text(path.read_text() + "sort_buffer_size = 1M\n")
    assert "zz-mydyno.cnf: somebody has changed it" in desk.run("rollback", desk.guest.ssh, code=4)
    assert "sort_buffer_size" in path.read_text()
    assert "not as it is kept" in desk.guest.inside(GUARD, "verify", check=False)


def test_a_server_that_does_not_start_is_started_as_it_was(desk):
    first, values = desk.guest.state(), desk.values()
    bad = '[mysqld]\ninit_file = "/nonexistent"\n'
    words = desk.apply(bad, code=3)
    assert "does not start" in words
    assert "everything was restored" in words
    assert "Errcode: 2" in words, "the log's last lines"
    assert desk.values() == values
    desk.run("rollback", desk.guest.ssh, "--forget")
    assert desk.guest.state() == first


CONNECTED = "SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'"
NO_LOG = COLD.replace(
    "[limits]", 'slow_query_log = 1\nslow_query_log_file = "/nonexistent/slow"\n[limits]'
)


@pytest.mark.parametrize(("desk", "log"), [("mariadb", "file"), ("mysql", "")], indirect=["desk"])
def test_a_server_that_logs_new_errors_is_started_as_it_was(desk, log):
    if log:
        options = desk.guest.root / "etc/mysql/mariadb.conf.d/99-log.cnf"
        options.write_text("[mysqld]\nlog_error = error.log\n")
        desk.guest.inside("systemctl", "restart", "mariadb")
        until(desk.guest.answers)
    first, values = desk.guest.state(), desk.values()
    printed = desk.apply(NO_LOG, code=3)
    assert "logs what it did not log before:\n" in printed
    assert "Could not use /nonexistent/slow" in printed
    assert "everything was restored" in printed
    desk.run("rollback", desk.guest.ssh, "--forget")
    assert (desk.guest.state(), desk.values()) == (first, values)


@pytest.mark.parametrize(
    ("client", "code"),
    [("sleep 300 | mariadb", 3), ("while :; do mariadb -e 'DO SLEEP(1)'; sleep 0.1; done", 0)],
)
def test_clients_that_do_not_come_back_end_a_trial(desk, client, code):
    values = desk.values()
    script = f"for n in $(seq 12); do ({client}) & done; wait"
    with subprocess.Popen(desk.guest.argv("sh", "-c", script), stderr=subprocess.DEVNULL) as crowd:
        until(lambda: int(desk.guest.sql(CONNECTED)) > 12)
        printed = desk.apply(COLD, code=code)
        crowd.kill()
    if code:
        assert "0 of 12 clients came back in 30 s" in printed
        assert desk.values() == values
    else:
        assert desk.leases() == ["trial"]


def test_one_trial_at_a_time_and_the_other_is_named(desk):
    desk.apply(HOT)
    assert "is on trial there since it was begun by" in desk.apply(COLD, code=4)
    desk.run("confirm", desk.guest.ssh, "--extend", "2h")
    assert re.search(r"on trial, (119|120) min left", desk.run("status", desk.guest.ssh))


def test_a_change_that_cuts_the_connection_is_restored(desk):
    """With arp_ignore = 8 the host answers no neighbour: who is not connected cannot connect."""
    desk.guest.inside("sysctl", "-w", "net.ipv4.conf.all.arp_ignore=0")
    request = '[kernel]\n"sysctl.net.ipv4.conf.all.arp_ignore" = 8\n'
    words = ("--to", desk.guest.ssh, "--yes-to", desk.guest.name, "--lease", "10s")
    process = subprocess.Popen(
        [MYDYNO, "apply", desk.file(request), *words], env=desk.env, stderr=subprocess.PIPE
    )
    until(lambda: desk.guest.inside("cat", "/proc/sys/net/ipv4/conf/all/arp_ignore") == "8\n", 60)
    run("ip", "neigh", "flush", "dev", desk.guest.link)
    began = time.monotonic()
    until(lambda: desk.guest.inside("cat", "/proc/sys/net/ipv4/conf/all/arp_ignore") == "0\n", 30)
    assert time.monotonic() - began < 10 + 10
    process.kill()
    process.communicate()
    until(lambda: desk.leases() == ["reverted"])


def test_a_full_disk_stops_before_anything_is_changed(desk):
    values = desk.values()
    desk.guest.install()
    folder = "/var/lib/mydyno/lease"
    desk.guest.inside("install", "-d", "-m", "700", "/var/lib/mydyno", folder)
    small = ("mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "small", folder)
    full = ("sh", "-c", f"cat /dev/zero >{folder}/filler 2>/dev/null; :")
    desk.guest.inside(*small)
    desk.guest.inside(*full)
    assert "No space" in desk.apply(HOT, code=3)
    assert desk.values() == values


@pytest.mark.parametrize("text", [HOT, COLD])
def test_a_disk_that_went_read_only_does_not_stop_a_rollback(desk, text):
    values, folder = desk.values(), "/var/lib/mydyno/lease"
    desk.apply(text)
    desk.guest.inside("mount", "--bind", folder, folder)
    desk.guest.inside("mount", "-o", "remount,bind,ro", folder)
    assert "Read-only file system" in desk.run("rollback", desk.guest.ssh, code=3)
    assert desk.values() == values, "restored, though it cannot be recorded"
    run_of_unit = desk.guest.inside("systemctl", "show", "-p", "InvocationID", "mariadb")
    desk.run("rollback", desk.guest.ssh, code=3)
    assert desk.guest.inside("systemctl", "show", "-p", "InvocationID", "mariadb") == run_of_unit
    desk.guest.inside("umount", folder)
    desk.run("rollback", desk.guest.ssh)
    assert desk.leases() == ["reverted"]


def test_a_full_etc_is_found_before_anything_is_decided(desk):
    folder = "/etc/mysql/mariadb.conf.d"
    desk.guest.inside("sh", "-c", f"mount -t tmpfs -o size=16k,mode=755 small {folder}")
    desk.apply(HOT)
    desk.guest.inside("sh", "-c", f"cat /dev/zero >{folder}/filler 2>/dev/null; :")
    assert "No space" in desk.run("confirm", desk.guest.ssh, code=3)
    assert desk.leases() == ["trial"]
    assert not desk.guest.try_in("test", "-e", "/etc/sysctl.d/90-mydyno.conf")


@pytest.mark.parametrize("place", ["/etc/mysql/mariadb.conf.d", "/etc/sysctl.d"])
def test_a_folder_that_others_can_change_is_not_written_to(desk, place):
    desk.apply(HOT)
    desk.guest.inside("chmod", "777", place)
    assert "another user can change it" in desk.run("confirm", desk.guest.ssh, code=4)
    assert desk.leases() == ["trial"]


def test_a_link_in_a_files_place_is_not_followed(desk):
    desk.guest.inside("ln", "-s", "/etc/shadow", "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf")
    before = desk.guest.state()["etc/shadow"]
    desk.apply(HOT, code=4)
    assert desk.guest.state()["etc/shadow"] == before


def test_leases_that_another_user_can_read_are_refused(desk):
    desk.guest.install()
    desk.guest.inside("install", "-d", "-m", "755", "/var/lib/mydyno/lease")
    assert "not a folder of this user alone" in desk.apply(HOT, code=4)


def test_what_is_kept_is_not_forgotten(desk):
    desk.apply(HOT)
    desk.run("confirm", desk.guest.ssh)
    assert "is kept" in desk.run("rollback", desk.guest.ssh, "--forget", code=4)
    with pytest.raises(AssertionError, match="is kept; roll it back first"):
        desk.guest.inside(GUARD, "forget")  # nor by the guard alone
    assert desk.guest.try_in("test", "-x", GUARD)


def test_weaker_durability_takes_the_sentence(desk):
    weaker = "[mysqld]\ninnodb_flush_log_at_trx_commit = 2\n"
    assert "loses the last second of commits" in desk.apply(weaker, code=4)
    allow = ("--allow", "weaker-durability")
    assert "--accept" in desk.apply(weaker, *allow, "--accept", "yes", code=4)
    sentence = "a crash loses the last second of commits or more"
    desk.apply(weaker, *allow, "--accept", sentence)
    assert desk.guest.sql("SELECT @@innodb_flush_log_at_trx_commit") == "2"


def test_production_that_is_worse_is_not_confirmed(desk):
    desk.apply(HOT)
    lease = json.loads(desk.run("status", desk.guest.ssh, "--json"))[0]["lease"]["id"]
    desk.guest.inside(GUARD, "judge", lease, "revert", "1.2 [1.1..1.3] of before")
    assert "production shows that it is worse" in desk.run("confirm", desk.guest.ssh, code=4)
    desk.guest.inside(GUARD, "judge", lease, "keep", "0.9 [0.8..1.0] of before")
    desk.run("confirm", desk.guest.ssh)


def test_a_manager_of_the_server_is_not_surprised_by_a_restart(desk):
    desk.guest.inside("sh", "-c", "cp /bin/sleep /usr/local/bin/pacemakerd")
    desk.guest.inside("systemd-run", "--unit=manager", "/usr/local/bin/pacemakerd", "1000")
    assert "Pacemaker manages the server" in desk.apply(COLD, code=4)
    assert "warning: Pacemaker" in desk.apply(HOT)


def test_a_server_that_no_unit_runs_is_refused(desk):
    desk.guest.inside("systemctl", "stop", "mariadb")
    by_hand = ("mariadbd", "--user=mysql", "--socket=/run/mysqld/mysqld.sock")
    desk.guest.inside("install", "-d", "-o", "mysql", "/run/mysqld")
    process = subprocess.Popen(desk.guest.argv(*by_hand), stderr=subprocess.DEVNULL)
    until(desk.guest.answers)
    assert "no unit of systemd runs the server" in desk.apply(HOT, code=4)
    desk.guest.end()
    process.wait()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "is open here since it was begun by"),
        ({"trial": [file("/etc/motd", "x")]}, "nothing of a trial is below /etc"),
        ({"stored": [file("/root/.bashrc", "x")]}, "not a place that a lease may change"),
        ({"stored": [file("/etc/../root/x", "x")]}, "not a place that a lease may change"),
        ({"seconds": 1}, "a trial takes from"),
        ({"id": "../x"}, "not an id of a lease"),
    ],
)
def test_the_guard_itself_refuses_what_no_command_would_send(desk, changes, words):
    desk.apply(HOT)
    with pytest.raises(AssertionError, match=re.escape(words)):
        desk.guest.inside(GUARD, "begin", stdin=json.dumps({**lease("hot", 2), **changes}))


def test_a_package_is_not_removed_from_a_host_with_a_lease_on_trial(desk):
    script = (ROOT / "packaging/scripts/before-removal.sh").read_text()
    remove = ("sh", "-s", "remove")
    desk.guest.inside(*remove, stdin=script)
    desk.apply(HOT)
    with pytest.raises(AssertionError, match="a lease is on trial here"):
        desk.guest.inside(*remove, stdin=script)
    desk.run("rollback", desk.guest.ssh)
    desk.guest.inside(*remove, stdin=script)


def test_the_log_has_who_when_and_why(desk):
    desk.apply(HOT, "--why", "ticket 4711")
    desk.run("rollback", desk.guest.ssh)
    lines = desk.guest.inside("journalctl", "-t", "mydyno", "-o", "cat", "--no-pager")
    assert re.search(r"begin: lease \S+ by \w+@\S+: ticket 4711", lines)
    assert "reverted: lease" in lines


def test_bad_input_names_the_place_and_the_next_step(desk):
    for text, words, code in (
        ("[mysqld]\nno_such = 1\n", "has no such variable", 2),
        ("[raid]\nlevel = 0\n", "cannot be changed on a host that is in use", 4),
        ("", "sets nothing", 2),
        ("[cgroup]\ncpu = '1.5'\n", "write a share of one CPU's time", 2),
        ("[mysqld]\nmax_connections = 151\n", "every setting is in force there already", 2),
        ("[mysqld]\nmax_connections = [1]\n", "a list or date is no setting", 2),
        ("[mysqld]\nlog_bin = 'a b'\n[limits]\nnofile = 20000\n", "", None),
    ):
        if code is not None:
            assert words in desk.apply(text, code=code), text
    assert "the host's name is" in desk.run(
        "apply", desk.file(HOT), "--to", desk.guest.ssh, "--yes-to", "other", code=4
    )
    assert "add --yes-to" in desk.run("apply", desk.file(HOT), "--to", desk.guest.ssh, code=2)
    assert "from 10s to 7d" in desk.apply(HOT, lease="1s", code=2)
    assert "nothing is on trial" in desk.run("confirm", desk.guest.ssh, code=2)
