#!/bin/sh
# Fetches go-tpc, which only `make bench-tpcc` compares with, through the Go module proxy.
# Safe to run again.  Without Go, or where the proxy does not have it, the bench goes without.
set -eu
umask 022
# v1.0.9 is the newest whose source the proxy hands out; its sums are stored here, since the public
# database of sums does not answer for it.
version=v1.0.9
source=DeFrlVnNzC+SxiRIihNhD9fWHnHhMZWDSFNfUVq67Ys=
module=DONRE8wmVOFcob3OAaTHYAzSyR3O9fhDT6Lo5mn7xPk=

if [ "$(id -u)" = 0 ]; then home_cache=/var/cache/mydyno; else home_cache="$HOME/.cache/mydyno"; fi
tools="${MYDYNO_CACHE:-$home_cache}/tools"
[ ! -x "$tools/go-tpc" ] || exit 0
command -v go >/dev/null || {
    echo "go-tpc.sh: go is not installed (apt-get install golang-go); the bench does without" >&2
    exit 0
}

mkdir -p "$tools"
part="$(mktemp -d "$tools/part.XXXXXX")"
trap 'chmod -R u+w "$part"; rm -rf "$part"' EXIT INT TERM
name=github.com/pingcap/go-tpc
printf 'module bench\ngo 1.19\nrequire %s %s\n' "$name" "$version" >"$part/go.mod"
cat >"$part/go.sum" <<EOF
$name $version h1:$source
$name $version/go.mod h1:$module
EOF
if (cd "$part" && GOPATH="$part/go" GOFLAGS=-modcacherw \
    go build -mod=mod -trimpath -o go-tpc "$name/cmd/go-tpc") >"$part/log" 2>&1; then
    mv "$part/go-tpc" "$tools/go-tpc"
    echo "$tools/go-tpc"
else
    tail -3 "$part/log" >&2
    echo "go-tpc.sh: could not be fetched; the bench does without" >&2
fi
