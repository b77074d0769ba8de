"""A machine's parts that need no machine: sources, command line, caps, keys, kernels."""

import io
import tarfile
from pathlib import Path

import pytest

from mydyno.model import SpecError
from mydyno_vm import boot, qemu
from mydyno_vm import image as images
from mydyno_vm.image import Image, digest, recipe
from mydyno_vm.values import Throttle, VmPaths, VmSpec, check

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


def test_a_disk_begins_with_its_share_of_a_full_bucket():
    caps = Throttle(1100, 125e6, 3500, 170e6, 1800)
    assert caps.at(1.0) == caps
    assert caps.at(0.25).burst_s == 450
    assert caps.at(0.0) == Throttle(1100, 125e6)
    flat = Throttle(5000, 2e8)
    assert flat.at(1.0) == flat


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


def test_disks_have_no_cache_and_their_caps():
    caps = Throttle(1100, 125e6, 3500, 170e6, 1800)
    drives = [w for w in words(disks=2, throttle=caps) if "disk" in w and w.startswith("if=none")]
    assert drives == [
        f"if=none,id=mydyno{n},file=/home/lab/disk{n}.raw,format=raw,cache=none,aio=threads,"
        "throttling.iops-total=1100,throttling.bps-total=125000000,throttling.iops-total-max=3500,"
        "throttling.bps-total-max=170000000,throttling.iops-total-max-length=1800,"
        "throttling.bps-total-max-length=1800"
        for n in range(2)
    ]
    assert not any("throttling" in word for word in words(disks=2))


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
    assert boot.parse(raw) == {
        "azure-p15": Throttle(1100, 125e6, 3500, 170e6, 1800),
        "azure-p30": Throttle(5000, 2e8),
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
