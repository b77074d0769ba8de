#!/bin/sh
# Builds mydyno-probe, mydyno-disk and mydyno-guard for ARM64 on another processor: the compiler and its library come
# from Debian's own packages, unpacked below target/, so that nothing is installed and no root is needed.
# Needs: apt-get, cargo, and the linker of gcc-aarch64-linux-gnu libc6-dev-arm64-cross.
set -eu
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu
for tool in apt-get cargo aarch64-linux-gnu-gcc; do
    command -v "$tool" >/dev/null || {
        echo "arm64.sh: $tool not found: apt-get install cargo gcc-aarch64-linux-gnu libc6-dev-arm64-cross" >&2
        exit 3
    }
done
own="$(dpkg --print-architecture)"
home="$PWD/target/arm64-compiler"
mkdir -p "$home/lists/partial" "$home/cache/archives/partial" "$home/state"
apt() {
    program="$1"
    shift
    "$program" -qq -o "APT::Architectures=$own,arm64" -o "Dir::State::lists=$home/lists" \
        -o "Dir::Cache=$home/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}
candidate() { apt apt-cache policy "$1" | sed -n 's/^  Candidate: \([^(].*\)/\1/p'; }

apt apt-get update
version="$(candidate rustc-web)" name=-web # the newer one of a Debian release, where there is one
[ -n "$version" ] || { version="$(candidate rustc)" name=; }
number="$(echo "$version" | cut -d. -f1,2)"
if [ ! -e "$home/$version/done" ]; then
    rm -rf "${home:?}/$version"
    mkdir -p "$home/$version/debs"
    (
        cd "$home/$version/debs"
        # what the compiler links to and this system lacks; apt works it out, and installs nothing
        cp /var/lib/dpkg/status "$home/state/status"
        apt apt-get -o Dir::State::status="$home/state/status" -o Dir::Cache::archives="$PWD" -y \
            --download-only --no-install-recommends install "rustc$name=$version" >/dev/null
        apt apt-get download "rustc$name=$version"
        for arch in "$own" arm64; do
            apt apt-get download "libstd-rust$name-dev:$arch=$version" "libstd-rust$name-$number:$arch=$version"
        done
        find . -name '*.deb' -exec dpkg-deb -x {} .. \;
    )
    rm -rf "$home/$version/debs"
    touch "$home/$version/done"
fi
RUSTC="$home/$version/usr/bin/rustc"
LD_LIBRARY_PATH="$home/$version/usr/lib/$(uname -m)-linux-gnu"
export RUSTC LD_LIBRARY_PATH
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
"$RUSTC" --version
RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --quiet --locked --target "$target" \
    -p mydyno-probe -p mydyno-disk -p mydyno-guard
for one in probe disk guard; do ls -l "target/$target/release/mydyno-$one"; done
