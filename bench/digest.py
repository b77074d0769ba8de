"""The digest beside its peers, in one table: speed, memory, and whether the totals are right."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import digest_table as table
from digest_log import Log, build_generator, cut, generate, warm
from digest_tools import SHAPES, Run, Tool, absence, measure, tools, version
from mydyno.sample.sampler import NOT_BUILT, probe_binary

GIB = 1 << 30
MIB = 1 << 20
# A slow tool gets so much of a log that it takes some 20 s a run.
CUTS = {"oltp": 64 * MIB, "wide": 256 * MIB}


@dataclass(frozen=True, slots=True)
class Row:
    """What one tool made of one log, and why it was not run if it was not."""

    tool: Tool
    log: Log
    runs: list[Run]
    absent: str
    version: str


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=1, help="size of each log (1)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each fast tool (7)")
    parser.add_argument("--slow-rounds", type=int, default=3, help="runs of each slow tool (3)")
    parser.add_argument("--only", choices=SHAPES, action="append", help="only this log")
    parser.add_argument("--tool", action="append", help="only tools whose name holds this")
    parser.add_argument("--binary", type=Path, help="the digest (the one that is installed)")
    parser.add_argument("--seed", type=int, default=7, help="of the logs (7)")
    parser.add_argument("--folder", type=Path, help="where the logs are made (the temporary one)")
    parser.add_argument("--out", type=Path, help="the table goes into this file too")
    return parser.parse_args()


def main() -> int:
    ask = options()
    binary = str(ask.binary or probe_binary())
    if not binary:
        show(NOT_BUILT)
        return 3
    generator = build_generator()
    wanted = [
        tool
        for tool in tools(binary)
        if not ask.tool or any(part in tool.name for part in ask.tool)
    ]
    rows: list[Row] = []
    for shape in ask.only or SHAPES:
        with scratch(ask.folder) as folder:
            show(f"{shape}: making the log")
            complete = generate(generator, shape, int(ask.gib * GIB), ask.seed, folder)
            part = cut(complete, min(CUTS[shape], complete.size), folder)
            rows += measured(ask, wanted, complete, part)
    text = table.head(ask) + "\n" + table.body(rows)
    print(text)
    if ask.out:
        ask.out.write_text(text, encoding="utf-8")
    return 0


def measured(ask: argparse.Namespace, wanted: list[Tool], complete: Log, part: Log) -> list[Row]:
    """Return the rows of one shape of log; the tools take turns."""
    logs = {tool.name: part if tool.slow else complete for tool in wanted}
    rows = [Row(tool, logs[tool.name], [], absence(tool), version(tool)) for tool in wanted]
    for turn in range(max(ask.rounds, ask.slow_rounds)):
        for row in rows:
            if not row.absent and turn < (ask.slow_rounds if row.tool.slow else ask.rounds):
                show(f"{row.log.shape}: turn {turn + 1}, {row.tool.name}")
                warm(row.log.path)
                row.runs.append(measure(row.tool, row.log))
    return rows


@contextmanager
def scratch(parent: Path | None) -> Iterator[Path]:
    """Yield a folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def show(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
