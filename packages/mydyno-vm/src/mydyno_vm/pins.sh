#!/bin/sh
# Configures in the chroot $1 which archive a package comes from; a hook of mmdebstrap, before any is.
set -eu
mkdir -p "$1/etc/apt/preferences.d"
cp "$MYDYNO_GUEST/etc/apt/preferences.d/mydyno" "$1/etc/apt/preferences.d/"
