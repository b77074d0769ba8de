"""The small parts that the load adapters share."""

import stat

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from mydyno.loads import Target
from mydyno.loads.histogram import recorded
from mydyno.loads.protocol import prefix, text_lines
from mydyno.loads.sysbench import client_section, connection_file
from mydyno.model import SpecError


@given(st.lists(st.tuples(st.integers(1, 3_600_000_000), st.integers(1, 10**6)), max_size=40))
def test_no_event_is_lost_on_the_way_into_the_histogram(counts):
    encoded, quantiles = recorded(counts)
    if not counts:
        assert (encoded, quantiles) == ("", {})
        return
    assert HdrHistogram.decode(encoded).get_total_count() == sum(count for _, count in counts)
    one_by_one = HdrHistogram(1, 3_600_000_000, 3)
    for latency, count in counts:
        one_by_one.record_value(latency, count)
    assert encoded == one_by_one.encode().decode()
    slowest = max(latency for latency, _ in counts) / 1e6
    assert quantiles["latency_max_s"] == pytest.approx(slowest, rel=1e-3, abs=1e-6)
    names = ("latency_p50_s", "latency_p95_s", "latency_p99_s", "latency_max_s")
    assert list(quantiles.values()) == sorted(quantiles[name] for name in names)


def test_latencies_outside_the_range_are_counted_at_its_ends():
    encoded, quantiles = recorded([(0.2, 1), (9e9, 1)])
    assert HdrHistogram.decode(encoded).get_total_count() == 2
    assert quantiles["latency_p50_s"] == pytest.approx(1e-6)
    assert quantiles["latency_max_s"] == pytest.approx(3600, rel=1e-3)


@pytest.mark.parametrize("pair", [(5, -1), (-5, 1), (float("nan"), 1)])
def test_a_count_below_zero_is_an_error(pair):
    with pytest.raises(ValueError, match="events of"):
        recorded([pair])


def test_only_complete_lines_that_are_not_blank_count():
    assert list(text_lines([b"a\n", b"\n", b"  \r\n", b"b\xff\n", b"torn"])) == [
        (1, "a"),
        (4, "b\ufffd"),
    ]


def test_the_locale_of_the_treatment_does_not_reach_the_parser(tmp_path):
    words = prefix({"LC_ALL": "de_DE", "X": "1"}, directory=tmp_path)
    assert words == ("env", "-C", str(tmp_path), "LC_ALL=de_DE", "X=1", "LC_ALL=C")


def test_a_client_section_is_read_as_the_client_reads_it():
    text = """
    [mysqld]
    user = no
    [client]
    # password = no
    ; user = no
    user = "a b"
    password = 'p\\s\\\\s#1='
    ssl_ca=/x
    skip-ssl
    [other]
    password = no
    """
    assert client_section(text) == {"user": "a b", "password": "p \\s#1=", "ssl-ca": "/x"}


def given_target(tmp_path, password, **address):
    file = tmp_path / "client.cnf"
    file.write_text(f"[client]\nuser=u\npassword={password}\n")
    return Target(tmp_path, tmp_path, password_file=file, database="sbtest", **address)


def test_the_connection_file_is_for_its_owner_only(tmp_path):
    path = connection_file(given_target(tmp_path, "p", socket="/s"))
    again = connection_file(given_target(tmp_path, "q", socket="/s"))
    assert path == again
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().splitlines() == [
        'mysql-user="u"', 'mysql-password="q"', 'mysql-db="sbtest"', 'mysql-socket="/s"'
    ]  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["client.cnf", "sysbench.cfg"]


def test_a_host_of_this_machine_is_reached_by_tcp_not_by_the_default_socket(tmp_path):
    target = given_target(tmp_path, "p", tcp_host="localhost", tcp_port=3307)
    text = connection_file(target).read_text()
    assert 'mysql-host="127.0.0.1"\nmysql-port="3307"' in text


@pytest.mark.parametrize("password", ["a\"b'c", "x" * 300])
def test_what_sysbench_cannot_read_is_refused_without_showing_it(tmp_path, password):
    with pytest.raises(SpecError, match="mysql-password: sysbench cannot read") as caught:
        connection_file(given_target(tmp_path, password, socket="/s"))
    assert password not in str(caught.value)


def test_a_password_file_that_cannot_be_read_is_named(tmp_path):
    target = Target(tmp_path, tmp_path, socket="/s", password_file=tmp_path / "none.cnf")
    with pytest.raises(SpecError, match=r"none\.cnf: cannot read"):
        connection_file(target)
