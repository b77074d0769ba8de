#!/usr/bin/env bash
# Installs what is missing: packages (as root), the virtual environment, the Rust binary.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-run}

wanted() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$@"; }
lists=(packaging/apt.txt)
[ "$kind" = run ] || lists+=(packaging/apt-test.txt)
[ "$kind" = bench ] && lists+=(packaging/apt-bench.txt)
[ "$kind" = keep ] && lists+=(packaging/apt-keep.txt)
[ "$kind" = vm ] && lists+=(packaging/apt-vm.txt)
[ "$kind" = packages ] && lists+=(packaging/apt-packages.txt)

# A tool that is there from elsewhere needs no package.
have() {
  case $1 in
    gcc) command -v cc >/dev/null ;;
    maven) command -v mvn >/dev/null ;;
    python3-venv) [ -n "$python" ] ;;
    *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
  esac
}
have_any() { local one; for one in ${1//|/ }; do have "$one" && return; done; return 1; }

# A Python that is new enough, and makes environments.
for python in python3 python3.14 python3.13 python3.12 python3.11 ''; do
  [ -z "$python" ] || "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
done

# Rust: any toolchain new enough that is found, else the distribution's newer one.
rust_ok() { command -v cargo >/dev/null && [ "$(printf '%s\n1.85\n' "$(cargo --version | cut -d' ' -f2)" | sort -V | head -1)" = 1.85 ]; }

# Without apt nothing is installed: prints which packages bring the programs that are missing.
other_family() {
  local family program names=() lacking='' how column=0
  for family in dnf zypper pacman apk ''; do [ -z "$family" ] || ! command -v "$family" >/dev/null || break; done
  case $family in
    dnf) column=2 how="dnf install" ;;
    zypper) column=3 how="zypper install" ;;
    pacman) column=4 how="pacman -S --needed" ;;
    apk) column=5 how="apk add" ;;
    *) how="(names of Debian's packages)" ;;
  esac
  while read -r -a row; do
    program=${row[1]}
    case $program in
      -) ;; # a library: named with the others
      python3) [ -z "$python" ] || continue ;;
      cargo) ! rust_ok || continue ;;
      *) ! PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || continue ;;
    esac
    [ "$program" = - ] || lacking="$lacking $program"
    names+=("${row[$column]}")
  done < <(grep -v '^#' packaging/other.txt)
  [ -n "$lacking" ] || return 0
  echo "mydyno: apt-get is not here; these programs are missing or too old:$lacking. Install their packages, then try again:" >&2
  echo "  $([ "$(id -u)" = 0 ] || echo "sudo ")$how ${names[*]}" >&2
  exit 4
}
command -v apt-get >/dev/null || other_family

missing=()
while read -r line; do
  have_any "${line#\? }" || missing+=("$line")
done < <(if command -v apt-get >/dev/null; then wanted "${lists[@]}"; fi)

! command -v apt-get >/dev/null || rust_ok || missing+=("cargo-web|cargo-1.85|cargo" "rustc-web|rustc-1.85|rustc")

# Turn "a|b" into the first that the archive has; "? a" may have none.
chosen=()
choose() {
  local line=${1#\? } one
  for one in ${line//|/ }; do
    if [ -n "$(apt-cache policy "$one" 2>/dev/null | sed -n 's/^  Candidate: //p' | grep -v '(none)')" ]; then
      chosen+=("$one")
      return
    fi
  done
  case $1 in
    '? '*) echo "not in this system's archive, done without: $line" ;;
    *) chosen+=("${line%%|*}") ;;
  esac
}

if [ ${#missing[@]} -gt 0 ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  [ "$(id -u)" != 0 ] || apt-get update -qq >"$log" 2>&1 || { tail -20 "$log" >&2; exit 3; }
  for line in "${missing[@]}"; do choose "$line"; done
fi
if [ ${#chosen[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "mydyno: these packages are missing, and installing them needs root. Run this, then try again:" >&2
    echo "  sudo apt-get install --no-install-recommends ${chosen[*]}" >&2
    exit 4
  fi
  echo "installing: ${chosen[*]}"
  export DEBIAN_FRONTEND=noninteractive
  # Some packages of tests and benches come with a service: it must not start now, and those of the
  # benches not at the next boot.
  policy=/usr/sbin/policy-rc.d
  mark='# of a setup of mydyno that runs'
  ! grep -qsF "$mark" "$policy" || rm -f "$policy" # of one that was killed
  if [ "$kind" != run ] && [ ! -e "$policy" ]; then
    trap 'rm -f "$log" "$policy"' EXIT
    printf '#!/bin/sh\n%s\nexit 101\n' "$mark" >"$policy" && chmod 755 "$policy"
  fi
  apt-get install -y -qq --no-install-recommends "${chosen[@]}" >"$log" 2>&1 || { tail -20 "$log" >&2; exit 3; }
fi

if [ "$kind" = test ] && command -v systemctl >/dev/null; then
  for one in ${chosen[@]+"${chosen[@]}"}; do
    [ "$one" != prometheus ] || systemctl disable --quiet prometheus.service 2>/dev/null || true
  done
fi
if [ "$kind" = bench ] && command -v systemctl >/dev/null; then
  units=(atop atopacct atop-rotate.timer sysstat sysstat-collect.timer sysstat-summary.timer
    prometheus-node-exporter prometheus-mysqld-exporter)
  for one in ${chosen[@]+"${chosen[@]}"}; do
    for unit in "${units[@]}"; do
      case $unit in "$one" | "$one"[.-]* | "${one}acct") systemctl disable --quiet "$unit" 2>/dev/null || true ;; esac
    done
  done
fi

# The distributions of the extras are for tests, benches and the VM lab.
lock=requirements.lock extras=()
if [ "$kind" != run ]; then
  lock=requirements-dev.lock
  for one in packages/*/; do extras+=(-e "$one"); done
fi
stamp=.venv/.installed-$(cat "$lock" pyproject.toml packages/*/pyproject.toml | sha256sum | cut -c1-16)
if [ ! -e "$stamp" ]; then
  echo "installing Python packages into .venv"
  [ -n "$python" ] || python=python3 # it is installed by now
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
  .venv/bin/pip install --quiet --disable-pip-version-check --no-deps -e . ${extras[@]+"${extras[@]}"}
  # as root it takes code from this environment only: no PYTHONPATH, no user's packages, no present folder
  sed -i '1s|^#!\([^ ]*\)$|#!\1 -I|' .venv/bin/mydyno
  rm -f .venv/.installed-*
  touch "$stamp"
fi

[ "$kind" != bench ] || .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r bench/requirements-bench.txt

[ "$kind" != keep ] || .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r packaging/requirements-keep.txt

# All are static: probe and guard are pushed to hosts that have nothing, and packages fit any system.
target=$(rustc -vV | sed -n 's/^host: //p')
[ -x .venv/bin/mydyno-guard ] || echo "building mydyno-probe, mydyno-disk and mydyno-guard: minutes, the first time"
RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --quiet --locked -p mydyno-probe -p mydyno-disk -p mydyno-guard --target "$target"
mkdir -p src/mydyno/bin
for one in mydyno-probe mydyno-disk mydyno-guard; do
  install -m 755 "target/$target/release/$one" "src/mydyno/bin/$one"
  ln -sf "../../src/mydyno/bin/$one" ".venv/bin/$one"
done
