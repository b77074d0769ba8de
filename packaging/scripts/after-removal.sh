#!/bin/sh
# After the package is purged (deb), or removed (rpm): the lock, what campaigns cost, and folders that are empty.
set -e
case "$1" in purge | 0) ;; *) exit 0 ;; esac
rm -rf /var/cache/mydyno
if [ -d /var/lib/mydyno ]; then
    rm -f /var/lib/mydyno/lock/lock /var/lib/mydyno/controller /var/lib/mydyno/costs.json
    find /var/lib/mydyno -depth -type d -empty -delete
fi
