#!/bin/sh
# Fetches nfpm, which writes the .deb and the .rpm, through the Go module proxy, and prints its path.
# Safe to run again.  Needs Go 1.24 or newer; its public database of sums checks the source.
set -eu
umask 022
version=v2.45.2
if [ "$(id -u)" = 0 ]; then home_cache=/var/cache/mydyno; else home_cache="$HOME/.cache/mydyno"; fi
tools="${MYDYNO_CACHE:-$home_cache}/tools"
program="$tools/nfpm-$version"
if [ ! -x "$program" ]; then
    command -v go >/dev/null || {
        echo "nfpm.sh: go not found: install Go 1.24 or newer" >&2
        exit 3
    }
    mkdir -p "$tools"
    part="$(mktemp -d "$tools/part.XXXXXX")"
    trap 'chmod -R u+w "$part"; rm -rf "$part"' EXIT INT TERM
    GOPATH="$part/go" GOFLAGS="-modcacherw -trimpath" GOBIN="$part" \
        go install "github.com/goreleaser/nfpm/v2/cmd/nfpm@$version" >"$part/log" 2>&1 || {
        tail -5 "$part/log" >&2
        exit 3
    }
    mv "$part/nfpm" "$program"
fi
echo "$program"
