"""What a page leaves out: names of hosts and users, paths, addresses, literals; passwords."""

import pytest
from msgspec.structs import replace

from golden.report.campaigns import simulated
from mydyno.report.html import render_html
from mydyno.report.redact import Redactor, secrets_hidden, spec_without_literals

_NAMES = ("db7", "db7.acme.example", "alice", "root", "vm")
_SPEC = """# for alice on db7
[stack]
host = "ssh://alice@db7.acme.example:2222"
data = "/srv/acme data/mysql"
[workloads.w]
tool = "command"
argv = ["/home/alice/run.sh", "--password=hunter2", "-e", "SELECT 1 FROM t WHERE who = 'Bob'"]
password = "hunter2"
"""
_PRIVATE = ("db7", "acme", "alice", "/srv", "/home", "10.9.8.7", "Bob", "SECRETSERIAL", "f00d::7")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    made = simulated("failing", tmp_path_factory.mktemp("run"))
    lost = next(i for i, trial in enumerate(made.trials) if trial.status != "ok")
    error = (
        "db7 mysqld: /srv/acme data/mysql/db7.err: Duplicate entry 'Bob' for key 'PRIMARY'\n"
        "FATAL: query INSERT INTO t VALUES (7, 'Bob')\nAccess denied for user 'alice'@'10.9.8.7'"
    )
    trials = list(made.trials)
    trials[lost] = replace(trials[lost], error=error)
    facts = {
        "host": {"name": "db7", "disk": "/dev/disk/by-id/nvme-SECRETSERIAL"},
        "disk": {"model": "X, serial number SECRETSERIAL", "address": "10.9.8.7, f00d::7"},
    }
    return replace(
        made,
        trials=trials,
        facts=facts,
        names=list(_NAMES),
        spec=_SPEC,
        lab="a directory below /srv/acme on db7",
        command="mydyno run /home/alice/acme.toml --set stack.data=/srv/acme -o /home/alice/out",
        settings={"stack.data": "/srv/acme"},
        versions={"server": "/usr/sbin/mysqld Ver 8.0.36 on db7"},
        question="Does it help alice@acme.example?",
    )


@pytest.mark.parametrize("private", _PRIVATE)
def test_the_page_has_no_name_path_address_or_literal(result, private):
    assert private not in render_html(result)


def test_names_are_shown_where_asked_for_but_never_a_password(result):
    page = render_html(result, names=True)
    assert all(private in page for private in _PRIVATE)
    assert "hunter2" not in page
    assert "hunter2" not in render_html(result)


def test_what_identifies_nobody_stays(result):
    page = render_html(result)
    for text in ("/usr/sbin/mysqld Ver 8.0.36", "Duplicate entry", "INSERT INTO t VALUES (?, ?)"):
        assert text in page.replace("&#39;", "'")


@pytest.mark.parametrize(
    "text",
    [
        "990 /s and 1.2 k/s at 12:34:56, 10.11.19-MariaDB on 6.1.0-18",
        "db/mysqld.sync_binlog and kernel.sysctl.net.core.somaxconn, vm.swappiness",
        "fixed: 2 s of warm-up, then 5 s measured; select what you like where it helps 3 times",
        "/usr/bin/python3 with /sys/block/nvme0n1/queue/scheduler, /dev/nvme0n1 and /proc/stat",
        "psi.cpu, psi.io and psi.memory",
        "127.0.0.1:3306, see https://dev.mysql.com/doc/ and std::string",
    ],
)
def test_plain_text_is_not_changed(text):
    assert Redactor(_NAMES)(text) == text


def test_one_name_has_one_token():
    redact = Redactor(["db7"])
    assert redact("/a/b, /c/d, /a/b.") == "[path], [path 2], [path]."
    assert redact("at 10.0.0.1 and 10.0.0.2 and 10.0.0.1") == (
        "at [address] and [address 2] and [address]"
    )
    assert redact("DB7-bin.000001 of db7") == "[name]-bin.000001 of [name]"


def test_a_user_and_a_host_of_an_address():
    redact = Redactor()
    assert redact("ssh://alice@far:22/x") == "ssh://[host]:22/x"
    assert redact("mail a.b@c.org") == "mail [user]@[host 2]"
    assert redact("db.acme.internal is down") == "[host 3] is down"
    assert redact("acme.psi.io, acme-psi.io") == "[host 4], [host 5]"


@pytest.mark.parametrize("text", ["password = 'a b'", "--password=a", "MYSQL_PWD=a", "passwd: a"])
def test_passwords_are_hidden(text):
    assert "a" not in secrets_hidden(text).partition("[hidden]")[2]
    assert "[hidden]" in secrets_hidden(text)


def test_statements_of_a_spec_keep_their_shape():
    hexadecimal = 'q = "SELECT a FROM t WHERE b = 0xDEADBEEF AND c > 1e9 AND d = 0b101"\n'
    assert spec_without_literals(hexadecimal) == (
        'q = "SELECT a FROM t WHERE b = ? AND c > ? AND d = ?"\n'
    )
    spec = 'q = "SELECT a FROM t WHERE b = \'x\' AND c = 5"\nn = 7\nm = """\nselect 1,\n \'y\'"""\n'
    want = 'q = "SELECT a FROM t WHERE b = ? AND c = ?"\nn = 7\nm = """\nselect ?,\n ?"""\n'
    assert spec_without_literals(spec) == want
