#!/bin/sh
# Before the package is removed: what a campaign has changed on this host only mydyno can restore.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
for one in /var/lib/mydyno/campaigns/*/changes; do
    [ ! -e "$one" ] || {
        echo "mydyno: $one: a campaign has changes to restore; run mydyno rollback DIR, then remove the package" >&2
        exit 1
    }
done
for one in /var/lib/mydyno/labs/*.json /var/lib/mydyno/vms/*.json; do
    [ ! -e "$one" ] || {
        echo "mydyno: $one: a lab is there; run mydyno lab list, and lab down for each, then remove the package" >&2
        exit 1
    }
done
guard=/usr/local/libexec/mydyno-guard
if [ -x "$guard" ] && "$guard" status | grep -qE '"state":"(open|trial|confirmed|reverting)"'; then
    echo "mydyno: a lease is on trial here; run mydyno confirm local or mydyno rollback local, then remove the package" >&2
    exit 1
fi
