#!/bin/sh
# Makes the tree on which `make test-keep` starts systemd: Debian with MariaDB, sshd and what a lease
# meets on a host.  It is kept in the cache until the list of packages changes.
set -eu
packages=systemd,systemd-sysv,dbus,mariadb-server,openssh-server,iproute2,procps,strace,libaio1,libncurses6,libnuma1,tuned,ansible-core,python3
cache=${MYDYNO_CACHE:-/var/cache/mydyno}
tree=$cache/guest/$(printf '%s' "$packages" | sha256sum | cut -c1-16)
if [ ! -d "$tree" ]; then
    mkdir -p "$cache/guest"
    new=$(mktemp -d "$cache/guest/new.XXXXXX")
    chmod 755 "$new"
    trap 'rm -rf "$new"' EXIT
    mmdebstrap --quiet --variant=minbase --include="$packages" bookworm "$new" >&2
    mv "$new" "$tree"
fi
echo "$tree"
