"""A load cannot hang a campaign, outlive its trial, or be mistaken for somebody else's process.

Attacks here use commands and files only.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import COMMAND, has_output, mydyno, reached

SPEC = """
[stack]
server = "none"
[treatments.A]
[treatments.B]
"load/env.WHICH" = "b"
[workloads.w]
tool = "command"
argv = {argv}
[protocol]
warmup_s = 1
window_s = 2
blocks = 1
"""
REPORTS = 'for s in range(1, 9):\n    print(\'{"t_s": %d, "tps": 5}\' % s, flush=True)\n'
LEAVES = {
    "a child on its output": "import subprocess\nsubprocess.Popen(['sleep', '611'])\n",
    "a child in a session of its own": (
        "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '611'])\n"
    ),
    "a daemon, forked twice, with an environment of its own": (
        "import os\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.execve('/bin/sleep', ['sleep', '611'], {})\n"
        "    os._exit(0)\n"
        "os.wait()\n"
    ),
    "one that writes for ever and heeds no signal": (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import signal, time\\n"
        "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 15)]\\n"
        "while True: print(chr(32), flush=True); time.sleep(0.01)'], start_new_session=True)\n"
    ),
}


def spec(folder, load):
    script = folder / "load.py"
    script.write_text(load)
    path = folder / "spec.toml"
    path.write_text(SPEC.format(argv=json.dumps([sys.executable, str(script)])))
    return path


def strays(folder):
    """Return the processes that began in a folder or name it, and sleeps of 611 seconds.

    No other test has those, at work beside these ones.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = b"611" in words and b"sleep" in words
        if (ours or str(folder).encode() in b" ".join(words)) and int(entry.name) != os.getpid():
            found.append((entry.name, words))
    return found


@pytest.mark.parametrize("kind", LEAVES)
def test_what_a_load_leaves_behind_hangs_nothing_and_ends_with_the_trial(tmp_path, kind):
    before = {pid for pid, _ in strays(tmp_path)}
    began = time.monotonic()
    path = spec(tmp_path, LEAVES[kind] + REPORTS)
    done = mydyno("run", path, "-o", tmp_path / "run", timeout=100)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 60
    assert [s for s in strays(tmp_path) if s[0] not in before] == []


def test_a_load_that_ends_too_early_and_leaves_a_talker_fails_its_trial_only(tmp_path):
    talker = LEAVES["one that writes for ever and heeds no signal"]
    path = spec(tmp_path, talker + 'print(\'{"t_s": 1, "tps": 5}\', flush=True)\n')
    done = mydyno("run", path, "-o", tmp_path / "run", timeout=100)
    assert 'File "/' not in done.stderr  # no traceback of ours; the talker may print its own
    assert "ended after 1 s" in (tmp_path / "run/journal.jsonl").read_text()


def test_a_killed_campaign_takes_its_load_along(tmp_path):
    report = 'print(\'{"t_s": 1, "tps": 5}\', flush=True)\n'  # another line would end its trial
    path = spec(tmp_path, f"import time\n{report}time.sleep(611)\n")
    argv = [*COMMAND, "run", str(path), "-o", str(tmp_path / "run")]
    with subprocess.Popen(argv, stderr=subprocess.PIPE) as process:
        try:
            outputs = "run/trials/*/load.out"
            reached(process, lambda: any(map(has_output, tmp_path.glob(outputs))))
        finally:
            process.kill()
            process.communicate()
    end = time.monotonic() + 10
    while (left := strays(tmp_path / "load.py")) and time.monotonic() < end:
        time.sleep(0.1)
    assert left == []


def test_a_load_inherits_no_file_of_ours(tmp_path):
    record = tmp_path / "files"
    load = (
        "import os, pathlib\n"
        "links = {fd: os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd')"
        " if os.path.islink('/proc/self/fd/' + fd)}\n"
        f"pathlib.Path({str(record)!r}).write_text(repr(links))\n"
    )
    done = mydyno("run", spec(tmp_path, load + REPORTS), "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    links = eval(record.read_text())  # noqa: S307 - our own text
    inherited = [v for k, v in links.items() if int(k) > 2 and not v.startswith("/proc/")]
    assert [v for v in inherited if "mydyno" in v or "journal" in v or "changes" in v] == []
    assert not [v for v in inherited if str(tmp_path) in v]
