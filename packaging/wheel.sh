#!/usr/bin/env bash
# One wheel for this processor that holds mydyno-probe, mydyno-disk, mydyno-guard, man pages and completions too, and
# those of the extras, in dist/.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p dist
rm -rf dist/*.whl target/share
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
.venv/bin/python packaging/man.py >/dev/null
# a module that an older build has left would be packed too
old() { rm -rf build packages/*/build; }
old
trap old EXIT
arch=$(uname -m)
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist \
  --config-settings "--build-option=--plat-name=linux_$arch" .
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist packages/*/
ls dist
