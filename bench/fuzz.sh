#!/usr/bin/env bash
# Feeds invented slow logs to the digest for MINUTES, one processor for each target; fails on the
# first panic, hang (10 s), difference between two ways of reading, or 512 MB of memory.
# Needs cargo and a C++ compiler; libFuzzer's coverage works with a stable rustc.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-20}
here=crates/digest/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
cargo build --quiet --release --locked --target "$host" --manifest-path "$here/Cargo.toml"

# The seeds: each golden log behind the four bytes that choose options and cuts, each statement;
# found/ has what once failed.
seeds=$(mktemp -d)
trap 'rm -rf "$seeds"' EXIT
python3 - "$seeds" <<'PYTHON'
import sys
import tomllib
from pathlib import Path

golden, out = Path("tests/golden/digest"), Path(sys.argv[1])
(out / "digest_feed").mkdir()
(out / "fingerprint").mkdir()
for place, log in enumerate(sorted(golden.glob("*/input*.log"))):
    head = bytes((place % 256, place * 37 % 256, place % 8, 255 - place % 128))
    (out / "digest_feed" / str(place)).write_bytes(head + log.read_bytes()[:16384])
statements = tomllib.loads((golden / "fingerprints.toml").read_text())["statement"]
for place, one in enumerate(statements):
    (out / "fingerprint" / str(place)).write_text(one["text"])
PYTHON

declare -A pids
start() { # TARGET
  local found=()
  [ -d "$here/found/$1" ] && found=("$here/found/$1")
  mkdir -p "$here/corpus/$1" "$here/artifacts/$1"
  "$CARGO_TARGET_DIR/$host/release/$1" "$here/corpus/$1" "$seeds/$1" "${found[@]}" \
    -dict="$here/slowlog.dict" -max_total_time=$((minutes * 60)) -timeout=10 -rss_limit_mb=512 \
    -max_len=32768 -len_control=20 -print_final_stats=1 -artifact_prefix="$here/artifacts/$1/" \
    >"$seeds/$1.log" 2>&1 &
  pids[$1]=$!
}

finish() { # TARGET
  if wait "${pids[$1]}"; then
    echo "$1: no fault in $minutes minutes"
    tail -n 5 "$seeds/$1.log"
  else
    tail -n 60 "$seeds/$1.log" >&2
    echo "$1: the input is in $here/artifacts/$1" >&2
    return 1
  fi
}

# Ctrl-C does not reach what runs in the background.
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$seeds"' EXIT
start digest_feed
start fingerprint
status=0
finish digest_feed || status=1
finish fingerprint || status=1
exit $status
