"""The network layer: plans are idempotent, any output is read, and so is an interface's speed."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.campaign.bench import TrialInput
from mydyno.loads import sysbench_oltp
from mydyno.model import DriftError, SpecError, Trial
from mydyno.sample.sampler import parse_speed
from mydyno.stack.net import Net, refusal
from mydyno.stack.protocol import split
from mydyno.testbed.preflight import tls_mismatch
from mydyno.testbed.private_bench import PrivateBench

LAYER = Net(Path("/h/launch/net"), ("client",), "mysql", (8, 0, 33), "198.18.0.1")
TLS = st.sampled_from(["off", "on", "TLSv1.2", "TLSv1.3", "TLS_AES_128_GCM_SHA256"])
WANTS = st.fixed_dictionaries(
    {"transport": st.just("tcp")},
    optional={"address": st.sampled_from(["lab", "127.0.0.1", "192.0.2.7"]), "tls": TLS},
) | st.sampled_from([{}, {"transport": "socket"}, {"address": "lab"}])


def shown(text):
    """The option file and the server's values after a restart: the server follows the file."""
    own = dict(line.split("=") for line in text.splitlines())
    tls = own.get("tls", "on")
    versions = {"off": "", "on": "TLSv1.2,TLSv1.3", "TLSv1.2": "TLSv1.2"}.get(tls, "TLSv1.3")
    rows = {
        "skip_networking": "OFF" if own.get("transport") == "tcp" else "ON",
        "bind_address": own.get("address", "127.0.0.1"),
        "have_ssl": "DISABLED" if tls == "off" else "YES",
        "tls_version": versions,
        "tls_ciphersuites": tls if tls.startswith("TLS_") else "",
    }
    return LAYER.parse((text + "".join(f"{k}\t{v}\n" for k, v in rows.items())).encode())


@given(WANTS, WANTS)
def test_plans_are_idempotent(first, second):
    now = shown("")
    for want in (first, second, {}):
        changes = LAYER.plan(now, want)
        now = shown(changes[0].action.stdin.decode()) if changes else now
        assert LAYER.plan(now, want) == []
    assert now["transport"] == "socket"


@given(st.binary())
def test_any_output_is_read(raw):
    assert LAYER.parse(raw)["transport"]


def test_the_file_and_the_server_are_asked_in_one_command():
    action = LAYER.observe().action
    assert action.argv[0] == "find"
    assert action.argv[-2:] == ("client", ";")
    assert b"skip_networking" in action.stdin
    assert b"tls_version" in action.stdin


@pytest.mark.parametrize(
    ("asked", "cipher", "version", "wrong"),
    [
        ("off", "", "", ""),
        ("off", "TLS_AES_256_GCM_SHA384", "TLSv1.3", "off, but the load's session has TLS_AES_256"),
        ("on", "TLS_AES_256_GCM_SHA384", "TLSv1.3", ""),
        ("on", "", "", "no cipher"),
        ("TLSv1.2", "ECDHE-RSA-AES256-GCM-SHA384", "TLSv1.2", ""),
        ("TLSv1.2", "TLS_AES_256_GCM_SHA384", "TLSv1.3", "has TLSv1.3"),
        ("TLS_AES_128_GCM_SHA256", "TLS13-AES128-GCM-SHA256", "TLSv1.3", ""),  # wolfSSL's name
        ("AES128-GCM-SHA256", "TLS13-AES128-GCM-SHA256", "TLSv1.3", "has TLS13"),
        ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLSv1.3", "has TLS_AES_256"),
    ],
)
def test_a_session_is_judged_by_its_cipher(asked, cipher, version, wrong):
    message = tls_mismatch(asked, {"ssl_cipher": cipher, "ssl_version": version})
    assert wrong in message
    assert bool(message) is bool(wrong)


def test_an_old_server_may_be_without_tls():
    assert refusal("off", "mysql", (5, 6, 14)) == ""
    assert "5.7.10" in refusal("on", "mysql", (5, 6, 14))
    assert refusal("TLSv1.3", "mariadb", (10, 4, 0)) == ""


@pytest.mark.parametrize(
    ("flavour", "version"), [("mysql", (5, 6, 46)), ("mysql", (5, 7, 22)), ("mariadb", (10, 2, 11))]
)
def test_a_server_speaks_what_its_tls_library_does(flavour, version):
    """The same version was built with yaSSL and with OpenSSL."""
    assert "built with yaSSL, which speaks TLS 1.1" in refusal("on", flavour, version, "yaSSL")
    assert refusal("off", flavour, version, "yaSSL") == ""
    assert refusal("TLSv1.2", flavour, version, "OpenSSL") == ""
    layer = replace(LAYER, flavour=flavour, version=version, library="yaSSL")
    with pytest.raises(SpecError, match=r"net\.tls = 'on': this server is built with yaSSL"):
        layer.plan({}, {"transport": "tcp", "tls": "on"})


@pytest.mark.parametrize(
    ("raw", "real", "speed"),
    [
        (b"/sys/class/net/e0/speed:1000\n/sys/class/net/e0/uevent:INTERFACE=e0\n", True, 1.25e8),
        (b"/sys/class/net/eth0/speed:-1\n", True, None),  # virtio
        (b"/sys/class/net/eth0/speed:0\n", True, None),
        (b"/sys/class/net/eth0/speed:65535\n", True, None),
        (b"/sys/class/net/eth0/speed:4294967295\n", True, None),
        (b"/sys/class/net/v0/speed:10000\n/sys/class/net/v0/uevent:INTERFACE=v0\n", False, None),
        (b"/sys/class/net/b0/speed:20000\n/sys/class/net/b0/uevent:DEVTYPE=bond\n", False, 2.5e9),
        (b"", True, None),  # loopback: reading fails
        (b"\xff\x00junk", True, None),
    ],
)  # fmt: skip
def test_a_speed_that_is_not_known_is_none(raw, real, speed):
    assert parse_speed(raw, real=real) == speed


@pytest.mark.parametrize(
    ("settings", "cipher", "wrong"),
    [
        ({"db/net.tls": "off"}, "TLS_AES_256_GCM_SHA384", "net.tls is off"),
        ({"db/net.tls": "on"}, "", "no cipher"),
        ({"db/net.tls": "on"}, "TLS_AES_256_GCM_SHA384", ""),
        ({}, "TLS_AES_256_GCM_SHA384", ""),  # nobody asked
    ],
)
def test_a_load_with_another_cipher_is_drift(tmp_path, settings, cipher, wrong):
    line = f'{{"event": "session", "ssl_cipher": "{cipher}", "ssl_version": "TLSv1.3"}}\n'
    (tmp_path / "load.out").write_text(line)
    params = sysbench_oltp.OltpParams(script="oltp_read_only")
    workload = sysbench_oltp.cells("ro", params)[0]
    trial = Trial(0, "A", "ro", 0, 1)
    under = PrivateBench(None, {}).trial(TrialInput(trial, split(settings), workload, tmp_path))
    with pytest.raises(DriftError, match=wrong) if wrong else nullcontext():
        under.verify_session()
