#!/bin/sh
# guest.sh ROOT NAME: starts systemd on a tree, in the namespaces it was called in.
# The host's own settings are read-only there: only those of the guest's network can be written.
set -e
root=$1 name=$2
mount --make-rprivate /
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for node in null zero full random urandom tty; do
    touch "$root/dev/$node"
    mount --bind "/dev/$node" "$root/dev/$node"
done
mkdir -p "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -sf pts/ptmx "$root/dev/ptmx"
ln -sf /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount --bind "$root/proc/sys/net" "$root/proc/sys/net"
mount -o remount,bind,rw "$root/proc/sys/net"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount --bind -o ro "$3" "$root/opt"
hostname "$name"
ip link set lo up
cd "$root"
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
exec env -i container=mydyno PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal
