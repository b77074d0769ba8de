"""Fuzz of what others wrote: journals, lines of a program, probe files, change records.

    python tests/harm/fuzz_inputs.py --minutes 20 [--seed N]

Property: no traceback, a documented exit code, bounded memory, and results as before or a warning.
Each case is a command in a forked child; only what it writes is looked at.  Exit 1 where one fails.
"""

import argparse
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from keyword import iskeyword
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mydyno.cli import COMMANDS, main
from unit.sampler_file import MAGIC, File, document, frame

ALONE = "MYDYNO_FUZZ_ALONE"
CODES = {0, 1, 2, 3, 4}
MEMORY = 3 << 29
SECONDS = 60
LOAD = """
import json
gain = {gain}
for second in range(1, 16):
    report = {{"t_s": second, "tps": gain + second % 3, "latency_p99_s": 0.01}}
    print(json.dumps(report), flush=True)
"""
TOKENS = [b"9" * 400, b"-1", b"NaN", b"1e308", b"1e-320", b"[" * 5000, b"null", b'""',
          b"\x00", b"\x1b[2J", b"\n", b"}", b'"v":1', b"\xff" * 11, b"1e999", b"{}", b"0",
          b'"crc":"00000000"']  # fmt: skip


@dataclass(frozen=True)
class Done:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


def run(*words: object) -> Done:
    """Run a command in a child of limited memory and time."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        if not (child := os.fork()):
            _child([str(word) for word in words], out.fileno(), err.fileno())
        _, status = os.waitpid(child, 0)
        output = []
        for file in (out, err):
            file.seek(0)
            output.append(file.read().decode(errors="replace"))
    return Done(os.waitstatus_to_exitcode(status), *output)


def _child(words: list[str], out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    sys.argv = ["mydyno", *words]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:  # noqa: BLE001 - as the interpreter would
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def mutated(raw: bytes, chance: random.Random) -> bytes:
    """Return `raw` with one to three changes: bits, bytes, pieces, lines, tokens."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(len(raw) + 1)
        to = min(len(raw), at + chance.choice((1, 1, 4, 50)))
        lines = raw.splitlines(keepends=True)
        match chance.randrange(7):
            case 0 if at < len(raw):
                raw = raw[:at] + bytes([raw[at] ^ 1 << chance.randrange(8)]) + raw[at + 1 :]
            case 1:
                raw = raw[:at] + raw[to:]
            case 2:
                raw = raw[:at] + raw[at:to] + raw[at:]
            case 3:
                raw = raw[:at] + chance.choice(TOKENS) + raw[at:]
            case 4:
                raw = raw[:at] + chance.choice(TOKENS) + raw[to:]
            case 5 if len(lines) > 1:
                one = chance.randrange(len(lines))
                lines.insert(chance.randrange(len(lines)), lines.pop(one))
                raw = b"".join(lines)
            case _:
                raw = raw[:at] + b"%d" % chance.randrange(10) + raw[at + 1 :]
    return raw


def flaws(done: Done) -> str:
    """Return what a command must never do and has done."""
    if "Traceback" in done.err or "MemoryError" in done.err:
        return "traceback"
    return "" if done.code in CODES else f"exit code {done.code}"


class Fuzz:
    """A finished campaign whose files are changed, one case after another."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.run = folder / "run"
        self.spec = self._spec(folder, "python3", str(folder / "good.py"))
        (folder / "good.py").write_text(LOAD.format(gain=100))
        done = run("run", self.spec, "-o", self.run)
        if done.code:
            raise SystemExit(f"no campaign to begin with: {done.err}")
        self.journal = (self.run / "journal.jsonl").read_bytes()
        self.before = self._results()

    def _spec(self, folder: Path, *argv: str) -> Path:
        path = folder / "spec.toml"
        path.write_text(
            "[stack]\nserver = 'none'\n[treatments.A]\n[treatments.B]\n[workloads.w]\n"
            f"tool = 'command'\nargv = {json.dumps(argv)}\n"
            "[protocol]\nwarmup_s = 2\nwindow_s = 10\n"
            "[design]\nblocks = 1\n"
        )
        return path

    def _results(self) -> list[Done]:
        return [run(command, self.run, "--json") for command in ("compare", "status", "report")]

    def journals(self) -> str:
        """Change the journal; results are as before, or a line is reported as damaged."""
        raw = mutated(self.journal, self.chance)
        (self.run / "journal.jsonl").write_bytes(raw)
        try:
            found = self._results()
        finally:
            (self.run / "journal.jsonl").write_bytes(self.journal)
        if problem := next(filter(None, map(flaws, found)), ""):
            return f"{problem}: {raw!r} {found}"
        cut = raw and self.journal.startswith(raw[: raw.rfind(b"\n") + 1])  # as a crash leaves it
        for before, done in zip(self.before, found, strict=True):
            silent = not done.code and "damaged" not in done.out + done.err
            if silent and done.out != before.out and not cut:
                return f"another result, silently: {raw!r} {done}"
        return ""

    def lines(self) -> str:
        """Change what a program prints; its trial fails or is read, and a resume goes on."""
        good = b"".join(
            b'{"t_s": %d, "tps": %d.5, "latency_p99_s": 0.01}\n' % (s, 100 + s)
            for s in range(1, 16)
        )
        folder = self.folder / "lines"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        raw = mutated(b'{"event": "overhead", "cost_s": 2}\n' + good, self.chance)
        (folder / "printed").write_bytes(raw)
        spec = self._spec(folder, "cat", str(folder / "printed"))
        first = run("run", spec, "-o", folder / "run", "--json")
        again = run("run", spec, "-o", folder / "run", "--json")
        for done in (first, again, run("report", folder / "run")):
            if problem := flaws(done):
                return f"{problem}: {raw!r} {done}"
        return "" if first.out == again.out else f"a resume differs: {raw!r} {first} {again}"

    def probes(self) -> str:
        """Change a probe file, checksums wrong or right."""
        file = File().define("host", ("cpu.user", "all", "counter", 0.01))
        for seq in range(5):
            file.tick(seq, {("cpu.user", "all"): 100 * seq})
        raw = mutated(file.raw, self.chance)
        if self.chance.random() < 0.6:  # a right checksum over something else
            kind = bytes([self.chance.choice(b"THCNEX")])
            body = mutated(file.raw[-self.chance.randrange(1, 60) :], self.chance)
            raw = self.chance.choice((file.raw, MAGIC)) + frame(kind, body)
            raw += document(b"H", self.chance.choice(([], {}, {"wall_ns": 10**30})))
        trial = self.run / "trials" / "0000"
        added = {"probe.bin": raw, "probe.json": b"{}", "load.start": b"1 up\n"}
        saved = {name: (trial / name).read_bytes() for name in added if (trial / name).exists()}
        for name, content in added.items():
            (trial / name).write_bytes(content)
        done = run("report", self.run, "--json")
        for name in added:
            (trial / name).unlink()
        for name, content in saved.items():
            (trial / name).write_bytes(content)
        problem = flaws(done)
        return f"{problem}: {raw!r} {done}" if problem else ""

    def changes(self) -> str:
        """Change change records and roll back: a setting is as it was, or left."""
        if os.geteuid():
            return ""
        swappiness = Path("/proc/sys/vm/swappiness")
        first, ours = swappiness.read_text(), "43\n"
        id_, here = (self.run / "campaign-id").read_text().strip(), self.run.stat()
        place = {"layer": "kernel", "at": ""}
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        lines = [
            {"type": "registered", "id": id_, "name": "w", "directory": str(self.run)}
            | {"device": here.st_dev, "inode": here.st_ino, "host": "local", "version": 1},
            {"type": "acting", "role": "db", **place, "identity": "", "boot": boot}
            | {"owned": False, "trial": 0, "wanted": {"sysctl.vm.swappiness": "43"}}
            | {"before": {"sysctl.vm.swappiness": first.strip(), "sysctl.vm.page-cluster": "3"}},
            {"type": "acted", **place, "after": {"sysctl.vm.swappiness": "43"}},
        ]
        texts = [json.dumps(line).encode() for line in lines]
        valid = [b"%08x %b\n" % (zlib.crc32(text), text) for text in texts]
        if self.chance.random() < 0.3:  # valid lines, as none was written
            raw = b"".join(self.chance.choices(valid, k=self.chance.randrange(6)))
        else:
            raw = mutated(b"".join(valid), self.chance)
        records = Path("/var/lib/mydyno/campaigns", id_)
        records.mkdir(mode=0o700, parents=True, exist_ok=True)
        (records / "changes").write_bytes(raw)
        others = {p: read(p) for p in Path("/proc/sys/vm").iterdir() if p != swappiness}
        swappiness.write_text(ours)
        try:
            done = run("rollback", self.run)
            found = swappiness.read_text()
        finally:
            swappiness.write_text(first)
            shutil.rmtree(records, ignore_errors=True)
        if problem := flaws(done):
            return f"{problem}: {raw!r} {done}"
        moved = [str(p) for p, text in others.items() if read(p) != text]
        if found not in {first, ours} or moved:
            return f"the host is changed: {found!r} {moved}: {raw!r} {done}"
        return ""


def read(path: Path) -> str:
    """Return what a setting is; nothing for one that only takes."""
    try:
        return path.read_text()
    except OSError:
        return ""


def fuzz(minutes: float, seed: int) -> int:
    """Return how many cases failed."""
    end_s, failed, cases = time.monotonic() + 60 * minutes, 0, 0
    for name in COMMANDS:  # once for all children
        import_module(f"mydyno.cli.{name}_" if iskeyword(name) else f"mydyno.cli.{name}")
    for name in ("numpy", "scipy.stats", "hdrh.histogram", "mydyno.sample.derive"):
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="mydyno-fuzz-") as folder:
        fuzzing = Fuzz(Path(folder), random.Random(seed))
        kinds: list[Callable[[], str]] = [
            fuzzing.journals,
            fuzzing.lines,
            fuzzing.probes,
            fuzzing.changes,
        ]
        while time.monotonic() < end_s:
            problem = kinds[cases % len(kinds)]()
            cases += 1
            if problem:
                failed += 1
                sys.stderr.write(f"seed {seed}, case {cases}: {problem}\n\n")
    sys.stdout.write(f"{cases} cases, {failed} failed, seed {seed}\n")
    return failed


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=20)
    options.add_argument("--seed", type=int, default=int(time.time()))
    chosen = options.parse_args()
    if os.geteuid() == 0 and ALONE not in os.environ:  # records of its own, and no other campaigns
        own = "mkdir -p /var/lib/mydyno /run/mydyno-open && mount -t tmpfs -o mode=700 none "
        own += '/var/lib/mydyno && mount -t tmpfs none /run/mydyno-open && exec "$@"'
        os.environ[ALONE] = "yes"
        argv = ["unshare", "--mount", "--propagation", "private", "sh", "-c", own, "fuzz"]
        os.execvp("unshare", [*argv, sys.executable, *sys.argv])  # noqa: S606 - ourselves
    sys.exit(bool(fuzz(chosen.minutes, chosen.seed)))
