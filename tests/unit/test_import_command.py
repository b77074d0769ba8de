"""`mydyno import`: from logs to a run directory that compare, report and status read."""

import gzip
import json
import lzma
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydyno.cli import application
from mydyno.model import MydynoError

LOGS = Path(__file__).parents[1] / "golden" / "import"
RUN = """sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: {threads}

Threads started!

{reports}
SQL statistics:
    queries performed:
        read:                            {read}
        write:                           {write}
        other:                           {other}
        total:                           {total}
    transactions:                        {count}    ({rate:.2f} per sec.)
    queries:                             {total}  ({queries:.2f} per sec.)

General statistics:
    total time:                          {seconds:.4f}s
    total number of events:              {count}
"""
REPORT = "[ {t}s ] thds: {threads} tps: {tps:.2f} qps: {qps:.2f} (r/w/o: {r:.2f}/{w:.2f}/{o:.2f})"


def log(rates, threads=4):
    """Return the log of a run whose reports, one a second, have these rates."""
    lines = [
        REPORT.format(t=t, threads=threads, tps=x, qps=20 * x, r=14 * x, w=4 * x, o=2 * x)
        for t, x in enumerate(rates, 1)
    ]
    count = round(sum(rates))
    return RUN.format(
        threads=threads, reports="\n".join(lines), count=count, seconds=len(rates), read=14 * count,
        write=4 * count, other=2 * count, total=20 * count, rate=count / len(rates),
        queries=20 * count / len(rates),
    )  # fmt: skip


def mydyno(*arguments, stdin=None):
    words = [str(a) for a in arguments]
    return CliRunner().invoke(application(words), words, input=stdin)


def imported(folder, *arguments, stdin=None):
    done = mydyno("import", *arguments, "-o", folder, "--json", stdin=stdin)
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


def refused(*arguments):
    done = mydyno(*arguments)
    assert isinstance(done.exception, MydynoError), done.output
    return str(done.exception), done.exception.exit_code


def compared(folder):
    return json.loads(mydyno("compare", folder, "--json").stdout)


@pytest.fixture
def repeats(tmp_path):
    """Logs of two treatments, three runs each, the second of them a fifth faster."""
    for name, level in (("ext4", 100), ("xfs", 120)):
        (tmp_path / "logs" / name).mkdir(parents=True)
        for i in range(3):
            rates = [level + i + s % 3 for s in range(12)]
            (tmp_path / "logs" / name / f"run{i}.log").write_text(log(rates))
    return tmp_path / "logs"


def test_repeats_in_folders_are_compared(repeats, tmp_path):
    result = imported(tmp_path / "d", repeats)
    assert {(r["label"], r["block"]) for r in result["runs"]} == {
        (name, block) for name in ("ext4", "xfs") for block in range(3)
    }
    found = compared(tmp_path / "d")
    assert found["baseline"] == "ext4"
    assert found["winner"] == "xfs"
    (row,) = [r for r in found["treatments"] if r["name"] == "xfs"]
    assert row["verdict"] == "adopt"
    assert row["workload"] == "oltp_read_write/4"
    assert row["durability"] == "unknown"
    assert row["effect"]["ratio"] == pytest.approx(1.2, abs=0.01)
    assert any(
        "drift of the machine looks like an effect" in warning for warning in found["warnings"]
    )


def test_single_runs_give_no_verdict(repeats, tmp_path):
    """However alike the reports within a run are, they do not predict the next run."""
    folder = tmp_path / "d"
    imported(folder, repeats / "ext4/run0.log", repeats / "xfs/run0.log")
    found = compared(folder)
    assert [r["verdict"] for r in found["treatments"]] == ["baseline", "inconclusive"]
    assert found["treatments"][1]["effect"] is None
    assert "no treatment ran twice; at least two runs of each are needed" in found["sentence"]
    assert any(
        "repeat each treatment at least three times" in warning for warning in found["warnings"]
    )


def test_report_and_status_read_it(repeats, tmp_path):
    folder = tmp_path / "d"
    imported(folder, repeats)
    status = json.loads(mydyno("status", folder, "--json").stdout)
    assert (status["state"], status["finished"], status["failed"]) == ("finished", 6, 0)
    assert mydyno("report", folder).exit_code == 0
    page = (folder / "report.html").read_text()
    assert "xfs" in page
    assert "whether they took turns is not known" in page
    assert "random order" not in page
    result = json.loads(mydyno("report", folder, "--json").stdout)
    assert result["protocol"].startswith("imported: ")
    assert len(result["trials"][0]["curves"][0]["values"]) == 12


def test_one_run_alone_can_be_reported(tmp_path):
    folder = tmp_path / "d"
    imported(folder, "-", stdin=log([100] * 5))
    found = compared(folder)
    assert [r["name"] for r in found["treatments"]] == ["stdin"]
    assert found["sentence"] == "No verdict: there is no treatment to compare stdin with."
    assert mydyno("report", folder).exit_code == 0


def test_nothing_is_run_into_it(repeats, tmp_path):
    folder = tmp_path / "d"
    imported(folder, repeats)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    for spec in (folder / "spec.toml", "demo"):
        result, code = refused("run", spec, "-o", folder)
        assert "this run directory holds imported logs and cannot be run" in result
        assert code == 2
    result, _ = refused("run", folder / "spec.toml", "-o", tmp_path / "other")
    assert "imported logs cannot be run" in result
    result, _ = refused("plan", folder / "spec.toml")
    assert "imported logs cannot be run" in result
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    assert not (tmp_path / "other").exists()


def test_leftovers_of_a_killed_import_are_removed(repeats, tmp_path):
    left = tmp_path / ".d.importing-99999999"
    left.mkdir()
    imported(tmp_path / "d", repeats)
    assert not left.exists()
    assert not list(tmp_path.glob(".d.*"))


def test_a_directory_with_something_in_it_is_refused(repeats, tmp_path):
    imported(tmp_path / "d", repeats)
    result, code = refused("import", repeats, "-o", tmp_path / "d")
    assert "not empty; choose a new directory" in result
    assert code == 2


def test_threads_make_workloads(tmp_path):
    for n in (4, 16):
        (tmp_path / f"t{n}.log").write_text(log([100] * 5, threads=n))
    result = imported(tmp_path / "d", tmp_path / "t4.log", tmp_path / "t16.log", "--label", "mine")
    assert [(r["workload"], r["label"], r["block"]) for r in result["runs"]] == [
        ("oltp_read_write/4", "mine", 0),
        ("oltp_read_write/16", "mine", 0),
    ]


def test_runs_of_different_commands_are_different_workloads(tmp_path):
    for size in (1000, 2000):
        above = f"$ sysbench oltp_read_write --table-size={size} --tables=4 run\n"
        (tmp_path / f"{size}.log").write_text(above + log([100] * 5))
    (tmp_path / "plain.log").write_text(log([100] * 5))
    result = imported(tmp_path / "d", *sorted(tmp_path.glob("*.log")))
    assert [r["workload"] for r in result["runs"]] == [
        "oltp_read_write/4,table_size=1000",
        "oltp_read_write/4,table_size=2000",
        "oltp_read_write/4,table_size=?",
    ]


def test_a_number_that_a_script_has_not_filled_in_is_none(tmp_path):
    above = "$ sysbench oltp_read_write --threads=$t --table-size=$rows run\n"
    (tmp_path / "full.log").write_text(above + log([100] * 5))
    bare = [x for x in log([90] * 5).splitlines() if not x.startswith(("[ ", "Number"))]
    (tmp_path / "bare.log").write_text(above + "\n".join(bare))
    result = imported(tmp_path / "d", tmp_path / "full.log", tmp_path / "bare.log")
    assert [r["workload"] for r in result["runs"]] == ["oltp_read_write/4", "oltp_read_write"]
    assert [r["doubts"] for r in result["runs"]] == [[], []]


def test_labels_by_pattern_and_by_lines(tmp_path):
    text = "== mount: noatime\n" + log([100] * 5) + "\n== mount: relatime\n" + log([90] * 5)
    (tmp_path / "all.txt").write_text(text)
    result = imported(tmp_path / "a", tmp_path / "all.txt")
    assert [r["label"] for r in result["runs"]] == ["all#1", "all#2"]
    assert any("each is a treatment of its own" in warning for warning in result["warnings"])
    result = imported(tmp_path / "b", tmp_path / "all.txt", "--label-line", r"^== mount: (\w+)")
    assert [r["label"] for r in result["runs"]] == ["noatime", "relatime"]
    lacking = ("--label-line", r"^== mount: (?:no|relatime(x)?)")
    result = imported(tmp_path / "e", tmp_path / "all.txt", *lacking)
    assert [r["label"] for r in result["runs"]] == ["== mount: no", "== mount: relatime"]
    rules = ("--label", "one=*.txt:1-9", "--label", "two=all.txt")
    result = imported(tmp_path / "c", tmp_path / "all.txt", *rules, "--baseline", "two")
    assert [r["label"] for r in result["runs"]] == ["one", "two"]
    assert compared(tmp_path / "c")["baseline"] == "two"


def test_runs_in_one_plain_log_are_repeats(tmp_path):
    (tmp_path / "all.log").write_text(log([100] * 5) + "\n" + log([90] * 5))
    result = imported(tmp_path / "d", tmp_path / "all.log")
    assert [(r["label"], r["block"]) for r in result["runs"]] == [("all", 0), ("all", 1)]
    assert any("taken as repeats of one treatment" in warning for warning in result["warnings"])


@pytest.mark.parametrize("case", ["fio-3.33-clients", "fio-3.33-clients-json"])
def test_jobs_of_fio_are_part_of_the_label(case, tmp_path):
    """Jobs that ran in turn are no repeats of each other, and each has lines of its own."""
    shutil.copy(LOGS / case / "input.txt", tmp_path / "mounts.log")
    result = imported(tmp_path / "d", tmp_path / "mounts.log")
    runs = result["runs"]
    assert [r["label"] for r in runs] == ["mounts:noatime", "mounts:relatime", "mounts"]
    assert [r["block"] for r in runs] == [0, 0, 0]
    assert not any("repeats" in warning for warning in result["warnings"])
    assert runs[0]["lines"][0] > 1
    assert runs[0]["lines"][1] < runs[1]["lines"][0]
    first, last = runs[1]["lines"]
    rule = ("--label", f"second=mounts.log:{first}-{last}")
    result = imported(tmp_path / "e", tmp_path / "mounts.log", *rule)
    assert [r["label"] for r in result["runs"]] == ["mounts:noatime", "second", "mounts"]


def test_files_of_one_name_are_called_after_their_folders(repeats, tmp_path):
    given = [repeats / "ext4/run0.log", repeats / "xfs/run0.log"]
    result = imported(tmp_path / "d", *given)
    assert [r["label"] for r in result["runs"]] == ["ext4", "xfs"]


def test_a_copy_of_a_log_is_no_repeat(repeats, tmp_path):
    shutil.copy(repeats / "ext4/run0.log", repeats / "ext4/run9.log")
    result = imported(tmp_path / "d", repeats)
    assert len(result["runs"]) == 6
    assert any(
        "run9.log" in warning and "the same log as" in warning for warning in result["warnings"]
    )


def test_a_warm_up_is_left_out_where_reports_allow_it(tmp_path):
    (tmp_path / "a.log").write_text(log([10] * 6 + [100] * 6))
    shutil.copy(LOGS / "sysbench-0.4.12-oltp" / "input.txt", tmp_path / "b.log")
    result = imported(tmp_path / "d", tmp_path / "a.log", tmp_path / "b.log", "--warmup", "6")
    assert result["runs"][0]["value"] == pytest.approx(100)
    assert any(
        "b.log" in warning and "its warm-up is included" in warning
        for warning in result["warnings"]
    )
    rows = {r["name"]: r for r in compared(tmp_path / "d")["treatments"]}
    assert rows["a"]["value"]["estimate"] == pytest.approx(100)


def test_a_run_that_ends_with_its_warm_up_is_taken_complete(tmp_path):
    """fio's last state is of 3.001 s, and no interval lies between 3 s and that."""
    shutil.copy(LOGS / "fio-3.33-status-json" / "input.txt", tmp_path / "a.json")
    result = imported(tmp_path / "d", tmp_path / "a.json", "--warmup", "3")
    assert result["runs"][0]["value"] > 0
    assert any("its warm-up is included" in warning for warning in result["warnings"])


def test_packed_and_unreadable_files(tmp_path):
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(log([100] * 5).encode()))
    (tmp_path / "b.log.xz").write_bytes(lzma.compress(log([90] * 5).encode()))
    (tmp_path / "c.log.gz").write_bytes(gzip.compress(log([80] * 5).encode())[:60])
    (tmp_path / "d.log").write_bytes(b"\x7fELF\0\0\0")
    (tmp_path / "e.log").write_bytes(b"")
    done = mydyno("import", tmp_path / "gone.log", tmp_path, "-o", tmp_path / "run", "--json")
    assert done.exit_code == 1
    result = json.loads(done.stdout)
    assert [r["label"] for r in result["runs"]] == ["a", "b"]
    errors = {Path(f["file"]).name: f["error"] for f in result["files"] if f["error"]}
    assert errors["gone.log"] == "No such file or directory"
    assert errors["c.log.gz"].startswith("damaged: ")
    assert errors["d.log"] == "binary, no text"
    assert errors["e.log"] == "empty"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--label", "=x"), "write NAME, NAME=PATTERN"),
        (("--label-line", "("), "not a regular expression"),
        (("--baseline", "rnu"), "did you mean 'run'?"),
    ],
)
def test_wrong_requests(words, message, tmp_path):
    (tmp_path / "run.log").write_text(log([100] * 5))
    errors, code = refused("import", tmp_path / "run.log", "-o", tmp_path / "d", *words)
    assert message in errors
    assert code == 2
    assert not (tmp_path / "d").exists()


def test_no_run_at_all(tmp_path):
    (tmp_path / "x.log").write_text("nothing of the kind\n")
    warning, code = refused("import", tmp_path / "x.log", "-o", tmp_path / "d")
    assert "no run found in these files" in warning
    assert code == 2


def test_every_golden_log_can_be_imported(tmp_path):
    done = mydyno("import", *sorted(LOGS.glob("*/input.txt")), "-o", tmp_path / "d", "--json")
    assert done.exit_code == 1  # one is empty, one is no text
    result = json.loads(done.stdout)
    assert len({r["label"] for r in result["runs"]}) > 20
    assert compared(tmp_path / "d")["winner"] is None
    assert mydyno("report", tmp_path / "d").exit_code == 0


FIGURES = {  # of two of the articles, as they print them: label, workload, value
    ("001_99fc740024521213#1", "rndwr/24"): 6935.37,
    ("001_99fc740024521213#1", "rndrd/24"): 7956.88,
    ("001_99fc740024521213#1", "oltp_write_only/8"): 491.43,
    ("001_99fc740024521213#1", "oltp_read_only/8"): 393.13,
    ("001_99fc740024521213#2", "rndwr/24"): 7057.60,
    ("001_99fc740024521213#2", "rndrd/24"): 8399.89,
    ("001_99fc740024521213#2", "oltp_write_only/8"): 544.38,
    ("001_99fc740024521213#2", "oltp_read_only/8"): 379.97,
    ("001_99fc740024521213#3", "rndwr/24"): 6614.37,
    ("001_99fc740024521213#3", "rndrd/24"): 7481.39,
    ("001_99fc740024521213#3", "oltp_write_only/8"): 498.54,
    ("001_99fc740024521213#3", "oltp_read_only/8"): 344.66,
    ("002_e29c6f8eecb02a88#1", "oltp_read_write/200"): 2783.82,
    ("002_e29c6f8eecb02a88#2", "oltp_read_write/200"): 3747.71,
    ("002_e29c6f8eecb02a88#1", "oltp_read_write"): 11678.75,
    ("002_e29c6f8eecb02a88#2", "oltp_read_write"): 930.07,
}


def seeds():
    """Return the articles, which lie beside the checkout where this project is built."""
    beside = [parent / "shared" / "seeds" for parent in Path(__file__).resolve().parents]
    return next((sorted(p.glob("*.txt")) for p in beside if p.is_dir()), [])


@pytest.mark.skipif(not seeds(), reason="the articles are not beside this checkout")
def test_the_logs_in_the_articles_give_their_figures(tmp_path):
    result = imported(tmp_path / "d", *seeds())
    found = {(r["label"], r["workload"]): r["value"] for r in result["runs"]}
    assert found.keys() == FIGURES.keys()
    for cell, figure in FIGURES.items():
        assert found[cell] == pytest.approx(figure, rel=1e-3), cell
    assert len(result["files"]) == 5
    assert all(file["strange"] for file in result["files"])
    # the table at the end of one article has a digit wrong, and the commands of another are not
    # those of its results
    warning = "\n".join(result["warnings"])
    assert "001_99fc740024521213.txt:656: unsupported figure: 118.37 MiB/s" in warning
    assert "002_e29c6f8eecb02a88.txt:41: the command asks for 600 s" in warning
    rows = compared(tmp_path / "d")["treatments"]
    assert {r["verdict"] for r in rows} == {"baseline", "inconclusive"}
