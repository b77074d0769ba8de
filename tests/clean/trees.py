"""A clean Debian tree, entered in a mount namespace, and the packages that are tried in it."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = """
[campaign]
question = "Is a larger pool worth it?"
[stack]
server = "auto"
device = "here"
[treatments.small]
"mysqld.innodb_buffer_pool_size" = "32M"
[treatments.large]
"mysqld.innodb_buffer_pool_size" = "128M"
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 1
table_size = 1000
threads = [2]
[design]
kind = "blocks"
blocks = 2
[protocol]
warmup_s = 2
window_s = 5
"""
ENTER = """
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /sys "$1/sys"
mount --rbind /dev "$1/dev"
cp /etc/resolv.conf "$1/etc/resolv.conf"
exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive sh -ec "$2"
"""


@dataclass
class Tree:
    """A system's files; `run` returns what a script in it printed, both streams together."""

    path: Path

    def run(self, script, *, exit_code=0):
        argv = ["unshare", "-m", "--propagation", "private", "sh", "-ec", ENTER, "sh"]
        argv += [str(self.path), script]
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        assert done.returncode == exit_code, done.stdout
        return done.stdout

    def files(self):
        """Return the files of packages; not what apt, dpkg and campaigns write."""
        return self.run(
            "find /usr /etc /opt /var/lib /var/cache -xdev ! -path '/var/lib/dpkg*'"
            " ! -path '/var/lib/apt*' ! -path '/var/cache/apt*' ! -path '*/__pycache__*'"
        ).splitlines()


def packed(pattern):
    """Return the one file of dist/ that matches; a test without it is skipped."""
    found = [*(ROOT / "dist").glob(pattern)]
    if len(found) != 1:
        pytest.skip(f"dist/{pattern}: not built")
    return found[0]
