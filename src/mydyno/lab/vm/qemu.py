"""The command line of QEMU: pure, so that every machine's can be read in a test."""

from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.lab.vm.values import Accelerator, Throttle, VmPaths, VmSpec

PROGRAM = "qemu-system-x86_64"
ROOT, SEED = "mydyno-root", "mydyno-seed"
_MEBI = 1 << 20
# Without KVM the newer instructions are emulated one by one, and slower than what they replace.
_CPU = {"kvm": ("host", "kvm"), "tcg": ("Nehalem", "tcg,thread=multi")}
_APPEND = (
    "root=/dev/disk/by-id/virtio-mydyno-root ro console=ttyS0 loglevel=5 panic=-1 "
    "net.ifnames=0 systemd.show_status=error mitigations=off"
)


@dataclass(frozen=True, slots=True)
class Boot:
    """What a machine boots: a kernel and its RAM disk, under an accelerator."""

    kernel: str
    initrd: str
    accelerator: Accelerator


def command(spec: VmSpec, paths: VmPaths, boot: Boot, port: int) -> tuple[str, ...]:
    """Return the command that runs a machine in the foreground.

    Its network is QEMU's own: nothing but `port` of loopback leads in, and nothing leads out.
    A reboot ends QEMU, so that the next kernel can be another one.
    """
    cpu, accelerator = _CPU[boot.accelerator]
    forward = f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"
    return (
        *(PROGRAM, "-name", f"mydyno-{spec.lab}", "-pidfile", str(paths.mark)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", "-accel", accelerator, "-cpu", cpu),
        *("-smp", str(_cores(spec, boot)), "-m", f"{spec.memory // _MEBI}M"),
        *("-kernel", boot.kernel, "-initrd", boot.initrd, "-append", _APPEND),
        *("-serial", f"file:{paths.console}", "-device", "virtio-rng-pci"),
        *("-netdev", forward, "-device", "virtio-net-pci,netdev=net,romfile="),
        *_drive(ROOT, f"file={paths.root},format=qcow2,cache=unsafe"),
        *_drive(SEED, f"file={paths.seed},format=raw,readonly=on"),
        *_disks(spec, paths),
    )


def serial(number: int) -> str:
    """Return the serial number of a data disk, counted from 0: its name in /dev/disk/by-id."""
    return f"mydyno{number}"


def _cores(spec: VmSpec, boot: Boot) -> int:
    """Return how many processors it has: emulated ones wait for each other at every turn.

    With one, a command over ssh takes half to two thirds of the time (measured on two cores).
    """
    return 1 if boot.accelerator == "tcg" else spec.cores


def _disks(spec: VmSpec, paths: VmPaths) -> Sequence[str]:
    """Return the data disks; their caches are off, so that a flush is one."""
    caps = _caps(spec.throttle)
    words: list[str] = []
    for number in range(spec.disks):
        file = f"file={paths.disk(number)},format=raw,cache=none,aio=threads"
        words += _drive(serial(number), ",".join((file, *caps)))
    return words


def _drive(name: str, options: str) -> tuple[str, ...]:
    device = f"virtio-blk-pci,drive={name},serial={name}"
    return ("-drive", f"if=none,id={name},{options}", "-device", device)


def _caps(caps: Throttle) -> tuple[str, ...]:
    """Return QEMU's throttling of one disk; bursts only where there is something to burst to."""
    limits = {
        "iops-total": caps.iops,
        "bps-total": caps.bytes_per_s,
        "iops-total-max": caps.burst_iops,
        "bps-total-max": caps.burst_bytes_per_s,
        "iops-total-max-length": caps.burst_s if caps.burst_iops else 0,
        "bps-total-max-length": caps.burst_s if caps.burst_bytes_per_s else 0,
    }
    return tuple(f"throttling.{name}={value:.0f}" for name, value in limits.items() if value)
