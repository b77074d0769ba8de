"""A campaign of any program, from the command line: verdicts, machine time, signals, resumption."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import COMMAND, has_output, mydyno, reached
from integration.lab_steps import within

LOAD = """
import json, os, random, sys
effect = 1 + float(os.environ.get("GAIN", "0"))
chance = random.Random(os.environ["MYDYNO_SEED"] + os.environ["MYDYNO_TRIAL"] + sys.argv[1])
trial = 1 + chance.gauss(0, 0.015)
with open(sys.argv[2], "a") as file:
    print(os.environ["MYDYNO_TRIAL"], os.environ["MYDYNO_ELAPSED_S"], file=file)
print(json.dumps({"event": "overhead", "cost_s": 5}), flush=True)
for second in range(1, 10**6):
    tps = 1000 * effect * trial * (1 + chance.gauss(0, 0.05))
    print(json.dumps({"t_s": second, "tps": tps, "latency_p99_s": 0.02 * chance.uniform(0.9, 1.1)}))
"""
SLOW = """
import json, time
for second in range(1, 10**6):
    time.sleep(0.05)
    print(json.dumps({"t_s": second / 10, "tps": 100}), flush=True)
"""


def spec(folder: Path, program: str, gain: float, *arguments: str, **design: object) -> Path:
    load = folder / "load.py"
    load.write_text(program)
    argv = [sys.executable, str(load), *arguments]
    lines = [
        '[stack]\nserver = "none"\n[treatments.A]\n[treatments.B]',
        f'"load/env.GAIN" = "{gain}"',
        f'[workloads.w]\ntool = "command"\nargv = {json.dumps(argv)}',
        "[protocol]\nwarmup_s = 10\nwindow_s = 30\n[design]",
        *(f"{k} = {json.dumps(v)}" for k, v in design.items()),
    ]
    path = folder / "spec.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_true_effect_is_adopted_and_covered(tmp_path):
    record = tmp_path / "elapsed"
    path = spec(tmp_path, LOAD, 0.10, "1", str(record), blocks=5)
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    row = next(r for r in found["treatments"] if r["name"] == "B")
    assert row["verdict"] == "adopt"
    assert row["effect"]["low"] <= 1.10 <= row["effect"]["high"]
    assert found["winner"] == "B"
    assert found["winners"] == {"w": "B"}
    assert found["machine_time_s"] == 10 * (40 + 5)
    elapsed = [line.split() for line in record.read_text().splitlines()]
    assert [(int(t), float(s)) for t, s in elapsed] == [(i, 45.0 * i) for i in range(10)]
    keys = {"campaign", "response", "baseline", "machine_time_s", "winner", "winners", "treatments"}
    assert keys <= found.keys()
    want = {"name", "workload", "verdict", "durability", "trials", "value", "effect", "guards"}
    assert want <= row.keys()
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000


def simulated(folder: Path, world: str, arms: dict[str, float], **design: object) -> Path:
    """Return a spec of the simulated host; its effects are known, its time costs nothing."""
    argv = [sys.executable, "-m", "mydyno_simulate", "--world", world, "--seed", "4"]
    lines = ['[stack]\nserver = "none"']
    for name, effect in arms.items():
        lines += [f"[treatments.{name}]", f'"load/env.SIM_EFFECT" = "{effect}"' if effect else ""]
    lines += [f'[workloads.w]\ntool = "command"\nargv = {json.dumps(argv)}', "[design]"]
    lines += [f"{k} = {json.dumps(v)}" for k, v in design.items()]
    path = folder / "simulated.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_part_that_no_rung_of_the_winner_has_is_not_in_the_table(tmp_path):
    """A ladder measures without each of its parts the winner only."""
    path = spec(tmp_path, LOAD, 0.3, "1", os.devnull, blocks=3, rungs=["A", "B", "C+D"])
    text = path.read_text().replace("[treatments.", "[bundles.")
    more = '[bundles.C]\n"load/env.X" = "1"\n[bundles.D]\n"load/env.Y" = "2"\n'
    path.write_text(text.replace("[workloads.w]", f"{more}[workloads.w]"))
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["trials"] for row in json.loads(done.stdout)["treatments"]}
    assert rows.keys() == {"A", "B", "C+D"}
    assert all(rows.values())


def test_without_a_protocol_trials_are_as_long_as_they_are_worth(tmp_path):
    arms = {"STOCK": 0.0, "better": 0.2, "worse": -0.15}
    path = simulated(tmp_path, "bare", arms)
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    words = {row["name"]: row["verdict"] for row in found["treatments"]}
    assert words == {"STOCK": "baseline", "better": "adopt", "worse": "reject"}
    effect = found["treatments"][1]["effect"]
    assert effect["low"] <= 1.2 <= effect["high"]
    lab = next(line for line in done.stderr.splitlines() if line.startswith("check trials: "))
    assert "can be shown in 8 blocks" in lab
    trials = done.stderr.splitlines().index(lab)
    assert trials <= 4
    events = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text().splitlines())
    ends = {
        e["event"]["outcome"]["window"]["end_s"] for e in events if e["event"]["type"] == "finished"
    }
    assert len(ends) > 1


def test_no_difference_ends_without_a_winner(tmp_path):
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = spec(folder, LOAD, 0.0, str(seed), os.devnull, blocks=4)
        done = mydyno("run", path, "-o", folder / "run", "--json")
        assert json.loads(done.stdout)["winner"] is None
        shown = mydyno("compare", folder / "run")
        assert "Keep the baseline" in shown.stdout
        assert "is ruled out" in shown.stdout.replace("\n", " ")


@pytest.mark.timed
def test_a_trial_costs_little_beside_its_load(tmp_path):
    path = spec(tmp_path, LOAD, 0.1, "1", os.devnull, blocks=10)
    began_s = time.monotonic()
    assert mydyno("run", path, "-o", tmp_path / "run").returncode == 0
    assert (
        time.monotonic() - began_s
    ) / 20 < 1.0  # 0.3 s on a quiet machine; bench/ has the figure


def running(path: Path, run: Path) -> "subprocess.Popen[bytes]":
    argv = [*COMMAND, "run", str(path), "-o", str(run)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    reached(process, lambda: has_output(run / "trials" / "0001" / "load.out", 200))
    return process


def loads_of(folder: Path) -> list[str]:
    """Return the command lines of loads of this test that still run."""
    mine = str(folder / "load.py").encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mine in line and b"run" not in line.split(b"\0"):
                found.append(line.decode())
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_prints_how_to_resume_and_resumes(tmp_path, number):
    path, run = spec(tmp_path, SLOW, 0.1, blocks=2), tmp_path / "run"
    text = path.read_text().replace("warmup_s = 10", "warmup_s = 1").replace("= 30", "= 8")
    path.write_text(text)
    process = running(path, run)
    began_s = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began_s < 20  # without a signal there would be as much left
    assert b"run the same command again to resume" in errors
    assert loads_of(tmp_path) == []
    state = json.loads(mydyno("status", run, "--json").stdout)
    assert state["state"] == "stopped"
    assert state["finished"] == 1
    assert state["machine_time_s"] > 3
    assert mydyno("run", path, "-o", run).returncode == 0
    assert json.loads(mydyno("status", run, "--json").stdout)["finished"] == 4


def test_a_killed_campaign_resumes_with_the_same_trials(tmp_path):
    path, run = spec(tmp_path, SLOW, 0.1, blocks=2), tmp_path / "run"
    path.write_text(
        path.read_text().replace("warmup_s = 10", "warmup_s = 1").replace("= 30", "= 8")
    )
    process = running(path, run)
    process.kill()
    process.communicate()
    assert within(10, lambda: not loads_of(tmp_path))
    assert mydyno("run", path, "-o", run).returncode == 0
    lines = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    finished = [
        e["event"]["outcome"]["trial"]["id"] for e in lines if e["event"]["type"] == "finished"
    ]
    assert finished == [0, 1, 2, 3]
    lost = [e["event"] for e in lines if e["event"]["type"] == "interrupted"]
    assert [e["trial"]["id"] for e in lost] == [1]
    assert (run / "trials" / "0001.interrupted-1" / "load.out").exists()


def test_a_failing_load_is_an_outcome(tmp_path):
    program = (
        "import sys; sys.exit('no such table') if __import__('os').environ.get('GAIN') else 0\n"
    )
    program += LOAD
    path = spec(tmp_path, program, 0.1, "1", os.devnull, blocks=2)
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    row = next(r for r in json.loads(done.stdout)["treatments"] if r["name"] == "B")
    assert row["verdict"] == "failed"
    assert "no such table" in row["warnings"][0]


def test_a_directory_that_cannot_be_written_is_named(tmp_path):
    path = spec(tmp_path, LOAD, 0.1, "1", os.devnull, blocks=2)
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    done = mydyno("run", path, "-o", blocker / "run")
    assert done.returncode == 2
    assert "choose another directory with -o" in done.stderr


def test_another_spec_in_the_same_directory_is_refused(tmp_path):
    path = spec(tmp_path, LOAD, 0.1, "1", os.devnull, blocks=2)
    assert mydyno("run", path, "-o", tmp_path / "run").returncode == 0
    done = mydyno("run", path, "-o", tmp_path / "run", "--set", "design.blocks=3")
    assert done.returncode == 2
    assert "this one with another spec, scale, --set or --budget" in done.stderr
    assert "progress saved" not in done.stderr  # that of another campaign: not to be resumed so


def test_the_winner_is_soaked_when_asked(tmp_path):
    record = tmp_path / "elapsed"
    path = spec(tmp_path, LOAD, 0.10, "1", str(record), blocks=5, soak="20m")
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "B held over a soak of 20 minutes" in found["soak"]
    assert found["soak"] in found["sentence"]
    assert [r["trials"] for r in found["treatments"]] == [5, 5]
    again = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert json.loads(again.stdout) == found
    report = mydyno("report", tmp_path / "run", "--json")
    assert len(json.loads(report.stdout)["trials"]) == 11
    assert "soak" in mydyno("plan", path).stdout


def test_a_plan_reports_what_a_switchback_can_show(tmp_path):
    path = spec(tmp_path, LOAD, 0.10, "1", str(tmp_path / "record"), kind="switchback")
    path.write_text(path.read_text().replace("warmup_s = 10\nwindow_s = 30\n", ""))
    plenty = mydyno("plan", path, "--budget", "1h").stdout
    assert "take 31 s)" in plenty
    assert "differences of" in plenty
    assert "nothing: the budget" in mydyno("plan", path, "--budget", "40s").stdout


def test_a_corrected_spec_takes_the_directory_where_nothing_was_measured(tmp_path):
    run = tmp_path / "run"
    failed = mydyno(
        "run", spec(tmp_path, "raise SystemExit('no table t')", 0.1, blocks=2), "-o", run
    )
    assert failed.returncode == 0, failed.stderr
    assert "no table t" in failed.stdout
    path = spec(tmp_path, LOAD, 0.1, "1", os.devnull, blocks=3)
    done = mydyno("run", path, "-o", run, "--json")
    assert done.returncode == 0, done.stderr
    assert "nothing was measured with the spec before; its journal is now" in done.stderr
    assert json.loads(done.stdout)["treatments"][0]["trials"] == 3
    assert (run / "spec.toml").read_text() == path.read_text()
    assert "no table t" in (run / "journal-1.jsonl").read_text()
    assert "blocks = 2" in (run / "spec-1.toml").read_text()
    other = mydyno("run", spec(tmp_path, LOAD, 0.2, "1", os.devnull, blocks=3), "-o", run)
    assert other.returncode == 2
    assert "contains another campaign" in other.stderr


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_killed_at_its_first_event_has_the_spec_of_the_run_after_it(tmp_path, moment):
    mortal = (
        "import os\nfrom mydyno.journal import FileJournal\nfrom mydyno.cli import main\n"
        f"append, moment = FileJournal.append, {moment!r}\n"
        "def mortal(self, event):\n"
        "    append(self, event) if moment == 'after' else None\n"
        "    os.kill(os.getpid(), 9)\n"
        "FileJournal.append = mortal\nmain()"
    )
    run = tmp_path / "run"
    killed = mydyno(
        "run", spec(tmp_path, LOAD, 0.3, "1", os.devnull, blocks=2), "-o", run, code=mortal
    )
    assert killed.returncode == -signal.SIGKILL
    path = spec(tmp_path, LOAD, 0.1, "1", os.devnull, blocks=3)
    assert mydyno("run", path, "-o", run).returncode == 0
    assert (run / "spec.toml").read_text() == path.read_text()
