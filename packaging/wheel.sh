#!/usr/bin/env bash
# One wheel for this processor that holds the probe too, and those of the extras, in dist/; lab disks
# need a checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf dist && mkdir dist
# a module that an older build has left would be packed too
old() { rm -rf build packages/*/build; }
old
trap old EXIT
arch=$(uname -m)
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist \
  --config-settings "--build-option=--plat-name=linux_$arch" .
.venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist packages/*/
ls dist
