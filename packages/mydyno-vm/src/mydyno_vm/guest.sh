#!/bin/sh
# Makes the chroot $1 a guest: its files, the ZFS modules, the initial RAM disks; a hook of
# mmdebstrap.  Kernels and RAM disks go to $MYDYNO_OUT: QEMU boots them from there.
set -eu
root="$1"

cp -R "$MYDYNO_GUEST/." "$root/"
chown -R root:root "$root/etc"
# The RAM disk mounts a plain disk and no more; what is not in it cannot hold a boot up.
for part in mdadm lvm2 dmsetup btrfs; do
    rm -f "$root/usr/share/initramfs-tools/hooks/$part" \
        "$root"/usr/share/initramfs-tools/scripts/*/"$part"
done
printf '%s\n' virtio_pci virtio_blk ext4 crc32c_generic >"$root/etc/initramfs-tools/modules"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" # ends with our mount namespace

for modules in "$MYDYNO_MODULES"/*; do
    release="$(basename "$modules")"
    mkdir -p "$root/lib/modules/$release/updates/dkms"
    cp "$modules"/*.ko* "$root/lib/modules/$release/updates/dkms/"
    chroot "$root" depmod "$release"
    chroot "$root" update-initramfs -c -k "$release" 2>/dev/null ||
        chroot "$root" update-initramfs -u -k "$release"
    cp "$root/boot/vmlinuz-$release" "$root/boot/initrd.img-$release" "$MYDYNO_OUT/"
done
rm -f "$root"/boot/vmlinuz-* "$root"/boot/initrd.img-*

# Nothing runs by itself on a machine that measures, and pools are imported only by us.
off="mariadb.service apt-daily.timer apt-daily-upgrade.timer man-db.timer dpkg-db-backup.timer
    e2scrub_all.timer fstrim.timer logrotate.timer mdcheck_start.timer mdcheck_continue.timer
    mdmonitor-oneshot.timer zfs-import-cache.service zfs-mount.service zfs-share.service
    zfs-volume-wait.service zfs-load-module.service zfs.target zfs-import.target
    zfs-volumes.target lvm2-monitor.service blk-availability.service e2scrub_reap.service"
for unit in $off; do chroot "$root" systemctl disable "$unit" >/dev/null 2>&1 || true; done
chroot "$root" systemctl enable mydyno-seed.service ssh.service
chroot "$root" systemctl mask getty.target getty@tty1.service serial-getty@ttyS0.service \
    systemd-logind.service systemd-networkd.service systemd-networkd.socket \
    modprobe@drm.service modprobe@efi_pstore.service systemd-pstore.service
rm -f "$root"/etc/ssh/ssh_host_* "$root/var/lib/dbus/machine-id"
# An empty one would be a first boot, which enables all that is disabled here.
echo 6d7964796e6f6d7964796e6f6d796479 >"$root/etc/machine-id"
chroot "$root" dpkg-query --show >"$MYDYNO_OUT/packages.txt"
