"""Decisions on a real server, where the truth is known: doses given to it, and traces of it."""

import argparse
import sys
from pathlib import Path

import real_live
import real_replay
import real_table as table
import real_traces

PARTS = ("traces", "replay", "live")
TRACES = Path(__file__).parent / "real" / "traces"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, action="append", help="only this part")
    parser.add_argument("--server", action="append", help="a basedir; several take turns")
    parser.add_argument("--campaigns", type=int, default=10, help="live ones (10)")
    parser.add_argument("--replays", type=int, default=500, help="campaigns for each dose (500)")
    parser.add_argument(
        "--record", action="store_true", help="record new traces, two hours of them"
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("bench-real"), help="folder of the run directories"
    )
    parser.add_argument("--traces", type=Path, default=TRACES, help="folder of recorded traces")
    return parser.parse_args()


def main() -> None:
    asked = options()
    wanted = set(asked.only or PARTS)
    asked.runs.mkdir(parents=True, exist_ok=True)
    asked.traces.mkdir(parents=True, exist_ok=True)
    servers = asked.server or ["auto"]
    if asked.record and "traces" in wanted:
        for server in servers:
            real_traces.record(server, asked.runs, asked.traces)
    found = real_traces.recorded(asked.traces)
    if "replay" in wanted and found:
        sys.stdout.write(table.replayed(found, real_replay.replays(found, asked.replays)))
    if "live" in wanted:
        sys.stdout.write(table.live(real_live.campaigns(servers, asked.campaigns, asked.runs)))


if __name__ == "__main__":
    main()
