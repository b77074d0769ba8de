"""sysbench on a real server: every bundled script, its own totals, and who sees the password."""

import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import pstdev

import msgspec
import pytest
from hdrh.histogram import HdrHistogram

from integration.load_steps import HOST, live, prepare, seen_by_others
from mydyno.loads import Target, sysbench, sysbench_oltp
from mydyno.loads.histogram import recorded
from mydyno.loads.sysbench import parse, parse_session
from mydyno.model import Action

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]

CANARY = "canary pw#1='x"


def client(socket, sql):
    argv = ("mariadb", "--no-defaults", "--user=root", f"--socket={socket}")
    subprocess.run(argv, input=sql.encode(), check=True, capture_output=True)


def wait_until_ready(process, socket):
    ping = ("mariadb-admin", "--no-defaults", "--user=root", f"--socket={socket}", "ping")
    for _ in range(240):
        assert process.poll() is None, "the server ended"
        if subprocess.run(ping, capture_output=True, check=False).returncode == 0:
            return
        time.sleep(0.25)
    pytest.fail("the server did not answer within a minute")


def make_certificate(place):
    """Make one certificate for all roles, under the names that sysbench 1.0 looks for."""
    subprocess.run(("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", place / "client-key.pem",
                    "-out", place / "cacert.pem"), check=True, capture_output=True)  # fmt: skip
    shutil.copy(place / "cacert.pem", place / "client-cert.pem")
    (place / "client-key.pem").chmod(0o644)


@pytest.fixture(scope="module")
def server():
    if not shutil.which("mariadbd"):
        pytest.skip("mariadbd is not installed")
    place = Path(tempfile.mkdtemp(prefix="mydyno-load-"))  # the server's user must reach it
    drop = ()
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")  # a server package without its service makes no user mysql
        drop = ("setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
        os.chown(place, user.pw_uid, user.pw_gid)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    install = ("mariadb-install-db", "--no-defaults", f"--datadir={place}/data", "--skip-test-db",
               "--auth-root-authentication-method=normal")  # fmt: skip
    subprocess.run((*drop, *install), check=True, **quiet)
    make_certificate(place)
    server = ("mariadbd", "--no-defaults", f"--datadir={place}/data", f"--socket={place}/s",
              f"--ssl-ca={place}/cacert.pem", f"--ssl-cert={place}/cacert.pem",
              f"--ssl-key={place}/client-key.pem",
              "--skip-networking", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
              "--innodb-flush-log-at-trx-commit=2")  # fmt: skip
    process = subprocess.Popen((*drop, *server), **quiet)
    try:
        wait_until_ready(process, place / "s")
        yield place / "s"
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(place)


@pytest.fixture
def target(server, tmp_path):
    database = "sbtest"
    client(server, f"""
        DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database};
        CREATE OR REPLACE USER u@localhost IDENTIFIED BY '{CANARY.replace("'", "''")}';
        GRANT ALL ON {database}.* TO u@localhost;
    """)  # fmt: skip
    password_file = tmp_path / "client.cnf"
    password_file.write_text(f'[client]\nuser=u\npassword="{CANARY}"\n')
    password_file.chmod(0o600)
    files = tmp_path / "files"
    files.mkdir()
    return Target(tmp_path, files, socket=str(server), password_file=password_file,
                  database=database)  # fmt: skip


def oltp(**keys):
    return sysbench_oltp.cells("rw", msgspec.convert(keys, sysbench_oltp.OltpParams))[0]


def timed(cell, target, *more):
    """Return the output of a run that ends by itself and prints sysbench's own report."""
    argv = cell.run(target, 7, {}).argv
    argv = (*argv[:-1], *more, "--verbosity=3", "run")
    return HOST.run(Action(argv)).check().stdout


def hook_lines(output):
    return [line for line in output.splitlines(keepends=True) if line.startswith(b"{")]


def own_report(text):
    """Return the counts of the first cumulative report in sysbench's output."""
    labels = {"reads": "read", "writes": "write", "other": "other", "events": "transactions",
              "p99_ms": "99th percentile"}  # fmt: skip
    return {
        name: float(re.search(rf"^ +{label}: +([\d.]+)", text, re.MULTILINE)[1])
        for name, label in labels.items()
    }


WRITES = {"oltp_delete", "oltp_insert", "oltp_update_index", "oltp_update_non_index",
          "oltp_write_only", "oltp_read_write", "bulk_insert"}  # fmt: skip
READS = {"oltp_point_select", "oltp_read_only", "oltp_read_write", "select_random_points",
         "select_random_ranges"}  # fmt: skip


@pytest.mark.parametrize("script", sysbench.SCRIPTS)
def test_every_bundled_script_is_prepared_and_reports_as_it_runs(target, script):
    keys = {} if script == "bulk_insert" else {"tables": 1, "table_size": 500}
    cell = oltp(script=script, threads=2, **keys)
    prepare(cell, target)
    prepare(cell, target)  # again: the first tables are in the way
    found = [interval for _, interval in live(cell, target, 4)]
    assert 0.9 < found[0].t_s < found[1].t_s
    reads = sum(each.values["reads"] for each in found[1:])  # the first has those of the session
    assert (reads > 0) == (script in READS)
    assert (sum(each.values["writes"] for each in found) > 0) == (script in WRITES)
    spans = [end - start for start, end in pairwise([0, *(each.t_s for each in found)])]
    events = sum(each.values["tps"] * s for each, s in zip(found, spans, strict=True))
    assert events > 0
    counts = [HdrHistogram.decode(each.latency).get_total_count() for each in found if each.latency]
    assert sum(counts) == pytest.approx(events, rel=0.3)  # counted milliseconds after the rate


def small_mix(target):
    cell = oltp(script="oltp_read_write", threads=2, tables=2, table_size=1000)
    prepare(cell, target)
    return cell


def buckets(pairs):
    found = Counter()
    for latency_us, count in pairs:
        found[latency_us] += count
    return found


def test_rates_and_histograms_agree_with_the_report_of_sysbench_itself(target):
    output = timed(small_mix(target), target, "--time=15", "--histogram=on")
    own = own_report(output.decode())
    printed = re.findall(r"^ +([\d.]+) \|\** *(\d+)$", output.decode(), re.MULTILINE)
    theirs = buckets((round(float(ms) * 1e3), int(count)) for ms, count in printed)
    seconds = [json.loads(line) for line in hook_lines(output)[1:]]
    flat = [number for second in seconds for number in second["latency_us"]]
    ours = buckets(zip(flat[::2], flat[1::2], strict=True))
    assert theirs.total() == own["events"]
    assert ours <= theirs  # in every bucket
    tail = theirs.total() - ours.total()  # the part of a second that no report covers
    assert tail < own["events"] / 3
    intervals = list(parse(hook_lines(output)))
    spans = [end - start for start, end in pairwise([0, *[i.t_s for i in intervals]])]
    for name, per_event in (("tps", 1), ("reads", 14), ("writes", 4), ("other", 2)):
        total = sum(i.values[name] * s for i, s in zip(intervals, spans, strict=True))
        want = own["events" if name == "tps" else name]
        assert total + tail * per_event == pytest.approx(want, rel=0.015), name
    by_thread = [sum(each) for each in zip(*(i.by_thread for i in intervals), strict=True)]
    assert len(by_thread) == 2
    assert own["events"] - tail <= sum(by_thread) <= own["events"]
    fair = re.search(r"events \(avg/stddev\): +([\d.]+)/([\d.]+)", output.decode())
    assert pstdev(by_thread) == pytest.approx(float(fair[2]), abs=tail)
    _, quantiles = recorded(theirs.items())
    assert quantiles["latency_p99_s"] * 1e3 == pytest.approx(own["p99_ms"], rel=0.006, abs=0.006)


def test_the_session_reports_what_the_load_really_used(target):
    cell = oltp(script="oltp_point_select", threads=1, tables=1, table_size=100)
    prepare(cell, target)
    session = parse_session(hook_lines(timed(cell, target, "--time=1")))
    assert (session["ssl_cipher"], session["ssl_version"]) == ("", "")
    assert Path(session["client_library"]).is_file()
    assert session["client_version"][0].isdigit()
    assert session["luajit"].startswith("LuaJIT 2.")
    version = HOST.run(cell.describe()[0]).check().stdout.decode().strip()
    assert session["sysbench"] == version


def test_the_session_names_the_cipher_if_there_was_one(target, server, monkeypatch):
    monkeypatch.chdir(server.parent)  # sysbench 1.0 takes its certificates from here
    cell = oltp(script="oltp_point_select", tables=1, table_size=100, options={"mysql-ssl": True})
    prepare(cell, target)
    session = parse_session(hook_lines(timed(cell, target, "--time=1")))
    assert session["ssl_version"].startswith("TLSv1.")
    assert session["ssl_cipher"]


def test_an_open_loop_counts_the_time_in_the_queue(target):
    closed = oltp(script="oltp_read_only", threads=1, tables=1, table_size=500)
    prepare(closed, target)
    free = max((each for _, each in live(closed, target, 3)), key=lambda each: each.values["tps"])
    rate = round(free.values["tps"] * 10)  # far more than a machine that is busy now does
    flooded = oltp(script="oltp_read_only", threads=1, tables=1, table_size=500, rate=rate)
    *_, (_, last) = live(flooded, target, 3)
    assert last.values["queue_length"] > rate / 4
    assert last.values["latency_p50_s"] > 20 * free.values["latency_p50_s"]


def test_a_script_in_the_working_directory_is_not_the_bundled_one(target, tmp_path, monkeypatch):
    (tmp_path / "oltp_read_only.lua").write_text("os.exit(9)")
    (tmp_path / "oltp_common.lua").write_text("os.exit(9)")
    cell = oltp(script="oltp_read_only", threads=1, tables=1, table_size=100)
    prepare(cell, target)
    monkeypatch.chdir(tmp_path)
    assert len(live(cell, target, 1)) == 1


def scan(process):
    """Return the places where the canary shows while `process` runs, and how often we looked."""
    found, looks = [], 0
    while process.poll() is None:
        looks += 1
        pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        found += [pid for pid in pids if CANARY.encode() in b"".join(seen_by_others(pid))]
    return found, looks


def test_no_other_process_can_see_the_password(target):
    cell = oltp(script="oltp_read_write", threads=2, tables=2, table_size=5000)
    run = cell.run(target, 1, {}).argv
    actions = [action.argv for action in cell.prepare(target)]
    total = 0
    for argv in [*actions, (*run[:-1], "--time=2", "run")]:
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        found, looks = scan(process)
        assert process.returncode == 0
        assert not found
        total += looks
    assert total > 10


def test_the_scan_would_find_a_password_in_the_environment():
    process = subprocess.Popen(("sleep", "3"), env=dict(os.environ, SECRET=CANARY))
    assert str(process.pid) in scan(process)[0]


@pytest.mark.parametrize("script", sysbench.SCRIPTS)
def test_our_option_names_are_those_of_sysbench(script):
    text = HOST.run(Action(("sysbench", script, "help"))).stdout.decode()
    general = HOST.run(Action(("sysbench", "--help"))).check().stdout.decode()
    theirs = {name.replace("-", "_") for name in re.findall(r"^  --([\w-]+)", text, re.MULTILINE)}
    everywhere = {n.replace("-", "_") for n in re.findall(r"^  --([\w-]+)", general, re.MULTILINE)}
    ours = sysbench.known(script)
    assert theirs - ours <= {"tables", "table_size", "pgsql_variant"}
    newer = {"reconnect", "create_table_options", "thread_init_timeout", "rand_zipfian_exp",
             "mysql_ssl_ca", "mysql_ssl_cert", "mysql_ssl_key",
             "mysql_compression_algorithms"}  # fmt: skip
    assert ours - theirs - everywhere <= newer
