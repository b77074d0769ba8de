"""What others wrote cannot crash mydyno, fill its memory, drive a terminal or change a result.

Attacks by commands and files only: nothing of mydyno is imported.
"""

import json
import resource
import sys
import zlib
from pathlib import Path

import pytest

from command_line import mydyno
from unit.sampler_file import File, document, frame, payload, unsigned

MEMORY = 1 << 30  # bytes of address space that a command may have
HOSTILE = "evil\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\r\x08"
CONTROLS = {*range(9), *range(0xB, 0x20), *range(0x7F, 0xA0), 0x202E}
GOOD = """
import json, os
gain = 1.1 if os.environ["MYDYNO_TREATMENT"] == "B" else 1.0
for second in range(1, 10**6):
    print(json.dumps({"t_s": second, "tps": 100 * gain + second % 3}), flush=True)
"""


def spec(folder: Path, program: str, name: str = "harm", treatment: str = "B") -> Path:
    """Return a spec of two treatments and two blocks; B's load is `program`, A's is a good one."""
    (folder / "good.py").write_text(GOOD)
    (folder / "load.py").write_text(
        f"import os\nif os.environ['MYDYNO_TREATMENT'] == 'A':\n    exec({GOOD!r})\n{program}"
    )
    argv = [sys.executable, str(folder / "load.py")]
    path = folder / "spec.toml"
    path.write_text(
        f"[campaign]\nname = {json.dumps(name)}\n[stack]\nserver = 'none'\n[treatments.A]\n"
        f"[treatments.{json.dumps(treatment)}]\n[workloads.w]\ntool = 'command'\n"
        f"argv = {json.dumps(argv)}\n[protocol]\nwarmup_s = 2\nwindow_s = 10\n"
        "[design]\nblocks = 2\n"
    )
    return path


def limited(*arguments: object, **more: object):
    """Run a command that may not have more than `MEMORY`."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    return mydyno(*arguments, preexec_fn=limit, **more)


def reports(*lines: str) -> str:
    return (
        "".join(f"print({line!r}, flush=True)\n" for line in lines) + "import time; time.sleep(60)"
    )


HEAD = "import base64, struct, zlib\ns = struct.Struct('>IIiiQQd').pack\n"
BOMB = "import base64, struct, zlib\nz = zlib.compress(bytes(1 << 29))\n"
BAD = {
    "a huge time": reports('{"t_s": 1, "tps": 5}', '{"t_s": 1e12, "tps": 5}'),
    "a time in nanoseconds": reports('{"t_s": 1795000000000000000, "tps": 5}'),
    "an integer of 400 digits": reports('{"t_s": 1, "tps": %s}' % ("9" * 400)),
    "nested JSON": reports('{"t_s": 1, "tps": %s}' % ("[" * 200_000)),
    "NaN": reports('{"t_s": 1, "tps": NaN}'),
    "infinity": reports('{"t_s": 1, "tps": 1e999}'),
    "a denormal": reports('{"t_s": 1, "tps": 1e-320}'),
    "an overflow": reports('{"t_s": 1, "tps": 1.7e308}', '{"t_s": 14, "tps": 1.7e308}'),
    "negative overhead": reports('{"event": "overhead", "cost_s": -1e9}'),
    "a text for a histogram": reports('{"t_s": 1, "tps": 5, "latency_hist": "AAAA"}'),
    "a bomb for a histogram": BOMB
    + "h = base64.b64encode(struct.pack('>II', 0x1C849314, len(z)) + z).decode()\n"
    'print(\'{"t_s": 1, "tps": 5, "latency_hist": "%s"}\' % h, flush=True)\n',
    "a negative count": HEAD
    + "z = zlib.compress(s(0x1C849313, 9, 0, 3, 1, 3600000000, 1) + b'\\xff' * 9)\n"
    "h = base64.b64encode(struct.pack('>II', 0x1C849314, len(z)) + z).decode()\n"
    'print(\'{"t_s": 13, "tps": 5, "latency_hist": "%s"}\' % h, flush=True)\n',
    "a latency of years": HEAD
    + "z = zlib.compress(s(0x1C849313, 4, 0, 3, 1, 1 << 50, 1) + bytes([255, 255, 3, 2]))\n"
    "h = base64.b64encode(struct.pack('>II', 0x1C849314, len(z)) + z).decode()\n"
    'print(\'{"t_s": 13, "tps": 5, "latency_hist": "%s"}\' % h, flush=True)\n',
    "a line without an end": "import sys\nwhile True: sys.stdout.write('x' * (1 << 20))\n",
    "numbers without end": "n = 0\nwhile True:\n    n += 1\n"
    "    many = ', '.join('\"v%d\": 1' % i for i in range(2000))\n"
    "    print('{\"t_s\": %.9f, %s}' % (n * 1e-9, many))\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("attack", BAD)
def test_what_a_program_prints_fails_its_trial_and_nothing_else(tmp_path, attack):
    path, run = spec(tmp_path, BAD[attack]), tmp_path / "run"
    done = limited("run", path, "-o", run, "--json")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    failed = [line for line in done.stderr.splitlines() if "unreadable output: line " in line]
    assert len(failed) == 2, done.stderr
    state = json.loads(mydyno("status", run, "--json").stdout)
    assert (state["state"], state["finished"], state["failed"]) == ("finished", 4, 2)
    again = limited("run", path, "-o", run, "--json")
    assert (again.returncode, again.stdout) == (0, done.stdout), again.stderr
    assert "Traceback" not in again.stderr
    for command in ("compare", "report"):
        shown = limited(command, run)
        assert (shown.returncode, "Traceback" in shown.stderr) == (0, False), shown.stderr
    journal = (run / "journal.jsonl").read_text()
    assert not {"NaN", "Infinity", "null"} & {*journal.replace(",", " ").replace(":", " ").split()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished campaign, and what compare and status show of it."""
    folder = tmp_path_factory.mktemp("finished")
    run = folder / "run"
    done = mydyno("run", spec(folder, GOOD), "-o", run)
    assert done.returncode == 0, done.stderr
    return run


def shown(run: Path) -> tuple[str, str]:
    """Return the results of the commands that read a run directory, and what they warn of."""
    done = [mydyno(command, run, "--json") for command in ("compare", "status")]
    assert all("Traceback" not in each.stderr for each in done), done
    assert all(each.returncode in (0, 2) for each in done), done
    results = [json.loads(each.stdout) if each.stdout else {} for each in done]
    warned = [line for each in results for line in each.get("warnings", [])]
    return str(results), "\n".join([*warned, *(each.stderr for each in done)])


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines[:2], lines[2].replace(b'"value":1', b'"value":9'), *lines[3:]],
        lambda lines: [*lines[:3], *lines[4:]],
        lambda lines: [*lines, lines[2]],
        lambda lines: [lines[0], *reversed(lines[1:])],
        lambda lines: [lines[0], *(line.replace(b'"v":2', b'"v":1') for line in lines[1:])],
        lambda lines: [*lines[:1], b'{"v":1,"at":"","event":{"type":"measured"}}\n', *lines[1:]],
        lambda lines: [b"\xff\xfe\n", *lines[1:]],
    ],
    ids=["a number", "a line less", "one twice", "another order", "version 1", "one more", "noise"],
)
def test_a_changed_journal_is_never_believed(finished, change):
    journal = finished / "journal.jsonl"
    content = journal.read_bytes()
    before, _ = shown(finished)
    changed = b"".join(change(content.splitlines(keepends=True)))
    assert changed != content
    try:
        journal.write_bytes(changed)
        _, warned = shown(finished)
        assert f"{journal}:" in warned
        assert "damaged" in warned
        done = mydyno("run", finished / "spec.toml", "-o", finished)
        assert done.returncode == 2, done.stderr
        assert "restore it from a copy" in done.stderr
        assert journal.read_bytes() == changed
    finally:
        journal.write_bytes(content)
    assert shown(finished)[0] == before


def test_a_journal_is_not_opened_through_a_link(tmp_path):
    run, victim = tmp_path / "run", tmp_path / "victim"
    victim.write_text("precious")
    done = mydyno("run", spec(tmp_path, GOOD), "-o", run)
    assert done.returncode == 0, done.stderr
    (run / "journal.jsonl").unlink()
    (run / "journal.jsonl").symlink_to(victim)
    done = mydyno("run", tmp_path / "spec.toml", "-o", run)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert victim.read_text() == "precious"


def clean(done) -> None:
    """Check that a command's output drives no terminal, and that it shows what was hostile."""
    for text in (done.stdout, done.stderr):
        assert not CONTROLS & {ord(c) for c in text}, repr(text)
    assert "Traceback" not in done.stderr


def test_names_and_messages_drive_no_terminal(tmp_path):
    program = f"import sys; sys.stderr.write({HOSTILE!r} + chr(10)); sys.exit(7)"
    path = spec(tmp_path, program, HOSTILE, HOSTILE)
    run = tmp_path / "run"
    commands = [("plan", path), ("run", path, "-o", run), ("run", path, "-o", run), ("status", run),
                ("compare", run), ("report", run), ("rollback", run)]  # fmt: skip
    for command in commands:
        for json_too in ((), ("--json",)):
            done = mydyno(*command, *json_too)
            clean(done)
            if json_too and done.stdout:
                for line in done.stdout.splitlines():
                    json.loads(line)


def test_wrong_arguments_drive_no_terminal(tmp_path):
    for words in (
        ("run", f"{HOSTILE}.toml"),
        (HOSTILE,),
        ("compare", "--" + HOSTILE),
        ("status", tmp_path / HOSTILE),
        ("import", tmp_path / HOSTILE, "-o", tmp_path / "d"),
        ("digest", tmp_path / HOSTILE),
        ("plan", "demo", "--set", f"{HOSTILE}=1"),
    ):
        done = mydyno(*words)
        assert done.returncode in (2, 3), done
        clean(done)


def test_an_imported_log_drives_no_terminal(tmp_path):
    log = Path(__file__).parents[1] / "golden/import/sysbench-1.0-histogram/input.txt"
    for number in range(2):
        hostile = tmp_path / f"{HOSTILE}{number}.log"
        text = log.read_text().replace("sysbench 1.0", f"{HOSTILE}\nsysbench 1.0")
        hostile.write_text(text + f"FATAL: {HOSTILE} {number}\n")
    files = sorted(tmp_path.glob("*.log"))
    for command in (("import", *files, "-o", tmp_path / "d", "--label-line", "(.*evil.*)"),
                    ("compare", tmp_path / "d"), ("status", tmp_path / "d"),
                    ("report", tmp_path / "d")):  # fmt: skip
        done = mydyno(*command)
        assert done.returncode == 0, done.stderr
        clean(done)


def columns(number: int) -> bytes:
    wide = [
        {"name": f"c{i}", "of": "", "source": "s", "kind": "counter", "scale": 1}
        for i in range(number)
    ]
    return document(b"C", wide)


PROBES = {
    "a long integer": File().raw + frame(b"T", b"\xff" * 20_000_000),
    "many columns": File().raw
    + columns(30_000)
    + b"".join(frame(b"T", payload(i, i, {})) for i in range(20_000)),
    "a huge bitmap": File().raw + frame(b"T", unsigned(1) * 3 + bytes(2) + unsigned(1 << 60)),
    "values of nothing": File().raw + frame(b"T", payload(1, 1, {}) + bytes(40_000_000)),
    "a huge frame": File().raw + b"T\xff\xff\xff\xff" + bytes(1000),
    "nested JSON": File().raw + frame(b"N", b"[" * 10**6),
    "a changed byte": bytes([*File().raw[:40], File().raw[40] ^ 1, *File().raw[41:]]),
    "another file": zlib.compress(bytes(1000)),
}


@pytest.mark.parametrize("attack", PROBES)
def test_a_probe_file_is_refused_in_little_memory(finished, attack):
    trial = finished / "trials" / "0000"
    files = {"probe.bin": PROBES[attack], "probe.json": b"{}", "load.start": b"1 up\n"}
    names = {p.name for p in trial.iterdir()}
    saved = {p: p.read_bytes() for p in trial.iterdir()}
    try:
        for name, raw in files.items():
            (trial / name).write_bytes(raw)
        done = limited("report", finished, "--json", timeout=60)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        assert f"warning: {trial / 'probe.bin'}: " in done.stderr
    finally:
        for name in {p.name for p in trial.iterdir()} - names:
            (trial / name).unlink()
        for path, raw in saved.items():
            path.write_bytes(raw)
