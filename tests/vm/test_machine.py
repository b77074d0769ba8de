"""A machine of the VM lab: what it is, that its kernel can change, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
import time

import pytest

import mydyno_vm as vm
from mydyno.host import Local, ask
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Action, Cost, RefusedError
from mydyno.stack import Ledger, Site, converge
from mydyno.stack.kernel import Kernel
from mydyno_vm import qemu
from mydyno_vm.values import VmPaths, records


def words(guest, *argv):
    return guest.run(Action(argv)).check().stdout.decode().split()


def test_it_is_the_kernel_asked_for_with_as_many_disks_of_the_class(guest, machine):
    assert words(guest, "uname", "-r") == [machine.state.release]
    sizes = words(
        guest, "lsblk", "--nodeps", "--noheadings", "--bytes", "-o", "SIZE", *machine.disks
    )
    assert sizes == [str(1 << 30)] * machine.state.spec.disks
    assert machine.state.spec.caps.iops.base == 1100


def test_it_has_what_the_layers_need_and_no_server_runs(guest):
    for tool in ("mdadm", "zpool", "mkfs.xfs", "mkfs.btrfs", "lvs", "fio", "sysbench", "mariadbd"):
        words(guest, "which", tool)
    assert words(guest, "systemctl", "show", "-P", "ActiveState", "mariadb") == ["inactive"]


def test_another_host_key_is_refused(machine, tmp_path):
    wrong = tmp_path / "known_hosts"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "k"], check=True
    )
    public = (tmp_path / "k.pub").read_text()
    wrong.write_text(f"[127.0.0.1]:{machine.state.port} {public}")
    config = machine.config.read_text().replace(
        str(machine.config.parent / "known_hosts"), str(wrong)
    )
    other = tmp_path / "config"
    other.write_text(config)
    argv = ["ssh", "-F", other, machine.state.spec.lab, "true"]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode == 255
    assert b"REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr


def test_nothing_leads_out_of_it(guest):
    argv = ("timeout", "20", "bash", "-c", "exec 3<>/dev/tcp/10.0.2.2/22")
    assert guest.run(Action(argv)).returncode != 0


def test_the_kernel_is_a_factor_whose_change_is_a_reboot(guest, timed):
    layer = Kernel(("release", "sysctl.vm.swappiness"))
    site, ledger = Site("db", guest, (layer,)), Ledger(MemoryRecords(), MemoryJournal())
    before = dict(ask(guest, layer.observe()))
    (change,) = layer.plan(before, {"release": "6.12", "sysctl.vm.swappiness": "7"})
    assert change.cost is Cost.REBOOT
    with timed("another kernel, and a sysctl after it"):
        converge(
            site, {"db/kernel.release": "6.12", "db/kernel.sysctl.vm.swappiness": "7"}, ledger, 0
        )
    now = ask(guest, layer.observe())
    assert now["release"].startswith("6.12.")
    assert now["sysctl.vm.swappiness"] == "7"
    with timed("back to the first kernel"):
        converge(site, {}, ledger, 1)
    assert ask(guest, layer.observe()) == before


def test_a_host_of_the_user_is_not_rebooted():
    site = Site("db", Local(), (Kernel(("release",)),))
    ledger = Ledger(MemoryRecords(), MemoryJournal())
    with pytest.raises(RefusedError, match="reboots VM labs only"):
        converge(site, {"db/kernel.release": "6.1"}, ledger, 0)


_OWNER = """
import sys
from pathlib import Path
from mydyno.host import Local
import mydyno_vm as vm
spec = vm.VmSpec(sys.argv[1], 1, 1 << 30)
vm.create(Local(), spec, Path(sys.argv[2]), print, detached=sys.argv[3] == "detached")
"""


@pytest.mark.parametrize("kind", ["owned", "detached"])
def test_a_controller_that_is_killed_leaves_nothing_after_the_next_sweep(image, tmp_path, kind):
    name, home = f"kill-{kind}-{os.getpid()}", tmp_path / "home"
    argv = [sys.executable, "-c", _OWNER, name, str(home), kind]
    with subprocess.Popen(argv) as owner:
        while not qemu.alive(Local(), VmPaths(home)):
            assert owner.poll() is None
            time.sleep(0.2)
        assert not any(name in line for line in vm.sweep(Local()))  # its owner lives
        owner.send_signal(signal.SIGKILL)
    assert any(name in line for line in vm.sweep(Local()))
    assert not qemu.alive(Local(), VmPaths(home))
    assert not home.exists()
    assert records().read(name) is None


def test_a_name_in_use_is_refused(machine, tmp_path):
    with pytest.raises(RefusedError, match="a machine of this name"):
        vm.create(Local(), vm.VmSpec(machine.state.spec.lab), tmp_path / "other", print)
