"""Whether KVM works here, tested by booting a kernel."""

import os
from pathlib import Path

from mydyno.host import Host, processes
from mydyno.lab.vm.image import Image
from mydyno.lab.vm.qemu import PROGRAM
from mydyno.lab.vm.values import Accelerator
from mydyno.model import Action, HostError

KVM = Path("/dev/kvm")
_TRIAL_S = 30.0  # under KVM a kernel reaches its first process in a second or two
_REACHED = b"as init process"


def accelerator(host: Host, image: Image, cached: Path) -> Accelerator:
    """Return ``kvm`` if a kernel of the image boots under it, else ``tcg``.

    The result is cached in the file `cached` until the next boot of this machine.
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    boot = processes.boot_of(host)
    before = cached.read_text("ascii").split() if cached.is_file() else []
    if before[1:] == [boot]:
        return "kvm" if before[0] == "kvm" else "tcg"
    found: Accelerator = "kvm" if _boots(host, image) else "tcg"
    cached.parent.mkdir(parents=True, exist_ok=True)
    cached.write_text(f"{found} {boot}\n", encoding="ascii")
    return found


def _boots(host: Host, image: Image) -> bool:
    """Return whether a kernel reaches its first process; that is missing, so it stops there."""
    kernel = image.kernel(image.releases[0])
    argv = (
        *("timeout", "--signal=KILL", f"{_TRIAL_S:.0f}", PROGRAM, "-nodefaults"),
        *("-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"),
        *("-accel", "kvm", "-cpu", "host", "-m", "512M", "-serial", "stdio"),
        *("-kernel", str(kernel.vmlinuz), "-initrd", str(kernel.initrd)),
        *("-append", "console=ttyS0 panic=-1 rdinit=/no-such-program root=/dev/no-such-disk"),
    )
    try:
        done = host.run(Action(argv), timeout_s=2 * _TRIAL_S)
    except HostError:
        return False
    return done.returncode == 0 and (_REACHED in done.stdout or b"Kernel panic" in done.stdout)
