"""A treatment that crashes, stalls or gives nothing never wins, whichever way one asks.

Loads that need no server and no root do the harm; only commands and files are looked at.
"""

import json
import sys

import pytest

import command_line

# What a trial does depends on its treatment (MODE) and its block; all of it is repeatable.
LOAD = """
import json, os, random, sys
mode, _, blocks = os.environ.get("MODE", "works:").partition(":")
block = int(os.environ["MYDYNO_BLOCK"])
harmed = str(block) in blocks.split(",") or blocks == "all"
gain = float(os.environ.get("GAIN", "1"))
chance = random.Random(os.environ["MYDYNO_TRIAL"])
if mode == "crashes" and harmed:
    sys.exit("server has gone away")
if mode == "overhead":
    print(json.dumps({"event": "overhead", "cost_s": -1000.0}), flush=True)
for second in range(1, 100000):
    noise = 1 + chance.gauss(0, 0.01)
    tps = 1000 * gain * noise
    if mode == "stalls" and harmed:
        tps = 0
    if mode == "extreme" and harmed:
        tps = float(os.environ["VALUE"])
    report = {"t_s": second, "tps": tps, "cost": 1000 * noise / gain}
    if mode != "silent":
        report["latency_p99_s"] = 0.02 * (1 + chance.gauss(0, 0.01))
    if mode == "histogram" and harmed:
        report["latency_hist"] = "bm90IGEgaGlzdG9ncmFt"
    print(json.dumps(report), flush=True)
"""


def mydyno(*arguments):
    command = command_line.mydyno if arguments[0] == "run" else command_line.shown
    done = command(*arguments)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def written(folder, treatments, *, decide="", design="blocks = 6", load=LOAD):
    """Write a spec of treatments by name, each with its environment; return its path."""
    (folder / "load.py").write_text(load)
    argv = json.dumps([sys.executable, str(folder / "load.py")])
    lines = ['[stack]\nserver = "none"']
    for name, text in treatments.items():
        lines += [f"[treatments.{name}]", *(f'"load/env.{k}" = "{v}"' for k, v in text.items())]
    lines += [f'[workloads.w]\ntool = "command"\nargv = {argv}', f"[design]\n{design}"]
    lines += ["[protocol]\nwarmup_s = 2\nwindow_s = 8"]
    lines += ["[decide]", *(['baseline = "A"'] if treatments else []), decide]
    path = folder / "spec.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def raced(folder, treatments, **more):
    """Run the campaign; return its directory and its `compare --json`."""
    run = folder / "run"
    done = mydyno("run", written(folder, treatments, **more), "-o", run, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(mydyno("compare", run, "--json").stdout)
    assert json.loads(done.stdout) == found
    return run, found


def row_of(found, name="B"):
    return next(row for row in found["treatments"] if row["name"] == name)


def never_adopted(run, found, verdict, name="B"):
    """Check JSON, text, report and the exit codes of the gate."""
    row = row_of(found, name)
    assert row["verdict"] == verdict
    assert found["winner"] != name
    assert name not in found["winners"].values()
    shown = mydyno("compare", run).stdout
    text = " ".join(shown.split())
    assert f" {verdict} " in text
    assert "gives" not in shown.split("\n\n")[0]
    assert mydyno("report", run).returncode == 0
    page = (run / "report.html").read_text()
    assert f"</span> {verdict}</span>" in page
    assert 'class="winner"' not in page
    assert mydyno("compare", run, "--fail-unless", "adopt").returncode == 3
    assert mydyno("compare", run, "--fail-unless", "equivalent").returncode == 3
    return row, text, page


def test_most_of_its_trials_crash(tmp_path):
    better = {"MODE": "crashes:0,1,2,3,4,5", "GAIN": "1.3"}
    run, found = raced(tmp_path, {"A": {}, "B": better}, design="blocks = 8")
    row, text, page = never_adopted(run, found, "failed")
    assert row["ends"] == {"trials": 8, "failed": 6, "stalled": 0, "unknown": 0}
    assert row["effect"] is None
    assert "B failed in 6 of 8 trials, the baseline in 0 of 8" in text
    assert "failed in 6 of 8 trials" in page.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("mode", "counted"),
    [("crashes:2", "failed in 1 of 6 trials"), ("stalls:1,3,4", "stalled in 3 of 6 trials")],
)
def test_some_of_its_trials_crash_or_stall(tmp_path, mode, counted):
    run, found = raced(tmp_path, {"A": {}, "B": {"MODE": mode, "GAIN": "1.3"}})
    _, text, page = never_adopted(run, found, "unstable")
    assert f"B {counted}, the baseline in 0 of 6" in text
    assert counted in page.replace("\N{NO-BREAK SPACE}", " ")


def test_it_never_does_any_work(tmp_path):
    run, found = raced(tmp_path, {"A": {}, "B": {"MODE": "stalls:all"}})
    row, text, _ = never_adopted(run, found, "failed")
    assert row["ends"]["stalled"] == 6
    assert "B stalled in 6 of 6 trials" in text


def test_a_treatment_that_fails_no_more_often_than_the_baseline_may_win(tmp_path):
    some = {"A": {"MODE": "crashes:1"}, "B": {"MODE": "crashes:1", "GAIN": "1.3"}}
    _, found = raced(tmp_path, some)
    assert row_of(found)["verdict"] == "adopt"
    assert any("failed in 1 of 6 trials" in warning for warning in row_of(found)["warnings"])
    assert row_of(found, "A")["ends"]["failed"] == 1


def test_a_baseline_that_never_runs_compares_nothing(tmp_path):
    _, found = raced(tmp_path, {"A": {"MODE": "crashes:all"}, "B": {}})
    assert found["winner"] is None
    assert found["sentence"] == "No verdict: A, the baseline, failed in 6 of 6 trials."


def test_another_treatment_wins_over_one_that_crashes(tmp_path):
    some = {"A": {}, "B": {"MODE": "crashes:2", "GAIN": "1.5"}, "C": {"GAIN": "1.2"}}
    run, found = raced(tmp_path, some)
    assert found["winner"] == "C"
    assert row_of(found)["verdict"] == "unstable"
    assert mydyno("compare", run, "--fail-unless", "adopt").returncode == 3


def test_a_race_ends_what_crashes_and_does_not_crown_it(tmp_path):
    some = {"A": {}, "B": {"MODE": "crashes:1", "GAIN": "1.5"}, "C": {"GAIN": "1.2"}}
    path = written(tmp_path, some, design='kind = "race"\nblocks = 5')
    path.write_text(path.read_text().replace("warmup_s = 2\nwindow_s = 8", ""))
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    found = json.loads(done.stdout)
    assert found["winner"] == "C"
    assert row_of(found)["verdict"] == "unstable"
    assert row_of(found)["ends"]["trials"] == 2


def test_a_search_never_picks_a_cell_that_crashes(tmp_path):
    """The cell that would be the best crashes; it is tried once, and another one wins."""
    load = LOAD.replace(
        'gain = float(os.environ.get("GAIN", "1"))',
        'x, y = int(os.environ.get("X", "0")), int(os.environ.get("Y", "0"))\n'
        "gain = 1 + 0.1 * x + 0.1 * y\n"
        'mode, harmed = ("crashes" if x == y == 2 else "works"), True',
    )
    path = written(tmp_path, {}, design='kind = "search"\nbudget = "2h"', load=load)
    text = path.read_text().replace("[protocol]\nwarmup_s = 2\nwindow_s = 8\n", "")
    path.write_text(text + '[factors]\n"load/env.X" = [0, 1, 2]\n"load/env.Y" = [0, 1, 2]\n')
    done = mydyno("run", path, "-o", tmp_path / "run", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    crashing = next(r for r in found["treatments"] if r["name"] == "X=2,Y=2")
    assert (crashing["verdict"], crashing["ends"]["trials"]) == ("failed", 1)
    assert found["winner"] in {"X=1,Y=2", "X=2,Y=1"}


GUARD = "guards = { latency_p99_s = 0.10 }"


def test_a_guard_that_is_not_measured_blocks(tmp_path):
    silent = {"A": {"MODE": "silent"}, "B": {"MODE": "silent", "GAIN": "1.3"}}
    run, found = raced(tmp_path, silent, decide=GUARD)
    row = row_of(found)
    assert (row["verdict"], found["winner"]) == ("inconclusive", None)
    assert row["unevaluated"] == {"latency_p99_s": "not measured"}
    text = " ".join(mydyno("compare", run).stdout.split())
    assert "not adopted: the guard latency_p99_s cannot be evaluated (not measured)" in text
    assert mydyno("compare", run, "--fail-unless", "adopt").returncode == 5


def test_a_guard_that_only_the_baseline_measures_blocks_though_nobody_asked(tmp_path):
    _, found = raced(tmp_path, {"A": {}, "B": {"MODE": "silent", "GAIN": "1.3"}})
    assert row_of(found)["verdict"] == "inconclusive"
    assert "latency_p99_s" in row_of(found)["unevaluated"]


def test_a_guard_that_is_measured_lets_the_better_one_win(tmp_path):
    run, found = raced(tmp_path, {"A": {}, "B": {"GAIN": "1.3"}}, decide=GUARD)
    assert (row_of(found)["verdict"], found["winner"]) == ("adopt", "B")
    assert mydyno("compare", run, "--fail-unless", "adopt").returncode == 0
    assert mydyno("compare", run, "--fail-unless", "equivalent").returncode == 1


def test_a_guard_on_throughput_is_held_the_right_way_round(tmp_path):
    """The response is `cost`, where less is better: B is cheaper, C too but for half the work."""
    load = LOAD.replace('"cost": 1000', '"cost": float(os.environ.get("PRICE", 1)) * 1000')
    some = {"A": {}, "B": {"PRICE": "0.5"}, "C": {"PRICE": "0.05", "GAIN": "0.5"}}
    decide = 'response = "cost"\ndirection = "lower"\nguards = { tps = 0.10 }'
    _, found = raced(tmp_path, some, decide=decide, load=load)
    assert (row_of(found)["verdict"], row_of(found, "C")["verdict"]) == ("adopt", "reject")
    assert found["winner"] == "B"
    assert found["directions"] == {"w": "lower"}


def test_a_response_that_is_not_known_has_to_declare_its_direction(tmp_path):
    some = {"A": {}, "B": {"GAIN": "1.3"}}
    done = mydyno("plan", written(tmp_path, some, decide='response = "cost"'))
    assert done.returncode == 2
    assert 'add decide.direction = "higher" or "lower"' in done.stderr
    wrong = written(tmp_path, some, decide='response = "latency_p99_s"\ndirection = "higher"')
    assert "for latency_p99_s, lower is better" in mydyno("plan", wrong).stderr


@pytest.mark.parametrize(
    "key",
    ["decide.margin", "decide.guards.latency_p99_s", "protocol.window_s", "protocol.warmup_s"],
)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1" + "0" * 400])
def test_a_number_that_is_none_is_refused_with_its_key(tmp_path, key, value):
    spec = written(tmp_path, {"A": {}, "B": {}})
    done = mydyno("plan", spec, "--set", f"{key}={value}")
    assert done.returncode == 2
    assert str(spec) in done.stderr
    assert key.split(".")[1] in done.stderr


@pytest.mark.parametrize("line", ["margin = nan", "guards = { latency_p99_s = inf }"])
def test_a_number_that_is_none_is_refused_with_its_line(tmp_path, line):
    spec = written(tmp_path, {"A": {}, "B": {}}, decide=line)
    done = mydyno("plan", spec)
    assert done.returncode == 2
    number = spec.read_text().splitlines().index(line) + 1
    assert f"{spec}:{number}: decide." in done.stderr
    assert "is not a finite number; write another, or remove the key" in done.stderr


@pytest.mark.parametrize("value", ["5e-324", "1e308", "1.7e308"])
def test_extreme_numbers_end_in_a_verdict_or_a_message(tmp_path, value):
    some = {"A": {}, "B": {"MODE": "extreme:all", "VALUE": value}}
    run, found = raced(tmp_path, some, design="blocks = 3")
    assert row_of(found)["verdict"] in {"adopt", "reject", "unstable", "failed", "inconclusive"}
    assert mydyno("report", run).returncode == 0
    assert mydyno("compare", run).returncode == 0


def test_a_histogram_that_is_none_is_an_outcome(tmp_path):
    some = {"A": {}, "B": {"MODE": "histogram:1", "GAIN": "1.3"}}
    run, found = raced(tmp_path, some, design="blocks = 4")
    assert row_of(found)["ends"]["failed"] + row_of(found)["ends"]["unknown"] == 1
    never_adopted(run, found, "unstable")


def test_a_load_cannot_give_time_back(tmp_path):
    some = {"A": {"MODE": "overhead"}, "B": {"MODE": "overhead", "GAIN": "1.3"}}
    _, found = raced(tmp_path, some, design="blocks = 2")
    lost = sum(row["ends"]["failed"] + row["ends"]["unknown"] for row in found["treatments"])
    assert found["machine_time_s"] == 4 * 10 or lost == 4  # counted as none, or refused


@pytest.mark.parametrize("broken", ["[" * 100_000, '{"a": ', '[{"key": 5}]', "\x00"])
def test_a_broken_file_of_a_run_directory_is_named(tmp_path, broken):
    run, _ = raced(tmp_path, {"A": {}, "B": {}}, design="blocks = 1")
    file = run / "trials" / "0000" / "changes.json"
    file.write_text(broken)
    done = mydyno("compare", run)
    assert done.returncode == 2
    assert str(file) in done.stderr
