#!/usr/bin/env bash
# Feeds invented slow logs to the digest for MINUTES, half for each target; fails on the first
# panic, hang (10 s), difference between two ways of reading, or 512 MB of memory.
# Needs cargo and a C++ compiler; libFuzzer's coverage works with a stable rustc.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-20}
here=crates/probe/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
cargo build --quiet --release --locked --target "$host" --manifest-path "$here/Cargo.toml"

# The seeds: each golden log behind the four bytes that choose options and cuts, each statement.
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

status=0
for target in digest_feed fingerprint; do
  mkdir -p "$here/corpus/$target" "$here/artifacts/$target"
  "$CARGO_TARGET_DIR/$host/release/$target" "$here/corpus/$target" "$seeds/$target" \
    -dict="$here/slowlog.dict" -max_total_time=$((minutes * 30)) -timeout=10 -rss_limit_mb=512 \
    -max_len=32768 -len_control=20 -print_final_stats=1 -artifact_prefix="$here/artifacts/$target/" \
    2>"$seeds/$target.log" || status=1
  tail -n "$([ $status = 0 ] && echo 12 || echo 60)" "$seeds/$target.log"
  [ $status = 0 ] || { echo "$target: the input is in $here/artifacts/$target" >&2; exit 1; }
done
