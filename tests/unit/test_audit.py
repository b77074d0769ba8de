"""The language of rules, option files, facts and memory of an audit."""

import itertools
import math
import random
from datetime import date
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.audit.campaign_text import FOUND, as_found, campaign_text
from mydyno.audit.expression import LackingError, parsed, steps
from mydyno.audit.facts import ServerEvidence, facts
from mydyno.audit.findings import Remembered, evaluate, remembered
from mydyno.audit.option_files import every, groups, number, written
from mydyno.audit.rules import counters, read_rule, rules
from mydyno.campaign.spec import decode
from mydyno.cli import audit as command
from mydyno.model import SpecError
from mydyno.report.findings import render_audit
from mydyno.stack.flavours import matches
from mydyno.stats.result import Comparison, Ratio, Row

VALUES = {"var.pool": 4.0 * 2**30, "rate.redo": 2e6, "var.mode": "O_DIRECT", "fact.zero": 0.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("900 * rate.redo < 2 * GiB", 1.0),
        ("var.mode == 'o_direct'", 1.0),
        ("var.mode in ('fsync', 'O_DIRECT') and not has(var.other)", 1.0),
        ("var.pool not in (0, 1)", 1.0),
        ("steps(clamp(900 * rate.redo, 512 * MiB, 16 * GiB))", 1.5 * 2**30),
        ("1 < 2 < 3 or var.unknown", 1.0),
        ("0 and var.unknown", 0.0),
        ("max(-3, min(2, 1))", 1.0),
    ],
)
def test_an_expression_has_a_value(text, value):
    assert parsed(text, "here").value(VALUES) == value


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("var.unknown > 1", "var.unknown"),
        ("rate.redo / fact.zero > 1", "division by zero"),
        ("var.mode > 3", "text and a number"),
        ("var.mode * 2", "as a number"),
    ],
)
def test_what_cannot_be_evaluated_names_the_reason(text, lacks):
    with pytest.raises(LackingError, match=lacks):
        parsed(text, "here").value(VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')", "open('/etc/passwd')", "var.x.__class__", "[1][0]", "lambda: 1", "var",
        "f'{var.x}'", "1 if var.x else 2", "var.x ** 9", "True", "x := 1", "min(1)", "(1, 2)[0]",
        "var.x in [1]", "var.x is 3", "var.x == (1, 2)", "has(3)", "min(*var.x)", "9" * 1001, "1 +",
    ],
)  # fmt: skip
def test_nothing_else_is_an_expression(text):
    with pytest.raises(SpecError, match=r"rule\.toml: when"):
        parsed(text, "rule.toml: when")


@given(st.text(max_size=60))
def test_any_text_is_refused_or_evaluated(text):
    try:
        parsed(text, "here").value(VALUES)
    except (SpecError, LackingError):
        return


@given(st.floats(1, 1e15))
def test_steps_are_a_quarter_apart_at_most(value):
    found = steps(value)
    assert value / 1.25 <= found <= value
    assert math.log2(found).is_integer() or found / 2 ** math.floor(math.log2(found)) in {
        1.25,
        1.5,
        1.75,
    }


def test_a_range_names_its_flavour():
    assert matches("mysql >= 8.0 < 8.4", "mysql", (8, 0, 33))
    assert matches("mysql >= 8.0", "percona", (8, 0, 33))
    assert not matches("mysql >= 5.6", "mariadb", (10, 11, 19))
    assert not matches("mysql >= 8.0 < 8.4", "mysql", (8, 4, 0))
    with pytest.raises(SpecError, match=r'write "mariadb" or "mysql >= 8\.0'):
        matches(">= 8.0", "mysql", (8, 0, 0))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("message = 3", "rule-x.toml"),
        ('mesage = "x"', "mesage"),
        ("", "missing required field"),
    ],
)
def test_a_rule_is_read_strictly(text, wrong):
    with pytest.raises(SpecError, match=wrong):
        read_rule("rule-x", text.encode())


MAIN = """
[client]
password = secret
[mysqld]
innodb-buffer-pool-size = 4G   # of 16
skip-name-resolve
skip-external-locking
disable-log-bin
loose_query_cache_size = "16M"
!includedir /etc/mysql/conf.d
[mariadb-10.11]
max_connections = 300
[mariadb-10.6]
max_connections = 100
[mysqld]
!include /etc/mysql/last.cnf
"""


def test_option_files_are_read_in_order_with_their_places():
    texts = {
        "/etc/my.cnf": MAIN,
        "/etc/mysql/conf.d/b.cnf": "[mysqld]\nsync_binlog=1\n",
        "/etc/mysql/conf.d/a.cnf": "[mariadb]\nsync_binlog=0\n!include /etc/my.cnf\n",
        "/etc/mysql/conf.d/notes.txt": "[mysqld]\nsync_binlog=7\n",
        "/etc/mysql/last.cnf": "[server]\nmax_connections = 400\n",
    }
    found = every(("/etc/my.cnf", "/none"), texts, groups("mariadb", (10, 11, 19)))
    assert [(o.name, o.value, o.where) for o in found] == [
        ("innodb_buffer_pool_size", "4G", "/etc/my.cnf:5"),
        ("skip_name_resolve", "ON", "/etc/my.cnf:6"),
        ("skip_external_locking", "ON", "/etc/my.cnf:7"),
        ("log_bin", "OFF", "/etc/my.cnf:8"),
        ("query_cache_size", "16M", "/etc/my.cnf:9"),
        ("sync_binlog", "0", "/etc/mysql/conf.d/a.cnf:2"),
        ("sync_binlog", "1", "/etc/mysql/conf.d/b.cnf:2"),
        ("max_connections", "300", "/etc/my.cnf:12"),
        ("max_connections", "400", "/etc/mysql/last.cnf:2"),
    ]


@pytest.mark.parametrize(
    ("line", "name", "value", "loose"),
    [
        ("max_connections = 500\t# peak", "max_connections", "500", False),
        ("sync_binlog=1# x", "sync_binlog", "1", False),
        ("skip-name-resolve # x", "skip_name_resolve", "ON", False),
        ("init_connect = 'SET @a = \\'#1\\''  # x", "init_connect", "SET @a = \\'#1\\'", False),
        ("loose_query_cache_size=0", "query_cache_size", "0", True),
        ("maximum_sort_buffer_size=1M", "maximum_sort_buffer_size", "1M", False),  # its bound
    ],
)
def test_a_line_of_an_option_file(line, name, value, loose):
    (found,) = every(("/f",), {"/f": f"[mysqld]\n{line}\n"}, groups("mysql", (8, 0, 33)))
    assert (found.name, found.value, found.loose) == (name, value, loose)


def test_an_instance_reads_the_groups_of_its_suffix_too():
    """As `mariadb@one.service` has one, and Galera's files of Debian a group of their own."""
    text = "[mysqld]\na=1\n[mysqld.one]\na=2\n[galera]\na=3\n[mysqld.two]\na=4\n"
    found = every(("/f",), {"/f": text}, groups("mariadb", (10, 11, 19), ".one"))
    assert [option.value for option in found] == ["1", "2", "3"]
    assert [o.value for o in every(("/f",), {"/f": text}, groups("mysql", (8, 0, 33)))] == ["1"]


@pytest.mark.parametrize(
    ("text", "value"), [("64M", 2.0**26), ("on", 1.0), ("-1", -1.0), ("0.5", 0.5), ("x", None)]
)
def test_numbers_of_option_files(text, value):
    assert number(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [(2**29, "512M"), (2**16, "64K"), (2000, "2000"), (4096, "4096"), (0, "0"), (0.5, "0.5")],
)
def test_numbers_for_option_files(value, text):
    assert written(value) == text


VARIABLES = {
    "innodb_buffer_pool_size": str(2**30), "innodb_log_file_size": str(48 * 2**20),
    "innodb_log_files_in_group": "2", "max_connections": "200", "sort_buffer_size": str(2**26),
    "join_buffer_size": "262144", "sync_binlog": "0", "log_bin": "ON", "hostname": "db1",
    "innodb_flush_log_at_trx_commit": "1", "general_log": "OFF", "datadir": "/var/lib/mysql/",
    "innodb_doublewrite": "ON", "innodb_buffer_pool_chunk_size": str(2**27),
}  # fmt: skip
BEFORE = {"Questions": "1000", "Com_select": "700", "Com_update": "300", "Uptime": "90000",
          "Innodb_os_log_written": "0", "Aborted_clients": "9", "Sort_rows": "5"}  # fmt: skip
AFTER = {"Questions": "61000", "Com_select": "42700", "Com_update": "18300", "Uptime": "90060",
         "Innodb_os_log_written": "120000000", "Aborted_clients": "2", "Sort_rows": "50",
         "Threads_connected": "40", "Max_used_connections": "90",
         "Innodb_buffer_pool_pages_total": "65536", "Innodb_buffer_pool_pages_free": "6553",
         "Innodb_page_size": "16384"}  # fmt: skip
HOST = {
    "meminfo": "MemTotal:       16777216 kB\nSwapTotal: 0 kB",
    "process": "VmRSS:\t 1400000 kB\nVmHWM:\t 1500000 kB",
    "limits": "Max open files            1024                 524288               files",
    "sysctl": "vm_swappiness=60\nnet_core_somaxconn=4096",
    "system": "thp=always [madvise] never\ncores=8",
    "queue": "name=sdc\nscheduler=none [mq-deadline] kyber\nread_ahead_kb=128",
    "mount": "ext4 rw,relatime,nobarrier,commit=30",
    "fstab": "defaults,noatime,barrier=1",
    "maps": "jemalloc",
    "unit": "mariadb.service",
    "limits_conf": "mysql soft nofile 65535",
    "sysctl_files": "/etc/sysctl.d/1.conf\tvm.swappiness\t1\t60\n/x.conf\tvm.dirty_ratio\t20\t20",
    "modes": "/etc/my.cnf=644\n/etc/zz.cnf=666",
    "cgroup": "memory_max=8589934592",
}  # fmt: skip


def evidence(**changed):
    given = {
        "name": "db1", "flavour": "mariadb", "version": (10, 6, 4), "text": "10.6.4 (MariaDB)",
        "variables": VARIABLES, "looks": (BEFORE, AFTER), "seconds": 60.0,
        "running": (1.0, 5.0, 9.0), "data_bytes": 5e9, "start": ("/etc/my.cnf",),
        "origins": {"max_connections": ("dynamic", ""), "sync_binlog": ("default", "")},
        "files": {"/etc/my.cnf": "[mysqld]\nmax_connections=500\nsort_buffer_size=64M\n"
                  "innodb_buffer_pool_size=1000M\nthread_concurrency=8\ngeneral_log=1\n"},
        "host": HOST,
    }  # fmt: skip
    return ServerEvidence(**{**given, **changed})


def test_facts_are_rates_shares_and_what_the_host_printed():
    known = facts(evidence())
    values = known.values
    assert values["rate.questions"] == 1000.0
    assert "rate.aborted_clients" not in values  # it was reset
    assert values["fact.read_share"] == pytest.approx(0.7)
    assert values["fact.redo"] == 96 * 2**20
    assert values["fact.running_peak"] == 8.0
    assert (values["host.thp"], values["host.cores"], values["host.memory"]) == (
        "madvise",
        8.0,
        2.0**34,
    )
    assert (values["disk.scheduler"], values["disk.name"]) == ("mq-deadline", "sdc")
    assert (values["mount.type"], values["mount.nobarrier"], values["mount.commit"]) == (
        "ext4",
        1.0,
        30.0,
    )
    assert (values["limit.nofile"], values["process.allocator"]) == (1024.0, "jemalloc")
    assert values["fact.changed_list"] == (
        "/etc/my.cnf:2 sets max_connections = 500, in force is 200, changed at run time"
    )
    assert values["fact.ignored_list"] == "/etc/my.cnf:6 sets general_log = 1, in force is OFF"
    assert values["fact.dead"] == 0  # MariaDB starts with thread_concurrency, and ignores it
    older = facts(evidence(flavour="mysql", version=(5, 6, 51))).values
    assert older["fact.dead_list"] == "thread_concurrency (/etc/my.cnf:5, removed in 5.7)"
    assert facts(evidence(flavour="mysql", version=(5, 7, 22))).values["fact.dead"] == 0
    assert (
        values["fact.sysctl_list"] == "/etc/sysctl.d/1.conf sets vm.swappiness = 1, in force is 60"
    )
    assert (values["fact.unread_list"], values["fact.fstab_list"]) == (
        "/etc/zz.cnf",
        "noatime; barrier=1",
    )
    assert known.where["max_connections"] == "set at run time"
    assert known.where["sort_buffer_size"] == "/etc/my.cnf:3"
    assert known.memory.limit == 8 * 2**30


def test_a_loose_option_does_not_stop_a_later_release():
    files = {
        "/etc/my.cnf": "[mysqld]\nquery_cache_type=0\n"
        "loose_query_cache_type=0\nloose_query_cache_size=0\n"
    }
    found = facts(evidence(flavour="mysql", version=(5, 7, 22), files=files)).values
    assert found["fact.dead_list"] == "query_cache_type (/etc/my.cnf:2, removed in 8.0)"


def test_the_redo_log_of_mysql_is_what_it_was_made_of_the_old_options():
    """It goes on showing the default capacity beside innodb_log_file_size = 2G."""
    variables = {**VARIABLES, "innodb_redo_log_capacity": "104857600"}
    looks = (BEFORE, {**AFTER, "Innodb_redo_log_capacity_resized": str(4 << 30)})
    found = facts(evidence(version=(8, 0, 33), variables=variables, looks=looks)).values
    assert found["fact.redo"] == 4 << 30


@pytest.mark.parametrize(
    ("replica", "by_gtid"),
    [
        ({"slave_io_running": "Yes", "using_gtid": "Slave_Pos"}, True),
        ({"slave_io_running": "Yes", "using_gtid": "No"}, False),
        ({"a.replica_io_running": "Yes", "a.auto_position": "1", "b.auto_position": "0"}, False),
        ({"slave_io_running": "Yes"}, False),
    ],
)
def test_a_replica_that_finds_its_position_by_gtid_needs_no_relay_log(replica, by_gtid):
    assert ("fact.gtid_position" in facts(evidence(replica=replica)).values) == by_gtid
    found = evaluate(
        evidence(), facts(evidence(replica=replica, variables={"relay_log_recovery": "OFF"})),
        rules(), date(2026, 11, 26),
    )  # fmt: skip
    assert ("relay-log-unrecovered" in {one.rule for one in found.findings}) != by_gtid


def test_an_allocator_that_is_part_of_the_program_is_in_no_maps():
    variables = {**VARIABLES, "version_malloc_library": "bundled jemalloc"}
    host = {**HOST, "maps": ""}
    assert facts(evidence(variables=variables, host=host)).values["process.allocator"] == "jemalloc"
    assert facts(evidence(host=host)).values["process.allocator"] == "glibc"


def test_what_a_process_has_for_itself_is_without_mapped_files_and_with_huge_pages():
    status = "VmRSS:\t 900 kB\nRssAnon:\t 500 kB\nRssFile:\t 390 kB\nRssShmem:\t 10 kB\n"
    host = {**HOST, "process": f"{status}HugetlbPages:\t 2048 kB"}
    assert facts(evidence(host=host)).values["process.rss"] == 1024.0 * (500 + 10 + 2048)


def test_before_mysql_8_the_server_does_not_show_what_set_a_value():
    known = facts(evidence(flavour="mysql", version=(5, 7, 22), origins={})).values
    assert known["fact.ignored"] == 0
    assert "changed at run time, or limited by the server" in known["fact.changed_list"]


# Each of these fires with the value that is there, however large that is.
LARGE = {
    "table-cache-small": (
        ("table_open_cache", 1e5),
        {"rate.opened_tables": 9.0, "status.open_tables": 1e5},
    ),
    "tmp-tables-on-disk": (
        ("tmp_table_size", 2.0**29),
        {"fact.disk_tmp_share": 0.5, "rate.created_tmp_disk_tables": 9.0},
    ),
    "binlog-cache-spills": (
        ("binlog_cache_size", 2.0**23),
        {"fact.binlog_spill_share": 0.5, "rate.binlog_cache_disk_use": 9.0},
    ),
    "log-buffer-waits": (("innodb_log_buffer_size", 2.0**29), {"rate.innodb_log_waits": 9.0}),
    "thread-cache-small": (
        ("thread_cache_size", 1500.0),
        {"rate.threads_created": 9.0, "status.max_used_connections": 2000.0},
    ),
    "back-log-small": (("back_log", 5000.0), {"rate.connections": 4000.0}),
    "pool-small": (
        ("innodb_buffer_pool_size", 8.0 * 2**30),
        {
            "rate.innodb_buffer_pool_reads": 99.0,
            "fact.data": 9.0 * 2**30,
            "memory.limit": 2.0**36,
        },
    ),
}


@pytest.mark.parametrize("name", sorted(LARGE))
def test_the_cure_for_too_small_is_larger(name):
    (variable, present), known = LARGE[name]
    values = {f"var.{variable}": present, "fact.watched": 60.0, **known}
    (found,) = evaluate(
        evidence(), SimpleNamespace(values=values, where={}, memory=SimpleNamespace(limit=2.0**36)),
        {name: rules()[name]}, date(2026, 11, 26),
    ).findings  # fmt: skip
    proposed = [number(one.settings[f"mysqld.{variable}"]) for one in found.proposals]
    assert proposed
    assert min(proposed) > present


def test_a_remote_server_has_no_facts_of_its_host():
    values = facts(evidence(host={}, files={}, start=())).values
    assert not [name for name in values if name.startswith(("host.", "disk.", "limit.", "mount."))]
    found = evaluate(evidence(), facts(evidence(host={})), rules(), date(2026, 11, 26))
    lacking = {one.rule: one.needs for one in found.unevaluated}
    assert lacking["thp-always"] == "host.thp"
    assert lacking["queue-scheduler"] == "disk.scheduler"


def test_buffers_count_for_connections_at_work_only():
    """Not max_connections times all buffers: 200 * 64 MiB are not promised to 8 that sort."""
    memory = facts(evidence()).memory
    assert memory.promised < 4 * 2**30
    assert memory.worst > 200 * 2**26
    assert memory.peak == 1500000 * 1024
    assert memory.now == 1400000 * 1024


def test_the_spec_of_an_audit_is_one_that_is_read():
    seen = evidence()
    known = facts(seen)
    found = evaluate(seen, known, rules(), date(2026, 11, 26))
    text = campaign_text(seen, known, found)
    spec = decode(text, "db1.toml")
    proposed = {p.name for f in found.findings for p in f.proposals}
    assert spec.bundles.keys() >= {FOUND, *proposed}  # and one more where two rules differ in it
    assert len(spec.design.rungs) == len(spec.bundles)
    assert as_found(seen, known) == {
        "mysqld.general_log": "OFF",
        "mysqld.innodb_buffer_pool_size": "1G",
        "mysqld.max_connections": "200",
        "mysqld.sort_buffer_size": "64M",
        "alloc.library": "jemalloc",
    }
    assert f'baseline = "{FOUND}"' in text
    assert 'script = "oltp_read_write"' in text


def test_a_week_of_hourly_audits_changes_at_most_one_proposal_of_a_rule():
    """Load that moves by 30 % up and down, with its daily curve: the advice does not flap."""
    chance = random.Random(18)
    seen: dict[str, list[str]] = {}
    before: dict[str, Remembered] = {}
    for hour in range(7 * 24):
        load = (1 + 0.18 * math.sin(2 * math.pi * hour / 24)) * chance.uniform(0.9, 1.1)
        after = {
            name: str(int(BEFORE.get(name, 0)) + (int(value) - int(BEFORE.get(name, 0))) * load)
            if name in {"Questions", "Com_select", "Com_update", "Innodb_os_log_written"}
            else value
            for name, value in AFTER.items()
        }
        running = tuple(max(1.0, round(n * load)) for n in (1, 60, 90, 120))
        variables = {**VARIABLES, "thread_handling": "one-thread-per-connection"}
        one = evidence(looks=(BEFORE, after), running=running, variables=variables)
        found = evaluate(one, facts(one), rules(), date(2026, 11, 26), before)
        before = remembered(found)
        for finding in found.findings:
            for proposal in finding.proposals[:1]:
                seen.setdefault(finding.rule, []).append(proposal.name)
    assert {"redo-small", "thread-pool"} <= seen.keys()
    for rule, names in seen.items():
        changes = sum(a != b for a, b in itertools.pairwise(names))
        assert changes <= 1, (rule, names)
        assert len(names) == 7 * 24, rule  # nor does a finding come and go


def run_with(verdicts):
    """Return what `result` returns of a run with these verdicts."""
    rows = [
        Row(name, "observed", verdict, "same", 6, None, Ratio(1.01, 0.99, 1.03), {})
        for name, verdict in verdicts.items()
    ]
    return SimpleNamespace(comparison=Comparison("audit-db1", "tps", FOUND, 1.0, None, {}, rows))


def test_what_a_campaign_has_tested_is_no_advice_any_more(monkeypatch, tmp_path):
    monkeypatch.setattr(command, "state_folder", lambda *_: tmp_path)
    monkeypatch.setattr(command, "state_place", lambda: tmp_path.parent)
    (tmp_path.parent / "audit").symlink_to(tmp_path)
    seen = evidence()
    known = facts(seen)
    kinds = {one.rule: one.kind for one in command.judged(seen, known).findings}
    assert kinds["queue-scheduler"] == kinds["sort-buffer-cliff"] == "test"
    verdicts = {
        "FOUND": "baseline",
        "FOUND+scheduler=none": "equivalent",
        "FOUND+sort_buffer_size=256K": "reject",
        "FOUND+sort_buffer_size=2M": "adopt",
    }
    monkeypatch.setattr(command, "result", lambda _: run_with(verdicts))
    found = command.judged(seen, known, tmp_path)
    kinds = {one.rule: one.kind for one in found.findings}
    assert kinds["queue-scheduler"] == "tested"
    assert kinds["sort-buffer-cliff"] == "test"  # one of its values is worth it
    text = render_audit("db1", found, 100, unevaluated=False)
    assert "scheduler=none: equivalent, 1.010 [0.990..1.030], by audit-db1" in text
    again = command.judged(seen, known)
    assert {one.rule: one.kind for one in again.findings} == kinds
    larger = evidence(host={**HOST, "cgroup": "memory_max=17179869184"})
    kinds = {one.rule: one.kind for one in command.judged(larger, facts(larger)).findings}
    assert kinds["queue-scheduler"] == "test"  # another shape: nobody knows again
    monkeypatch.setattr(command, "result", lambda _: run_with({"FOUND+x=1": "reject"}))
    with pytest.raises(SpecError, match="decides nothing that this audit proposes"):
        command.judged(seen, known, tmp_path)


def test_peaks_of_history_stand_for_rates():
    """The fastest hour of a month, not the minute that was watched; nor must it be watched then."""
    seen = evidence(
        seconds=0.0, peaks={"innodb_os_log_written": 4e6, "questions": 5.0}, peak_s=2.6e6
    )
    known = facts(seen)
    assert known.values["rate.innodb_os_log_written"] == 4e6
    assert facts(evidence(peaks={"questions": 5.0})).values["rate.questions"] == 1000.0
    found = evaluate(seen, known, {"redo-small": rules()["redo-small"]}, date(2026, 11, 26))
    assert [one.rule for one in found.findings] == ["redo-small"]
    assert "innodb_os_log_written" in counters()


def test_a_share_is_of_one_time():
    """The fastest hour of tables on disk is not one of all tables."""
    looks = ({"Created_tmp_disk_tables": "0", "Created_tmp_tables": "0"},
             {"Created_tmp_disk_tables": "60", "Created_tmp_tables": "1200"})  # fmt: skip
    known = facts(evidence(looks=looks, peaks={"created_tmp_disk_tables": 50.0}))
    assert known.values["fact.disk_tmp_share"] == pytest.approx(0.05)
    assert known.values["rate.created_tmp_disk_tables"] == 50.0


@pytest.mark.parametrize(
    ("option", "present", "differs"),
    [
        ("innodb_buffer_pool_size=1000M", str(1 << 30), False),
        ("innodb_buffer_pool_size=1000M", str(48 << 30), True),
        ("innodb_io_capacity=5000", "1000", True),
        ("open_files_limit=8192", "10000", False),
        ("open_files_limit=65535", "10000", True),
        ("character_set_server=utf8", "utf8mb3", False),
        ("character_set_server=latin1", "utf8mb4", True),
    ],
)
def test_a_value_that_is_not_in_force_differs_by_more_than_its_rounding(option, present, differs):
    variables = {option.partition("=")[0]: present, "innodb_buffer_pool_chunk_size": str(128 << 20)}
    values = facts(
        evidence(variables=variables, files={"/etc/my.cnf": f"[mysqld]\n{option}\n"})
    ).values
    assert (values.get("fact.ignored", 0.0) > 0) == differs
