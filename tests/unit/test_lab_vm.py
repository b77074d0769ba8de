"""A machine's parts that need no machine: sources, command line, caps, keys, kernels."""

import io
import json
import socket
import tarfile
import time
from pathlib import Path
from threading import Thread

import pytest

from mydyno.model import HostError, SpecError
from mydyno.stack.protocol import IDENTITY
from mydyno_vm import boot, qemu
from mydyno_vm import image as images
from mydyno_vm.credits import Credits
from mydyno_vm.image import Image, digest, recipe
from mydyno_vm.throttle import Cap, Throttle, parse, set_caps
from mydyno_vm.values import VmPaths, VmSpec, check

DEB822 = """\
Types: deb deb-src
# an older state of it
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main

Types: deb
Enabled: no
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""
ONE_LINE = """\
# deb http://off.example/debian bookworm main
deb [arch=amd64 signed-by=/etc/key.gpg] http://mirror.example/debian bookworm main contrib
deb-src http://mirror.example/debian bookworm main
deb http://other.example/apt stable main
"""


P15 = Throttle(Cap(1100, 3500, 4.32e6), Cap(125e6, 170e6, 81e9))


def limits(caps, level):
    return {name: value for name, value in caps.limits(level).items() if value}


def test_a_disk_begins_with_its_share_of_a_full_bucket():
    base = {"iops": 1100, "bps": 125000000}
    burst = {"iops_max": 3500, "bps_max": 170000000}
    assert limits(P15, 1.0) == base | burst | {"iops_max_length": 1234, "bps_max_length": 476}
    assert limits(P15, 0.25) == base | burst | {"iops_max_length": 309, "bps_max_length": 119}
    assert limits(P15, 0.001) == limits(P15, 0.0) == base  # less than two seconds are none
    assert P15.bursts
    flat = Throttle(Cap(5000, 5000), Cap(2e8))
    assert limits(flat, 1.0) == {"iops": 5000, "bps": 200000000}
    assert not flat.bursts
    assert limits(Throttle(), 1.0) == {}


def monitor(path, answers, asked):
    """Answer one client as QEMU does: a greeting, events between, what is in `answers`."""
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(60)
        server.bind(str(path))
        server.listen()
        path.with_name("ready").touch()
        connection, _ = server.accept()
        connection.settimeout(60)
        with connection, connection.makefile("rwb") as client:
            client.write(b'{"QMP": {"version": {}}}\n')
            for answer in answers:
                client.flush()
                asked.append(json.loads(client.readline()))
                client.write(b'{"event": "RESUME"}\n' + answer + b"\n")
            client.flush()
            client.readline()  # what is left unread resets the connection


@pytest.fixture
def qmp(tmp_path):
    """Return what answers like QEMU on a socket whose path is longer than an address can be."""
    orders, threads = tmp_path / ("long" * 40) / "qmp", []
    orders.parent.mkdir()

    def answering(*answers):
        asked, short = [], tmp_path / "s"
        short.symlink_to(orders.parent)
        one = Thread(target=monitor, args=(short / "qmp", answers, asked), daemon=True)
        threads.append(one)
        one.start()
        end_s = time.monotonic() + 60
        while not (orders.parent / "ready").exists() and time.monotonic() < end_s:
            time.sleep(0.01)
        return orders, asked

    yield answering
    for thread in threads:
        thread.join(60)


DONE, REFUSED = b'{"return": {}}', b'{"error": {"class": "GenericError", "desc": "no such device"}}'


def test_each_disk_is_given_its_caps_by_qemu(qmp):
    orders, asked = qmp(DONE, DONE, DONE)
    set_caps(orders, ["mydyno0", "mydyno1"], P15, 0.25)
    assert [one["execute"] for one in asked] == ["qmp_capabilities"] + 2 * ["block_set_io_throttle"]
    assert asked[2]["arguments"] == {"device": "mydyno1", **P15.limits(0.25)}


@pytest.mark.parametrize(
    ("answers", "wrong"), [((DONE, REFUSED), "no such device"), ((DONE,), "it ended")]
)
def test_what_qemu_refuses_is_an_error(qmp, answers, wrong):
    orders, _ = qmp(*answers)
    with pytest.raises(HostError, match=wrong):
        set_caps(orders, ["mydyno0"], P15, 1.0)


def test_a_qemu_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(HostError, match="does not set the caps"):
        set_caps(tmp_path / "qmp", ["mydyno0"], P15, 1.0)


def test_credits_are_recorded_for_the_next_load_and_go_back_to_the_labs():
    layer = Credits(Path("/data/credits"), "10%")
    now = layer.parse(b"10%")
    assert now["credits"] == "10%"
    assert now[IDENTITY] != Credits(Path("/other/credits")).parse(b"10%")[IDENTITY]
    (change,) = layer.plan(now, {"credits": "full"})
    assert (change.after, change.action.argv[0], change.action.stdin) == ("100%", "tee", b"100%")
    (back,) = layer.plan({**now, "credits": "100%"}, {})
    assert back.after == "10%"
    assert layer.plan(now, {"credits": "0.1"}) == []
    with pytest.raises(SpecError, match=r"disk\.rate"):
        layer.plan(now, {"rate": "80%"})
    with pytest.raises(SpecError, match="never bursts"):
        layer.plan(layer.parse(b""), {"credits": "full"})


def test_sources_of_either_style_are_read():
    assert [(s.uri, s.suite) for s in images.parse(DEB822)] == [
        ("http://mirror.example/debian", "bookworm"),
        ("http://mirror.example/debian", "bookworm-updates"),
        ("http://mirror.example/debian-security", "bookworm-security"),
    ]
    key = "/etc/key.gpg"
    assert images.parse(ONE_LINE) == (
        images.AptSource("http://mirror.example/debian", "bookworm", key),
        images.AptSource("http://other.example/apt", "stable"),
    )


def test_sources_are_widened_to_what_the_recipe_needs():
    text = images.widened(images.parse(ONE_LINE), recipe())
    archive = "deb [signed-by=/etc/key.gpg] http://mirror.example/debian"
    assert text.splitlines() == [
        f"{archive} bookworm main contrib",
        f"{archive} bookworm-backports main contrib",
    ]


@pytest.mark.parametrize("text", ["", "junk\n\nTypes: deb\n", "deb http://x.example/u jammy main"])
def test_a_system_without_the_suite_gets_a_message_with_the_next_step(text):
    with pytest.raises(SpecError, match="--sources FILE"):
        images.widened(images.parse(text), recipe())


def words(**changes):
    boot = qemu.Boot("/k/vmlinuz", "/k/initrd", changes.pop("accelerator", "tcg"))
    return qemu.command(VmSpec("lab", **changes), VmPaths(Path("/home/lab")), boot, 22000)


def test_the_network_leads_in_by_one_port_of_loopback_and_nowhere_out():
    (net,) = (word for word in words() if word.startswith("user,"))
    assert net == "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:22000-:22"


def test_disks_have_no_cache():
    drives = [w for w in words(disks=2) if "disk" in w and w.startswith("if=none")]
    assert drives == [
        f"if=none,id=mydyno{n},file=/home/lab/disk{n}.raw,format=raw,cache=none,aio=threads"
        for n in range(2)
    ]


def test_qemu_takes_orders_in_its_own_folder_alone():
    assert "unix:qmp,server=on,wait=off" in words()  # it starts there, and only root enters it
    assert VmPaths(Path("/home/lab")).orders == Path("/home/lab/qmp")


def test_a_reboot_ends_qemu_so_that_the_kernel_may_change():
    assert "-no-reboot" in words()
    assert words()[words().index("-kernel") + 1] == "/k/vmlinuz"
    assert "host" in words(accelerator="kvm")
    assert "host" not in words()


def test_caps_are_those_of_the_class():
    raw = (
        b'{"vms":[],"disks":[{"name":"azure-p15","iops":{"base":1100.0,"burst":3500.0,"credits":4320000.0},'
        b'"bytes_per_s":{"base":125e6,"burst":170e6,"credits":81e9}},'
        b'{"name":"azure-p30","iops":{"base":5000.0,"burst":5000.0,"credits":0.0},'
        b'"bytes_per_s":{"base":2e8,"burst":2e8,"credits":0.0}}]}'
    )
    assert parse(raw) == {
        "azure-p15": P15,
        "azure-p30": Throttle(Cap(5000, 5000), Cap(2e8, 2e8)),
    }


def test_the_seed_gives_keys_that_only_root_can_read(tmp_path):
    for name in ("host_key", "key"):
        (tmp_path / name).write_text(f"secret {name}")
        (tmp_path / f"{name}.pub").write_text(f"public {name}")
    raw = boot.archive("lab", tmp_path / "host_key", tmp_path / "key")
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        modes = {member.name: member.mode for member in tar}
    assert modes == {
        "root/.ssh": 0o700,
        "etc/hostname": 0o644,
        "etc/hosts": 0o644,
        "etc/ssh/ssh_host_ed25519_key": 0o600,
        "etc/ssh/ssh_host_ed25519_key.pub": 0o644,
        "root/.ssh/authorized_keys": 0o600,
    }
    assert b"secret key" not in raw  # the key that opens it stays with us


def test_the_host_key_is_always_checked():
    text = boot.configuration("lab", VmPaths(Path("/home/a b")), 22000)
    assert "StrictHostKeyChecking yes" in text
    assert 'UserKnownHostsFile "/home/a b/known_hosts"' in text


@pytest.fixture
def image(tmp_path):
    for release in ("6.1.0-56-cloud-amd64", "6.12.117+deb12-cloud-amd64"):
        (tmp_path / f"vmlinuz-{release}").touch()
    return Image(tmp_path)


@pytest.mark.parametrize(
    ("wanted", "release"),
    [
        ("6.1", "6.1.0-56-cloud-amd64"),
        ("6.12", "6.12.117+deb12-cloud-amd64"),
        ("6.1.0-56-cloud-amd64", "6.1.0-56-cloud-amd64"),
    ],
)
def test_a_kernel_is_named_in_full_or_by_its_beginning(image, wanted, release):
    assert image.kernel(wanted).release == release


@pytest.mark.parametrize("wanted", ["5.10", "6", ""])
def test_a_kernel_that_is_none_or_several_is_refused_with_those_there_are(image, wanted):
    with pytest.raises(SpecError, match=r"6\.1\.0-56"):
        image.kernel(wanted)


@pytest.mark.parametrize(
    "spec", [VmSpec("a b"), VmSpec("a", disks=99), VmSpec("a", size=0), VmSpec("a", size=1000)]
)
def test_an_impossible_machine_is_refused(spec):
    with pytest.raises(SpecError, match="lab "):
        check(spec)


def test_the_recipe_has_a_name_of_its_own():
    assert len(digest()) == 16
    assert digest() == digest()
