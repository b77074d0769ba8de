"""The command line: help is quick, and wrong requests get a message with the reason."""

import inspect
import json
import keyword
import shlex
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
import typer

from command_line import MAIN, mydyno, shown
from mydyno import __version__
from mydyno.cli import COMMANDS, EXAMPLES

SPECS = Path(__file__).parents[1] / "golden" / "spec"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_docstring(name):
    word = f"{name}_" if keyword.iskeyword(name) else name
    command = getattr(import_module(f"mydyno.cli.{word}"), word)
    summary = command.info.help if isinstance(command, typer.Typer) else inspect.getdoc(command)
    assert summary.split("\n")[0] == COMMANDS[name]


def test_help_loads_no_statistics():
    code = (
        "import sys; from mydyno.cli import application\n"
        "try: application([])(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'hdrh', 'rich', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "inspect" in done.stdout


@pytest.mark.timed
def test_help_is_shown_in_three_tenths_of_a_second():
    argv, taken_s = [str(Path(sys.executable).with_name("mydyno")), "--help"], []
    for _ in range(5):
        began_s = time.monotonic()
        subprocess.run(argv, capture_output=True, check=True)
        taken_s.append(time.monotonic() - began_s)
    assert min(taken_s) < 0.3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "dmo"], 2, "unknown file or recipe 'dmo'; did you mean 'demo'?"),
        (["run", "nowhere.toml"], 2, "nowhere.toml: No such file or directory"),
        (["run", str(SPECS / "bad" / "unknown-key.toml")], 2, "did you mean 'warmup_s'?"),
        (["run", "demo", "--set", "design"], 2, "--set design: write KEY=VALUE"),
        (["run", "demo", "--set", "design.bloks=3"], 2, "did you mean 'blocks'?"),
        (["run", "demo", "--budget", "soon"], 2, "'soon' is not a duration"),
        (["compare", "/nowhere"], 2, "/nowhere: not a run directory"),
        (["status", "/nowhere"], 2, "/nowhere: not a run directory"),
        (["stats", "x"], 2, "Did you mean 'status'?"),
        (["report", ".", "--json", "-o", "x"], 2, "--json prints the data as they are"),
        (["report", ".", "--json", "--with-names"], 2, "--json prints the data as they are"),
        (["recipes", "demo", "--json"], 2, "demo: a recipe is printed as TOML"),
        (
            ["run", "demo", "--set", "stack.server=/nowhere", "--allow", "hots"],
            2,
            "--allow: unknown consent 'hots'; did you mean 'host'?",
        ),
        (
            ["rollback", "local", "--host", "ssh://a"],
            2,
            "--host: local is a host; leave --host out",
        ),
        (["verify", "local", "--host", "ssh://a"], 2, "--host: local is a host; leave --host out"),
        (["lab", "down", "none-such"], 2, "lab none-such: does not exist on localhost"),
    ],
)
def test_a_wrong_request_is_reported(arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = shown(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_plan_is_shown_and_nothing_done(tmp_path):
    done = mydyno("plan", str(SPECS / "good" / "two-treatments.toml"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "11 in 4 blocks" in done.stdout
    assert "differences of" in done.stdout
    assert "B" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_less_bias_is_priced_before_it_is_paid():
    asked = ("plan", str(SPECS / "good" / "two-treatments.toml"))
    less = shown(*asked, "--set", "protocol.bias=0.0025")
    assert "take 13 min" in less.stdout, less.stderr
    assert "take 5 min" in shown(*asked).stdout


def test_recipes_are_listed_with_what_they_take():
    done = mydyno("recipes")
    names = [line.split()[0] for line in done.stdout.splitlines() if line and line[0] != " "]
    assert {"demo", "io-scheduler", "pinterest-ladder"} <= set(names)
    assert names == sorted(names)
    for word in ("time", "needs", "touches"):
        assert done.stdout.count(f"\n  {word} ") == len(names)
    assert "with --scale small" in done.stdout


def test_medium_takes_an_hour_at_most_and_small_a_quarter_of_it():
    rows = json.loads(shown("recipes", "--json").stdout)
    scaled = [row for row in rows if row["name"] != "demo"]  # which is small as it is
    assert len(scaled) == len(rows) - 1
    assert all(time for row in rows for time in row["scales"].values())
    for row in scaled:
        for scale, most in (("medium", 60), ("small", 15)):
            number, _, unit = row["scales"][scale].partition(" ")
            assert unit == "min", row
            assert float(number) <= most, row


def test_a_recipe_is_printed_to_begin_with():
    assert shown("recipes", "demo").stdout.startswith("# Four configurations")
    done = shown("recipes", "domo")
    assert done.returncode == 2
    assert "did you mean 'demo'?" in done.stderr


def test_size_is_short_for_a_set_option_and_set_takes_precedence():
    small = shown("plan", "pinterest-ladder", "--scale", "small", "--set", "protocol.window_s=30")
    assert "36 in 3 blocks" in small.stdout
    assert "20 min under load" in small.stdout  # 36 x 33 s
    done = shown("plan", "pinterest-ladder", "--scale", "tiny")
    assert done.returncode == 2
    assert "pinterest-ladder.toml: --scale: unknown size 'tiny'; known: small" in done.stderr


@pytest.mark.parametrize("arguments", [["--version"], ["-V"]])
def test_the_version_is_printed(arguments):
    assert shown(*arguments).stdout == f"mydyno {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "usage"),
    [
        (["-h"], "mydyno [OPTIONS] COMMAND"),
        (["help"], "mydyno [OPTIONS] COMMAND"),
        (["help", "plan"], "mydyno plan [OPTIONS]"),
        (["plan", "-h"], "mydyno plan [OPTIONS]"),
        (["lab", "up", "-h"], "mydyno lab up [OPTIONS]"),
    ],
)
def test_help_is_found_where_people_look(arguments, usage):
    done = mydyno(*arguments)  # in a process of its own: its usage has the name of the program
    assert done.returncode == 0, done.stderr
    assert usage.partition(" ")[2] in done.stdout


@pytest.mark.parametrize("width", ["40", "60", "80", "200"])
@pytest.mark.parametrize("arguments", [["--help"], ["lab", "--help"]])
def test_no_line_of_help_is_cut(arguments, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    printed = shown(*arguments).stdout
    assert "…" not in printed
    assert "..." not in printed.partition("Commands:")[2]


def test_without_arguments_the_first_steps_are_shown():
    done = shown()
    assert "mydyno run demo -o demo-run" in done.stdout + done.stderr


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_a_command_are_of_it_and_take_its_options(name):
    printed = shown(name, "--help").stdout
    for line in EXAMPLES[name]:
        assert f"  mydyno {line}\n" in printed
        first, *options = shlex.split(line)
        words = [one for one in options if one.startswith("--")]
        if first == name != "lab":
            assert [one for one in words if one not in printed.partition("Examples")[0]] == []


@pytest.mark.parametrize("arguments", [["recipes"], ["--help"], ["lab", "classes"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_under_stdout_is_one_line(arguments, unbuffered, monkeypatch):
    argv = [sys.executable, "-c", MAIN, *arguments]
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "mydyno: No space left on device; free space and repeat it\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "> /dev/full", "2> /dev/full"])
def test_a_stream_that_is_closed_or_full_ends_in_no_traceback(tmp_path, closed):
    errors = "" if "2>" in closed else f"2> {tmp_path}/errors"
    argv = shlex.join([sys.executable, "-c", MAIN, "recipes"])
    done = subprocess.run(
        ["sh", "-c", f"LC_ALL=C {argv} {closed} {errors}"], capture_output=True, check=False
    )
    assert done.returncode in {0, 3}
    text = (tmp_path / "errors").read_text() if errors else ""
    assert "Traceback" not in text
    assert "Exception" not in text


FOREIGN = {
    "missing": None,
    "bytes": bytes(range(256)) * 9,
    "nul": b'[campaign]\nname = "a\0b"\n',
    "utf16": '[campaign]\nname = "a"\n'.encode("utf-16"),
    "of\na line": b"x",
    "\udcff\udcfe": b"x",
}
WAYS = {
    "apply": ["--to", "local"],
    "export": ["-o", "out"],
    "import": ["-o", "out"],
    "move": ["/data/mysql"],
    "run": ["-o", "out"],
    "compare": ["--json"],
}


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"lab", "recipes"}))
def test_whatever_a_path_leads_to_the_message_names_it_and_the_next_step(
    name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run = mydyno if name == "digest" else shown  # which becomes another program
    for file, content in FOREIGN.items():
        if content is not None:
            (tmp_path / file).write_bytes(content)
        done = run(name, file, *WAYS.get(name, []))
        text = done.stderr
        assert "Traceback" not in text, (file, text)
        assert "panicked" not in text, (file, text)
        without_events = name == "digest" and content is not None
        assert done.returncode in ((0, 2) if without_events else (2,)), (file, text)
        assert file.isascii() <= (file.split("\n")[0] in text), (file, text)


def test_an_argument_that_is_no_text_is_refused(tmp_path):
    argv = [sys.executable, "-c", MAIN, "lab", "up", "x", "--class", "\udcff"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"is not UTF-8" in done.stderr


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("mydyno pla", "plan"),
        ("mydyno plan de", "demo"),
        ("mydyno plan ./m", "./my.toml"),
        ("mydyno run tls-cost --scale ", "small"),
        ("mydyno recipes tls", "tls-cost"),
        ("mydyno compare ru", "runs/"),
        ("mydyno compare x --fail-unless ", "adopt"),
        ("mydyno lab up d --class azure-p1", "azure-p15"),
        ("mydyno digest --rev", "--review"),
        ("mydyno digest x.log --rev", "--reverse"),
        ("mydyno digest x.log --gr", "--group-by"),
        ("mydyno lab up d --vm azure-d2", "azure-d2s-v3"),
    ],
)
def test_a_shell_completes(line, wanted, tmp_path, monkeypatch):
    (tmp_path / "my.toml").write_text("")
    (tmp_path / "runs").mkdir()
    words = line.split(" ")
    monkeypatch.setenv("_MYDYNO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    argv = [sys.executable, "-c", f"import sys; sys.argv[0] = 'mydyno'; {MAIN}"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wanted in done.stdout, done
    assert done.stderr == ""
