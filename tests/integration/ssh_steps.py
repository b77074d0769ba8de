"""Steps of the tests over ssh: namespaces joined by veth pairs, an sshd of our own in each."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

from mydyno.host import Ssh
from mydyno.host.ssh_connection import Address

# Subnets: of two runs at once, and of the workers of each, all want their own.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
FIRST = os.getppid() + 60 * int(WORKER.removeprefix("gw")) if WORKER else os.getpid()
NUMBERS = (FIRST + number for number in itertools.cycle(range(60)))
SSHD = """
Port 22
HostKey {home}/host_key
PidFile {home}/sshd.pid
AuthorizedKeysFile {home}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
AllowTcpForwarding yes
SetEnv MYDYNO_RUN_DIR={home}/run
"""
CONFIG = """
Host *
{more}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile none
"""


def do(*argv, check=True):
    return subprocess.run(
        [str(a) for a in argv], check=check, capture_output=True, text=True, timeout=60
    ).stdout


def key(path):
    do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path)


# another machine's locks and records are its own
OWN_STATE = (
    "mkdir -p -m 700 /var/lib/mydyno && mount -t tmpfs -o mode=700 none /var/lib/mydyno && "
    'exec "$@"'
)


class Far:
    """A namespace with an sshd: another machine, but for its files."""

    def __init__(self, folder, number, name):
        self.home = folder / name
        self.home.mkdir()
        (self.home / "run").mkdir()
        self.name = name
        self.ns = f"mydyno-{os.getpid()}-{number}-{name}"
        self.here, self.there = f"md{os.getpid()}h{number}"[-15:], f"md{os.getpid()}t{number}"[-15:]
        self.address = f"10.213.{number}.2"
        self.gateway = f"10.213.{number}.1"
        self.sshd = None

    def up(self, folder):
        do("ip", "netns", "add", self.ns)
        do("ip", "link", "add", self.here, "type", "veth", "peer", self.there, "netns", self.ns)
        do("ip", "addr", "add", f"{self.gateway}/24", "dev", self.here)
        do("ip", "link", "set", self.here, "up")
        self.inside("ip", "addr", "add", f"{self.address}/24", "dev", self.there)
        self.inside("ip", "link", "set", self.there, "up")
        self.inside("ip", "link", "set", "lo", "up")
        key(self.home / "host_key")
        shutil.copy(folder / "key.pub", self.home / "authorized_keys")
        (self.home / "sshd_config").write_text(SSHD.format(home=self.home))
        with (folder / "known_hosts").open("a") as known:
            public = (self.home / "host_key.pub").read_text().split()
            known.write(f"{self.address} {public[0]} {public[1]}\n")
        self.listen()

    def listen(self):
        alone = ("unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_STATE, "sshd")
        argv = ("ip", "netns", "exec", self.ns, *alone, "/usr/sbin/sshd", "-D", "-e")
        with (self.home / "sshd.log").open("ab") as log:
            self.sshd = subprocess.Popen(
                [*argv, "-f", str(self.home / "sshd_config")], stderr=log, stdin=subprocess.DEVNULL
            )
        until = time.monotonic() + 120
        while self.sshd.poll() is None and time.monotonic() < until:
            if "LISTEN" in self.inside("ss", "-Hltn", "sport", "=", ":22"):
                return
            time.sleep(0.05)
        raise AssertionError((self.home / "sshd.log").read_text())

    def inside(self, *argv, check=True):
        return do("ip", "netns", "exec", self.ns, *argv, check=check)

    def sessions(self):
        """Return the processes of sshd that serve our connections."""
        mine = do("ip", "netns", "pids", self.ns, check=False).split()
        return [int(p) for p in mine if "sshd: root" in cmdline(p)]

    def cut(self, seconds):
        """Take the link down, silently, and bring it back."""
        do("ip", "link", "set", self.here, "down")
        time.sleep(seconds)
        do("ip", "link", "set", self.here, "up")

    def hang_up(self):
        """Kill what serves our connections: the link is down at once, and both ends know."""
        for pid in self.sessions():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def processes(self):
        """Return what still runs there but its sshd."""
        mine = do("ip", "netns", "pids", self.ns, check=False).split()
        return [line for p in mine if (line := cmdline(p)) and "sshd" not in line]

    def left(self):
        """Return what lies in its folder for sessions and locks."""
        return sorted(p.name for p in (self.home / "run").glob("mydyno-ssh-*"))

    def stop(self):
        if self.sshd is not None:
            self.sshd.terminate()
            self.sshd.wait()
            self.sshd = None

    def down(self):
        self.hang_up()
        self.stop()
        for pid in do("ip", "netns", "pids", self.ns, check=False).split():
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                continue
        do("ip", "netns", "del", self.ns, check=False)
        do("ip", "link", "del", self.here, check=False)


def cmdline(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


@contextmanager
def hosts(*names):
    """Yield a folder with an ssh configuration, and a far host for each name."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-ssh-test-", dir="/var/tmp"))
    folder.chmod(0o755)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    key(folder / "key")
    made = {}
    try:
        for name in names:
            made[name] = Far(folder, next(NUMBERS) % 250 + 1, name)
            made[name].up(folder)
        configure(folder)
        yield SimpleNamespace(folder=folder, config=folder / "ssh_config", **made)
    finally:
        for far in made.values():
            far.down()
        shutil.rmtree(folder)


def join(one, other):
    """Give `other` a link of its own to `one`, and the way to its address."""
    number = next(NUMBERS) % 250 + 1
    here, there = f"mda{one.here}"[-15:], f"mdb{other.here}"[-15:]
    peer = ("type", "veth", "peer", there, "netns", other.ns)
    do("ip", "link", "add", here, "netns", one.ns, *peer)
    for far, name, last in ((one, here, 1), (other, there, 2)):
        far.inside("ip", "addr", "add", f"10.214.{number}.{last}/24", "dev", name)
        far.inside("ip", "link", "set", name, "up")
    other.inside("ip", "route", "add", f"{one.address}/32", "via", f"10.214.{number}.1")


def configure(folder, more=""):
    (folder / "ssh_config").write_text(CONFIG.format(folder=folder, more=more))


@contextmanager
def connected(net, far, **options):
    host = Ssh(Address(far.address, "root"), config=net.config, **options)
    try:
        yield host
    finally:
        host.close()
