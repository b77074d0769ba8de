"""Whether KVM works here: told by booting, since a device file alone says little."""

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


def accelerator(host: Host, image: Image, told: Path) -> Accelerator:
    """Return ``kvm`` if a kernel of the image boots under it, else ``tcg``.

    The answer is kept in the file `told`: it holds until this machine is booted again.
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    boot = processes.boot_of(host)
    before = told.read_text("ascii").split() if told.is_file() else []
    if before[1:] == [boot]:
        return "kvm" if before[0] == "kvm" else "tcg"
    found: Accelerator = "kvm" if _boots(host, image) else "tcg"
    told.parent.mkdir(parents=True, exist_ok=True)
    told.write_text(f"{found} {boot}\n", encoding="ascii")
    return found


def _boots(host: Host, image: Image) -> bool:
    """Return whether a kernel comes as far as its first process, whose absence ends the trial."""
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
