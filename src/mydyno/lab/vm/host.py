"""A virtual machine as a host: reached over ssh, and rebooted on request."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import Completed, Running, Ssh
from mydyno.host.address import Address
from mydyno.host.session import LEASE_S
from mydyno.host.ssh import PATIENCE_S
from mydyno.lab.vm.machine import Vm
from mydyno.model import Action, HostError

_ATTEMPTS = 2


@dataclass(slots=True, eq=False)
class VmHost:
    """A machine of ours behind its own ssh configuration; what it runs ends with its session."""

    vm: Vm
    _ssh: Ssh = field(init=False)

    def __post_init__(self) -> None:
        name, more = Address(self.vm.state.spec.lab), self.vm.patience
        lease_s, patience_s = more * LEASE_S, more * PATIENCE_S
        self._ssh = Ssh(name, config=self.vm.config, lease_s=lease_s, patience_s=patience_s)

    def connect(self) -> None:
        """Open the session; an emulated machine may need more than one attempt to shake hands."""
        for _ in range(round(_ATTEMPTS * self.vm.patience)):
            with suppress(HostError):
                self._ssh.folder()
                return
        self._ssh.folder()

    @property
    def name(self) -> str:
        """Return its address as a spec writes it."""
        return self._ssh.name

    def folder(self) -> Path:
        """Return a folder of the machine for uploads."""
        return self._ssh.folder()

    def run_folder(self) -> Path:
        """Return the folder of locks on the machine."""
        return self._ssh.run_folder()

    def addresses(self) -> tuple[str, str]:
        """Return the local address as the machine sees it, and the machine's address."""
        return self._ssh.addresses()

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command to its end; under emulation it is given longer."""
        return self._ssh.run(action, timeout_s=timeout_s * self.vm.patience)

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in the background."""
        return self._ssh.start(action, stderr=stderr)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the machine, atomically."""
        self._ssh.push(local, remote)

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the machine, atomically."""
        self._ssh.pull(remote, local)

    def reboot(self, release: str = "") -> None:
        """Boot it with a kernel and return when it answers; what ran in it has ended."""
        self._ssh.close()
        self.vm.reboot(release)
        self.connect()

    def close(self) -> None:
        """Disconnect; the machine keeps running."""
        self._ssh.close()
