#!/bin/sh
# Compiles ZFS for every kernel whose headers are in the chroot $1; a hook of mmdebstrap.
# The modules go to $MYDYNO_OUT/RELEASE/*.ko.  Natively: the guest may be emulated, this is not.
set -eu
root="$1"

# Unpacked, not installed: its installation would build for kernels of its own choice.
cd "$root/root"
APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get download -qq "$MYDYNO_ZFS"
dpkg-deb --extract ./*.deb "$root"
version="$(cd "$root/usr/src" && echo zfs-*)"
version="${version#zfs-}"
mountpoint -q "$root/proc" || mount -t proc proc "$root/proc" # ends with our mount namespace

for tree in "$root"/lib/modules/*/build; do
    release="$(basename "$(dirname "$tree")")"
    chroot "$root" dkms build "zfs/$version" -k "$release" -j "$(nproc)" ||
        { tail -n 40 "$root/var/lib/dkms/zfs/$version/build/make.log" >&2; exit 1; }
    mkdir -p "$MYDYNO_OUT/$release"
    cp "$root/var/lib/dkms/zfs/$version/$release"/*/module/*.ko* "$MYDYNO_OUT/$release/"
done
