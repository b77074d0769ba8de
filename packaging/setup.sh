#!/usr/bin/env bash
# Installs what is missing: packages (as root), the virtual environment, the Rust binary.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-run}

wanted() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$@"; }
lists=(packaging/apt.txt)
[ "$kind" = test ] && lists+=(packaging/apt-test.txt)

# A tool that is there from elsewhere needs no package.
have() {
  case $1 in
    gcc) command -v cc >/dev/null ;;
    maven) command -v mvn >/dev/null ;;
    chromium) command -v chromium >/dev/null ;;
    python3-venv) python3 -c 'import venv, ensurepip' 2>/dev/null ;;
    *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] ;;
  esac
}
missing=()
for package in $(wanted "${lists[@]}"); do have "$package" || missing+=("$package"); done

# Rust: any toolchain new enough that is found, else the distribution's newer one.
rust_ok() { command -v "$1" >/dev/null && [ "$(printf '%s\n1.85\n' "$("$1" --version | cut -d' ' -f2)" | sort -V | head -1)" = 1.85 ]; }
rust_ok cargo || missing+=(cargo-web rustc-web)

if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "mydyno: these packages are missing, and installing them needs root. Run this, then try again:" >&2
    echo "  sudo apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 4
  fi
  echo "installing: ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    exit 3
  fi
  rm -f "$log"
fi

lock=requirements.lock
[ "$kind" = test ] && lock=requirements-dev.lock
stamp=.venv/.installed-$(cat "$lock" pyproject.toml | sha256sum | cut -c1-16)
if [ ! -e "$stamp" ]; then
  [ -x .venv/bin/python ] || python3 -m venv .venv
  .venv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
  .venv/bin/pip install --quiet --disable-pip-version-check --no-deps -e .
  rm -f .venv/.installed-*
  touch "$stamp"
fi

cargo build --release --quiet --locked
install -m 755 target/release/mydyno-disk .venv/bin/mydyno-disk
