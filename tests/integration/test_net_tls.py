"""TLS off, on, or one version or cipher: real servers, by a real load's own session."""

import grp
import tempfile
from pathlib import Path

import pytest

from integration.load_steps import HOST, prepare
from integration.server_steps import applied, clear
from mydyno.loads import sysbench_oltp
from mydyno.model import HostError, SpecError
from mydyno.testbed.preflight import tls_mismatch
from mydyno.testbed.server_runner import target_of

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]

SUITE, CIPHER = "TLS_AES_128_GCM_SHA256", "ECDHE-RSA-AES256-GCM-SHA384"
MODERN = ("mariadb-10.11", "mariadb-11.4.5", "mysql-8.0.33")


@pytest.fixture
def one(bench, request):
    made = bench.take(request.param)
    yield made
    made.instance.stop()
    clear(made)


def cell():
    params = {"script": "oltp_point_select", "threads": 2, "tables": 1, "table_size": 100}
    return sysbench_oltp.cells("ro", sysbench_oltp.OltpParams(**params))[0]


def session(instance):
    """Return what the first connection of a real load reports, and the load's rates."""
    with tempfile.TemporaryDirectory() as name:
        work, workload = Path(name), cell()
        target = target_of(instance, work, work)
        prepare(workload, target)
        running = HOST.start(workload.run(target, 7, {}), stderr=work / "err")
        lines = []
        try:
            for line in running.lines():
                lines.append(line)
                if b'"second"' in line:
                    break
        finally:
            running.stop()
        output = b"".join(lines).decode() + (work / "err").read_text()
        assert '"second"' in output, output
        return workload.session(lines), next(workload.parse(lines)).values["tps"]


def has_the_cipher(instance, tls):
    """Assert that a load's session is as it was asked for, and that another one would be seen."""
    session_facts, rate = session(instance)
    assert rate > 0
    assert tls_mismatch(tls, session_facts) == "", session_facts
    wrong = "on" if tls == "off" else "off"
    assert tls_mismatch(wrong, session_facts) != ""


@pytest.mark.parametrize("tls", ["off", "TLSv1.2", SUITE, CIPHER])
@pytest.mark.parametrize("one", MODERN, indirect=True)
def test_the_loads_session_has_the_cipher_that_was_asked_for(one, tls):
    with applied(one, net={"transport": "tcp", "tls": tls}) as instance:
        has_the_cipher(instance, tls)


@pytest.mark.parametrize("one", ["mysql-5.6.14"], indirect=True)
def test_the_old_server_speaks_none_that_clients_take(one):
    with applied(one, net={"transport": "tcp", "tls": "off"}) as instance:
        assert tls_mismatch("off", session(instance)[0]) == ""
    with pytest.raises(SpecError, match="built with yaSSL, which speaks"):
        one.layers.net.plan({}, {"transport": "tcp", "tls": "on"})


@pytest.mark.parametrize("one", MODERN, indirect=True)
def test_with_tls_on_a_plain_session_is_refused_and_two_starts_share_an_authority(one):
    folder = one.instance.place.tls
    seen = []
    for tls in ("on", "TLSv1.3"):
        with applied(one, net={"transport": "tcp", "tls": tls}) as instance:
            has_the_cipher(instance, tls)
            seen.append({p.name: p.read_bytes() for p in folder.iterdir()})
            if tls == "on":
                refuses_a_plain_session(instance)
    assert seen[0] == seen[1]
    # all root's; the server reads its own key, and that alone, by a group that is only its
    mode = {p.name: oct(p.stat().st_mode & 0o777) for p in folder.glob("*key.pem")}
    assert mode.pop("server-key.pem") == oct(0o640)
    assert set(mode.values()) == {oct(0o600)}
    assert {p.stat().st_uid for p in folder.iterdir()} == {0}
    assert (folder / "server-key.pem").stat().st_gid == one.instance.identity.gid
    assert one.instance.identity.gid not in {g.gr_gid for g in grp.getgrall()}


def refuses_a_plain_session(instance):
    plain = [line for line in instance.place.load.read_text().splitlines() if "ssl" not in line]
    instance.place.load.write_text("\n".join(plain) + "\n")
    with pytest.raises(HostError, match=r"error 3159|error 1045"):  # MariaDB 10.11 reports 1045
        session(instance)
