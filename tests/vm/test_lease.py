"""A lease on a machine with a kernel of its own: what only a boot shows, and 20 power cuts."""

import json
import os
import random
import time

import msgspec
import pytest

from mydyno.audit.host_facts import section
from mydyno.cli.apply import _on
from mydyno.cli.audit import gathered
from mydyno.cli.leases import (
    GUARD,
    call,
    install_guard,
    lease_of,
    leases_of,
    scene_of,
    unit_of,
)
from mydyno.host import Host
from mydyno.keep.kept import Kept, KeptOn
from mydyno.keep.lease import LeaseNote, kept_leases, not_in_force, planned, undone
from mydyno.model import Action
from mydyno.server.existing import reached
from mydyno_vm import qemu

CUTS = int(os.environ.get("MYDYNO_CUTS", "20"))
SETTINGS = {
    "mysqld.innodb_log_buffer_size": "32M",
    "mysqld.max_connections": "300",
    "kernel.sysctl.vm.swappiness": "7",
    "kernel.sysctl.vm.dirty_bytes": "134217728",
    "kernel.thp": "never",
    "block.scheduler": "none",
    "block.read_ahead_kb": "64",
    "limits.nofile": "15000",
    "fs.mount": "noatime",
}
STATE = r"""
cd / && find etc usr/local/lib/systemd -xdev ! -name 'ld.so.cache' \
    -printf '%p %m %u %g %l\n' 2>/dev/null | sort
find etc -xdev -type f -print0 | sort -z | xargs -0 sha256sum
cat /proc/sys/vm/swappiness /proc/sys/vm/dirty_bytes /proc/sys/vm/dirty_ratio
cat /sys/kernel/mm/transparent_hugepage/enabled
cat /sys/block/*/queue/scheduler /sys/block/*/queue/read_ahead_kb /sys/block/*/queue/nr_requests
findmnt -n -o OPTIONS / /var/lib /usr/local
mariadb --batch --skip-column-names -e 'SELECT @@max_connections, @@innodb_log_buffer_size'
grep 'open files' /proc/$(pidof mariadbd)/limits
test -e /run/systemd/system/mariadb.service.d && echo 'the drop-in of a trial'; true
"""


def shell(guest, text, timeout_s=120.0):
    done = guest.run(Action(("sh", "-c", text)), timeout_s=timeout_s)
    return done.check().stdout.decode(errors="replace")


def state(guest):
    return shell(guest, STATE).splitlines()


def cut(guest, machine):
    """Cut the power: what the guest has not written to its disk is lost; boot it again."""
    guest.close()
    machine.cut_off()
    machine.state = qemu.start(machine.host, machine.records, machine.state)
    guest.connect()
    shell(
        guest,
        "systemctl is-system-running --wait; for i in $(seq 200); do mariadb -e 'SELECT 1' "
        ">/dev/null 2>&1 && exit 0; sleep 0.3; done; exit 1",
        300,
    )


@pytest.fixture(scope="module")
def production(guest):
    """Return the machine with its server running from its unit."""
    shell(guest, "systemctl unmask mariadb; systemctl enable --now mariadb", 300)
    install_guard(guest)
    yield guest
    if leases_of(guest):
        shell(guest, f"{GUARD} forget || true")
    shell(guest, "systemctl disable --now mariadb")


def plan_of(guest: Host, number, settings=SETTINGS):
    """Return a lease of settings, its plan, and how to see what is in force."""
    existing = reached(guest)
    seen = gathered(existing, 0)
    kept = _on(Kept(settings, ["a test"], target=KeptOn()), existing, seen)
    scene = scene_of(existing, seen, kept, kept)
    plan = planned(kept, {}, scene)
    first = {**plan.along, **{row.key: row.before for row in plan.rows}}
    note = LeaseNote(
        {r.key: r.wanted for r in plan.rows}, first, dict(settings), [], {}, kept.target
    )
    lease = lease_of(existing, seen, "vm", plan, f"case {number}", seconds=3600, note=note)
    return lease, plan, kept


def undo(guest):
    """Undo the kept lease by one of its own."""
    (top,) = kept_leases(leases_of(guest))
    existing = reached(guest)
    seen = gathered(existing, 0)
    note = top.lease.note
    first = Kept(note.first, [], {}, existing.flavour, existing.version, note.target)
    scene = scene_of(existing, seen, first, first, top.lease)
    plan = undone(top, first, scene)
    asked = lease_of(
        existing, seen, "vm", plan, "undo", seconds=3600, note=LeaseNote(), undoes=top.lease.id
    )
    call(guest, "begin", stdin=msgspec.json.encode(asked))
    call(guest, "confirm", asked.id, "--who", "test")


def test_all_of_it_is_in_force_on_trial_after_a_boot_and_gone_without_a_trace(
    production, machine, timed
):
    guest = production
    first = state(guest)
    lease, plan, kept = plan_of(guest, 0)
    assert unit_of(gathered(reached(guest), 0)) == "mariadb.service"
    with timed("a lease begun"):
        call(guest, "begin", stdin=msgspec.json.encode(lease))
    existing = reached(guest)
    seen = gathered(existing, 0)
    scene = scene_of(existing, seen, kept, kept)
    assert not_in_force(plan.rows, kept, scene) == []
    etc = [line for line in state(guest) if line.startswith("etc/")]
    assert etc == [line for line in first if line.startswith("etc/")], "of a trial, nothing"
    call(guest, "confirm", lease.id, "--who", "test")
    with timed("a boot with the kept settings"):
        cut(guest, machine)
    existing = reached(guest)
    seen = gathered(existing, 0)
    assert not_in_force(plan.rows, kept, scene_of(existing, seen, kept, kept)) == []
    assert shell(guest, "systemctl show -p Result --value mydyno-verify").strip() == "success"
    undo(guest)
    call(guest, "forget")
    assert state(guest) == first
    with timed("a boot with the first settings"):
        cut(guest, machine)
    assert state(guest) == first
    install_guard(guest)


# Both are of the disk: the lease and the data on one filesystem, our program on the other.
OF_ITS_OWN = r"""
systemctl stop mariadb
for pair in "$0:/var/lib" "$1:/usr/local"; do
    disk=${pair%%:*} place=${pair#*:}
    mkfs.ext4 -q -F "$disk"
    mount "$disk" /mnt
    cp -a "$place/." /mnt
    umount /mnt
    echo "UUID=$(blkid -s UUID -o value "$disk") $place ext4 defaults 0 2" >>/etc/fstab
done
systemctl daemon-reload
mount /var/lib
mount /usr/local
systemctl start mariadb
"""
OF_THE_ROOT = r"""
systemctl stop mariadb
sed -i '\, /var/lib ext4 ,d; \, /usr/local ext4 ,d' /etc/fstab
systemctl daemon-reload; umount /usr/local; umount -l /var/lib
wipefs -q -a "$0" "$1"; systemctl start mariadb
"""
OURS = "mydyno-", ".target.wants"  # units, and folders of links to them


@pytest.fixture
def filesystems(production, machine):
    """Put /var/lib and /usr/local on filesystems of their own that fstab has mounted at boot."""
    disks = machine.disks[:2]
    production.run(Action(("sh", "-ec", OF_ITS_OWN, *disks)), timeout_s=300).check()
    yield
    shell(production, f"{GUARD} forget || true")
    production.run(Action(("sh", "-c", OF_THE_ROOT, *disks)), timeout_s=300).check()
    install_guard(production)


def test_leases_live_through_boots_of_a_machine_with_several_filesystems(
    production, machine, filesystems, timed
):
    guest = production
    first = state(guest)
    lease, *_ = plan_of(guest, 0)
    call(guest, "begin", stdin=msgspec.json.encode(lease))
    with timed("a boot that ends a trial"):
        cut(guest, machine)
    assert shell(guest, "systemctl is-system-running").strip() == "running"
    assert shell(guest, "systemctl show -P Result mydyno-boot").strip() == "success"
    shown = "systemctl show -P ExecMain{}TimestampMonotonic {}"
    ended_us = int(shell(guest, shown.format("Exit", "mydyno-boot")))
    assert 0 < ended_us < int(shell(guest, shown.format("Start", "mariadb")))
    (ended,) = leases_of(guest)
    assert ended.is_over
    assert [line for line in state(guest) if not any(word in line for word in OURS)] == [
        line for line in first if not any(word in line for word in OURS)
    ]
    lease, plan, kept = plan_of(guest, 1)
    call(guest, "begin", stdin=msgspec.json.encode(lease))
    call(guest, "confirm", lease.id, "--who", "test")
    cut(guest, machine)
    assert shell(guest, "systemctl is-system-running").strip() == "running"
    existing = reached(guest)
    seen = gathered(existing, 0)
    assert not_in_force(plan.rows, kept, scene_of(existing, seen, kept, kept)) == []
    undo(guest)
    call(guest, "forget")
    assert state(guest) == first


TUNED = {"nr_requests": "77", "iosched/read_expire": "321"}


def test_a_scheduler_comes_back_with_the_queue_that_it_had(production):
    guest = production
    disk = section(gathered(reached(guest), 0).host, "queue")["name"]
    queue = f"/sys/block/{disk}/queue"
    choice = shell(guest, f"sed 's/.*\\[//; s/\\].*//' {queue}/scheduler").strip()
    shell(guest, f"echo mq-deadline >{queue}/scheduler")
    for name, value in TUNED.items():
        shell(guest, f"echo {value} >{queue}/{name}")

    def tuned():
        return {name: shell(guest, f"cat {queue}/{name}").strip() for name in TUNED}

    try:
        first = tuned()  # the kernel rounds times
        lease, *_ = plan_of(guest, 0, {"block.scheduler": "none"})
        call(guest, "begin", stdin=msgspec.json.encode(lease))
        assert "[none]" in shell(guest, f"cat {queue}/scheduler")
        call(guest, "revert", lease.id, "--why", "test")
        assert "[mq-deadline]" in shell(guest, f"cat {queue}/scheduler")
        assert tuned() == first
    finally:
        shell(guest, f"echo none >{queue}/scheduler; echo {choice} >{queue}/scheduler")
        shell(guest, f"{GUARD} forget")
        install_guard(guest)


ON_AN_ARRAY = r"""
systemctl stop mariadb
mdadm --quiet --create /dev/md/data --run --level 0 --raid-devices 2 "$0" "$1"
mkfs.ext4 -q -F /dev/md/data
mount /dev/md/data /mnt; cp -a /var/lib/mysql/. /mnt; umount /mnt
echo "UUID=$(blkid -s UUID -o value /dev/md/data) /var/lib/mysql ext4 defaults 0 2" >>/etc/fstab
systemctl daemon-reload; mount /var/lib/mysql; chown mysql: /var/lib/mysql
systemctl start mariadb
"""
OFF_THE_ARRAY = r"""
systemctl stop mariadb
sed -i '\, /var/lib/mysql ext4 ,d' /etc/fstab
systemctl daemon-reload; umount /var/lib/mysql
mdadm --quiet --stop --scan; mdadm --quiet --zero-superblock "$0" "$1"
systemctl start mariadb
"""


@pytest.fixture
def array(production, machine):
    """Put the server's data on two disks, striped, and return their names in /sys/block."""
    disks = machine.disks[2:4]
    production.run(Action(("sh", "-ec", ON_AN_ARRAY, *disks)), timeout_s=300).check()
    real = production.run(Action(("realpath", *disks))).check().stdout.decode().split()
    yield [path.rpartition("/")[2] for path in real]
    shell(production, f"{GUARD} forget || true")
    production.run(Action(("sh", "-c", OFF_THE_ARRAY, *disks)), timeout_s=300).check()
    install_guard(production)


def test_all_disks_of_an_array_have_it_after_a_boot(production, machine, array):
    guest = production
    first = state(guest)
    there = shell(guest, f"cat /sys/block/{array[0]}/queue/scheduler")
    wanted = "none" if "[none]" not in there else "mq-deadline"
    lease, plan, kept = plan_of(guest, 0, {"block.scheduler": wanted, "block.read_ahead_kb": "64"})
    assert [disk for disk, _ in kept.target.disks] == sorted(array)
    assert len(plan.trial) == 4
    call(guest, "begin", stdin=msgspec.json.encode(lease))
    call(guest, "confirm", lease.id, "--who", "test")
    cut(guest, machine)
    for disk in array:
        queue = f"/sys/block/{disk}/queue"
        assert f"[{wanted}]" in shell(guest, f"cat {queue}/scheduler")
        assert shell(guest, f"cat {queue}/read_ahead_kb").strip() == "64"
    undo(guest)
    call(guest, "forget")
    assert state(guest) == first
    install_guard(guest)


def test_power_cuts_at_any_instant_leave_all_or_nothing(production, machine, timed):
    guest, chosen = production, random.Random(11)
    shell(guest, "rm -rf /var/lib/mydyno")
    first = state(guest)
    lease, *_ = plan_of(guest, 0)
    began = time.monotonic()
    call(guest, "begin", stdin=msgspec.json.encode(lease))
    length = time.monotonic() - began
    call(guest, "revert", lease.id, "--why", "test")
    ends = {}
    for number in range(CUTS):
        act = chosen.choice(["begin", "begin", "confirm", "revert"])
        lease, *_ = plan_of(guest, number)
        document = msgspec.json.encode(lease)
        if act != "begin":
            call(guest, "begin", stdin=document)
        words = {
            "begin": ("begin",),
            "confirm": ("confirm", lease.id, "--who", "t"),
            "revert": ("revert", lease.id, "--why", "t"),
        }[act]
        running = guest.start(Action((GUARD, *words), document if act == "begin" else b""))
        time.sleep(chosen.uniform(0.0, length if act != "confirm" else length / 4))
        del running
        with timed(f"power cut {number + 1} in {act}"):
            cut(guest, machine)
        all_held = json.loads(call(guest, "status"))
        end = all_held[-1]["state"] if all_held else "none"
        ends[act, end] = ends.get((act, end), 0) + 1
        assert end in {"none", "reverted", "kept"}, (number, act, end)
        if end == "kept" and kept_leases(leases_of(guest)):
            assert shell(guest, f"{GUARD} verify") == ""
            undo(guest)
        now = [line for line in state(guest) if not line.startswith("usr/local")]
        assert now == [line for line in first if not line.startswith("usr/local")], (number, act)
    assert sum(ends.values()) == CUTS
    with timed(f"ends: {ends}"):
        pass
