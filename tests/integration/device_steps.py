"""Steps that the tests of real devices share: a blank one, and all that one can hold."""

import errno
import os
import struct
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

MIB = 1 << 20
SIZE = 320 * MIB  # the least that mkfs.xfs accepts is 300 MiB


def run(*argv, stdin=b""):
    done = subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, (argv, done.stdout, done.stderr)
    return done.stdout


def once_free(step, patience_s=10.0):
    """Take a step on a device that may be in use for a moment after a detach; return its result."""
    end = time.monotonic() + patience_s
    while True:
        try:
            return step()
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise
            time.sleep(0.05)


def attach(device, image):
    """Attach a file to this loop device, which had another one."""

    def attached():
        argv = ["losetup", device, str(image)]
        env = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=env)
        if os.strerror(errno.EBUSY) in done.stderr:
            raise OSError(errno.EBUSY, done.stderr)
        assert done.returncode == 0, done.stderr

    once_free(attached)


@contextmanager
def blank(folder, *options, size=SIZE):
    """A loop device of zeroes: to mydyno a real one, since no lab of ours is behind it."""
    image = Path(folder) / "device.img"
    with image.open("wb") as file:
        file.truncate(size)
    device = run("losetup", "--find", "--show", *options, image).decode().strip()
    try:
        yield device
    finally:
        run("losetup", "--detach", device)
        image.unlink()


# What blkid calls it -> how it is made: a tool, its options, and what goes to its standard input.
MADE = {
    "ext2": ("mkfs.ext2", "-q", "-F", "{}"),
    "ext3": ("mkfs.ext3", "-q", "-F", "{}"),
    "ext4": ("mkfs.ext4", "-q", "-F", "{}"),
    "jbd": ("mke2fs", "-q", "-F", "-O", "journal_dev", "{}"),
    "xfs": ("mkfs.xfs", "-q", "-f", "{}"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "{}"),
    "swap": ("mkswap", "{}"),
    "minix": ("mkfs.minix", "{}"),
    "bfs": ("mkfs.bfs", "{}"),
    "vfat": ("mkfs.vfat", "-I", "{}"),
    "exfat": ("mkfs.exfat", "{}"),
    "ntfs": ("mkfs.ntfs", "-Q", "-F", "{}"),
    "f2fs": ("mkfs.f2fs", "-q", "-f", "{}"),
    "jfs": ("mkfs.jfs", "-q", "{}"),
    "reiserfs": ("mkfs.reiserfs", "-q", "-ff", "{}"),
    "nilfs2": ("mkfs.nilfs2", "-q", "-f", "{}"),
    "udf": ("mkudffs", "{}"),
    "gfs2": ("mkfs.gfs2", "-O", "-q", "-p", "lock_nolock", "-j", "1", "-J", "8", "{}"),
    "bcache": ("make-bcache", "-B", "{}"),
    "LVM2_member": ("pvcreate", "--quiet", "--config", 'devices{{filter=["a|.*|"]}}', "{}"),
    "crypto_LUKS": (
        *("cryptsetup", "luksFormat", "--batch-mode", "--type", "luks2", "--pbkdf", "pbkdf2"),
        *("--pbkdf-force-iterations", "1000", "{}", "-"),
    ),
    "dos": ("sfdisk", "--quiet", "--no-reread", "--label", "dos", "{}"),
    "gpt": ("sfdisk", "--quiet", "--no-reread", "--label", "gpt", "{}"),
    "sun": ("sfdisk", "--quiet", "--no-reread", "--label", "sun", "{}"),
    "sgi": ("sfdisk", "--quiet", "--no-reread", "--label", "sgi", "{}"),
}
STDIN = {"crypto_LUKS": b"a phrase of the test"} | dict.fromkeys(
    ("dos", "gpt", "sun", "sgi"), b",200M\n"
)
# Images that a tool writes into a file: the tool with its options, and the file it wrote.
IMAGES = {
    "iso9660": ("genisoimage", "-quiet", "-o", "{image}", "{folder}"),
    "squashfs": ("mksquashfs", "{folder}", "{image}", "-quiet", "-no-progress"),
    "erofs": ("mkfs.erofs", "{image}", "{folder}"),
    "cramfs": ("mkfs.cramfs", "{folder}", "{image}"),
}


def md_superblock(sector):
    """An md superblock of version 1.x as linux/raid/md_p.h lays it out; the kernel has no md."""
    head = struct.pack("<IIII", 0xA92B4EFC, 1, 0, 0) + b"u" * 16 + b"mydyno:0".ljust(32, b"\0")
    head = head.ljust(144, b"\0") + struct.pack("<Q", sector)
    return (sector * 512, head.ljust(256, b"\0"))


def zfs_label():
    """The uberblocks of a ZFS label: its magic, once a KiB in the second half of the label."""
    return (128 << 10, struct.pack("<Q", 0x00BAB10C).ljust(1024, b"\0") * 128)


# What no tool makes here, written from its documented layout: where, and the bytes.
CRAFTED = {
    "linux_raid_member": md_superblock(8),
    "zfs_member": zfs_label(),
    "swsuspend": (4086, b"S1SUSPEND\0"),
    "VMFS_volume_member": (0x100000, struct.pack("<I", 0xC001D00D)),
    "ceph_bluestore": (0, b"bluestore block device"),
    "oracleasm": (32, b"ORCLDISK"),
    "LVM1_member": (0, b"HM\x02\x00"),
    "romfs": (0, b"-rom1fs-" + struct.pack(">II", 1024, 0)),
}


def write(device, at, data):
    with Path(device).open("r+b", buffering=0) as file:
        file.seek(at)
        file.write(data)
