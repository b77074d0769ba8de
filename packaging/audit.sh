#!/usr/bin/env bash
# Checks the lock files against published advisories with pip-audit and cargo-audit.
# Both fetch the advisories when they run.  What could not be checked is named, and is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."
bad=0

if ! command -v pip-audit >/dev/null; then
  echo "requirements.lock: NOT checked: pip-audit is not installed; install it with pipx install pip-audit"; bad=1
elif ! out=$(pip-audit --disable-pip --require-hashes -r requirements.lock 2>&1) && ! grep -q "vulnerabilit" <<<"$out"; then
  echo "requirements.lock: NOT checked: $(tail -1 <<<"$out")"; bad=1
elif grep -q "could not be audited" <<<"$out"; then # a mirror without advisories: it exits with 0
  echo "requirements.lock: NOT checked: $(grep -m1 "could not be audited" <<<"$out")"; bad=1
elif grep -q "No known vulnerabilities" <<<"$out"; then
  echo "requirements.lock: no known vulnerability"
elif grep -q "vulnerabilit" <<<"$out"; then
  echo "$out"; bad=1
else
  echo "requirements.lock: NOT checked: $(tail -1 <<<"$out")"; bad=1
fi

if ! cargo audit --version >/dev/null 2>&1; then
  echo "Cargo.lock: NOT checked: cargo-audit is not installed; install it with cargo install cargo-audit --locked"; bad=1
elif out=$(cargo audit --quiet 2>&1); then
  echo "Cargo.lock: no known vulnerability"
elif grep -q "^error: [0-9]* vulnerabilit" <<<"$out"; then
  echo "$out"; bad=1
else
  echo "Cargo.lock: NOT checked: $(tail -1 <<<"$out")"; bad=1
fi
exit $bad
