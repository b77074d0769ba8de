"""A guest: systemd as the first process of namespaces, on a tree of its own; a second to SQL.

Its /run is lost with it, as at a reboot; its network is a pair of links; it is ended by pid.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SERVERS = Path(os.environ.get("MYDYNO_CACHE", "/var/cache/mydyno")) / "servers"
CGROUPS = Path("/sys/fs/cgroup/unified")
ENV = ("env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/libexec", "HOME=/root")
NAMESPACES = ("--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup")
MYSQL = "/opt/mysql-8.0.33/bin"
LIBRARIES = "LD_LIBRARY_PATH=/opt/mysql-8.0.33/lib/private"
MYSQL_UNIT = f"""[Unit]
Description=MySQL
After=network.target
[Service]
Type=notify
User=mysql
RuntimeDirectory=mysqld
Environment={LIBRARIES}
ExecStart={MYSQL}/mysqld
TimeoutSec=0
LimitNOFILE=10000
Restart=on-failure
[Install]
WantedBy=multi-user.target
"""
MYSQL_OPTIONS = """[mysqld]
basedir = /opt/mysql-8.0.33
datadir = /var/lib/mysql8
socket = /run/mysqld/mysqld.sock
pid-file = /run/mysqld/mysqld.pid
mysqlx = OFF
innodb_buffer_pool_size = 64M
!includedir /etc/mysql/mysql.conf.d/
"""


def group(number):
    """Return the control group of a guest; whoever makes it has its number."""
    return CGROUPS / f"mydyno-guest-{number}"


def claimed(number):
    """Return whether a guest's number was free, and is ours now."""
    with contextlib.suppress(FileExistsError):
        group(number).mkdir()
        return True
    return False


def base():
    """Return the tree that guests lie over, made where it is missing."""
    made = subprocess.run([ROOT / "packaging/guest.sh"], check=True, stdout=subprocess.PIPE)
    return Path(made.stdout.decode().split()[-1])


class Guest:
    """A guest of its own tree; `flavour` is the server that its unit starts."""

    def __init__(self, flavour="mariadb"):
        self.number = next(n for n in range(1, 250) if claimed(n))
        self.name = f"guest{self.number}"
        self.folder = Path(tempfile.mkdtemp(prefix="mydyno-guest-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self.root = self.folder / "root"
        self.cgroup = group(self.number)
        self.address = f"10.214.{self.number}.2"
        self.link = f"mydynoguest{self.number}"
        self.process = None
        for name in ("upper", "work", "root"):
            (self.folder / name).mkdir()
        layers = f"lowerdir={base()},upperdir={self.folder}/upper,workdir={self.folder}/work"
        run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
        self._prepare(flavour)

    def _prepare(self, flavour):
        ssh = self.root / "root/.ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "key")
        shutil.copy(self.folder / "key.pub", ssh / "authorized_keys")
        (self.folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.folder}/key\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.folder}/known\n  StrictHostKeyChecking accept-new\n"
        )
        (self.root / "etc/hostname").write_text(f"{self.name}\n")
        (self.root / "etc/machine-id").write_text(f"{self.number:032x}\n")
        if flavour == "mysql":
            self._mysql()

    def _mysql(self):
        units = self.root / "etc/systemd/system"
        (units / "mysql.service").unlink(missing_ok=True)
        (units / "mysqld.service").unlink(missing_ok=True)
        (units / "multi-user.target.wants/mariadb.service").unlink()
        unit = self.root / "lib/systemd/system/mysql.service"
        unit.unlink(missing_ok=True)
        unit.write_text(MYSQL_UNIT)
        (units / "multi-user.target.wants/mysql.service").symlink_to(
            "/lib/systemd/system/mysql.service"
        )
        options = self.root / "etc/mysql/my.cnf"
        options.unlink()
        options.write_text(MYSQL_OPTIONS)
        (self.root / "etc/mysql/mysql.conf.d").mkdir(exist_ok=True)
        run("mount", "--bind", SERVERS, self.root / "opt")
        try:
            data = "--datadir=/var/lib/mysql8"
            run("chroot", self.root, "install", "-d", "-o", "mysql", "/var/lib/mysql8")
            where = (f"--basedir={Path(MYSQL).parent}", data, "--user=mysql")
            program = ("env", LIBRARIES, f"{MYSQL}/mysqld", "--no-defaults")
            run("chroot", self.root, *program, "--initialize-insecure", *where)
        finally:
            run("umount", self.root / "opt")

    def boot(self, *, wait=True):
        """Start it; with `wait` until its server answers."""
        script = (HERE / "guest.sh", self.root, self.name, SERVERS)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", *NAMESPACES, "--fork", "--kill-child", *script],
                preexec_fn=self._enter,  # noqa: PLW1509 - it writes one file
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(lambda: self.init() and self.try_in("test", "-S", "/run/systemd/private"))
        self._join()
        if wait:
            until(self.answers, 60)

    def _enter(self):
        (self.cgroup / "cgroup.procs").write_text(str(os.getpid()))

    def _join(self):
        pid = self.init()
        run("ip", "link", "add", self.link, "type", "veth", "peer", "eth0", "netns", pid)
        run("ip", "addr", "add", f"10.214.{self.number}.1/24", "dev", self.link)
        run("ip", "link", "set", self.link, "up")
        self.inside("ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self.inside("ip", "link", "set", "eth0", "up")

    def init(self):
        """Return the pid of its first process, 0 where there is none."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return int(path.read_text().split()[0])
        except (OSError, IndexError):
            return 0

    def argv(self, *argv):
        """Return a command as it is run inside."""
        enter = ("nsenter", "-t", str(self.init()), "-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w")
        return [*enter, "--", *ENV, *map(str, argv)]

    def try_in(self, *argv):
        """Return whether a command inside succeeds."""
        return subprocess.run(self.argv(*argv), capture_output=True, check=False).returncode == 0

    def inside(self, *argv, check=True, stdin=""):
        """Return what a command inside prints."""
        done = subprocess.run(
            self.argv(*argv), check=False, capture_output=True, text=True, input=stdin, timeout=120
        )
        if check and done.returncode:
            raise AssertionError(f"{argv}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def answers(self):
        """Return whether its server answers."""
        return self.try_in("mariadb", "-e", "SELECT 1")

    def sql(self, text):
        """Return what the server answers, a row a line."""
        return self.inside("mariadb", "--batch", "--skip-column-names", "-e", text).strip()

    def end(self):
        """Kill all of it at once, as a power cut does, but that nothing written is lost."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.init() or self.process.pid, signal.SIGKILL)
        self.process.wait()
        until(lambda: not (self.cgroup / "cgroup.procs").read_text())
        subprocess.run(["ip", "link", "delete", self.link], capture_output=True, check=False)
        self.process = None

    def reboot(self):
        """End it, and start it on the same tree."""
        self.end()
        self.boot()

    def remove(self):
        """End it and remove its tree."""
        self.end()
        run("umount", "-l", self.root)
        remove_group(self.cgroup)
        shutil.rmtree(self.folder)

    def state(self):
        """Return all of /etc with modes and owners, and what a lease may have left elsewhere."""
        found = {}
        for top in ("etc", "usr/local", "var/lib/mydyno"):
            for path in sorted((self.root / top).rglob("*")):
                found[str(path.relative_to(self.root))] = described(path)
        return {name: one for name, one in found.items() if name not in NOISE}

    def install(self):
        """Put the guard where `apply` puts it."""
        place = self.root / "usr/local/libexec"
        place.mkdir(exist_ok=True)
        shutil.copy(ROOT / "src/mydyno/bin/mydyno-guard", place)

    @property
    def ssh(self):
        """Return the host as mydyno names it."""
        return f"ssh://root@{self.address}"


# written by the system itself
NOISE = {
    "etc/tuned/active_profile",
    "etc/tuned/profile_mode",
    "etc/resolv.conf",
    "etc/.pwd.lock",
    "etc/ld.so.cache",
    "etc/mtab",
}


def described(path):
    """Return what a file is: mode, owner, text or target."""
    found = path.lstat()
    text = ""
    if stat.S_ISREG(found.st_mode):
        text = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(found.st_mode):
        text = str(path.readlink())
    return f"{found.st_mode:o} {found.st_uid}:{found.st_gid} {text}"


def run(*argv):
    """Run a command of this machine."""
    done = subprocess.run(
        [str(one) for one in argv], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout


def until(condition, seconds=30.0):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def remove_group(group):
    """Remove a control group and those below it."""
    for below in sorted(group.rglob("*"), key=lambda p: -len(p.parts)):
        if below.is_dir():
            below.rmdir()
    group.rmdir()
