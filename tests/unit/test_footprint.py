"""What a data set takes on disk: read from tools, saved with a trial, reported with no verdict."""

from pathlib import Path

import pytest

from mydyno.host import Completed
from mydyno.model import Metric, Outcome, Trial, TrialStatus, Window
from mydyno.report import verdicts
from mydyno.sample import footprint
from mydyno.stats.estimates import plain
from mydyno.stats.result import Comparison, Estimate, Row

BTRFS = b"""Processed 3 files, 307 regular extents (307 refs), 0 inline.
Type       Perc     Disk Usage   Uncompressed Referenced  
TOTAL        9%     4255744      43003904     43003904    
none       100%     3002368      3002368      3002368     
zstd         3%     1253376      40001536     40001536    
"""  # noqa: W291 - as compsize 1.5 prints it
SIZES = b"40000000 78128\n3000000 5864\n5242880 0\nbtrfs\n"


def test_the_files_are_summed_up_and_the_filesystem_is_named():
    found, kind = footprint.parse_sizes(SIZES)
    assert found == {"storage_bytes": 512.0 * (78128 + 5864), "storage_apparent_bytes": 48242880.0}
    assert kind == "btrfs"


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (BTRFS, {"storage_bytes": 4255744.0, "compression_ratio": 43003904 / 4255744}),
        (b"No files.\n", {}),
        (b"TOTAL 0% 0 0 0\n", {"storage_bytes": 0.0}),
        (b"", {}),
        (b"TOTAL 3% 16M 512M 512M\n", {}),
    ],
)
def test_compsize_is_read(raw, want):
    assert footprint.parse_compsize(raw) == want


@pytest.mark.parametrize(
    ("raw", "want"),
    [(b"2.14\n", {"compression_ratio": 2.14}), (b"1.00x\n", {"compression_ratio": 1.0}),
     (b"-\n", {}), (b"", {})],
)  # fmt: skip
def test_the_ratio_of_zfs_is_read(raw, want):
    assert footprint.parse_zfs(raw) == want


class Answering:
    """A host that has an answer for each command, by the command's name."""

    name = "fake"

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    def run(self, action, *, timeout_s=60.0):
        name = action.argv[3] if action.argv[0] == "sh" else action.argv[0]
        self.asked.append(name)
        code, out = self.answers.get(name, (127, b""))
        return Completed(action, code, out, b"")


def measured(answers, folder):
    host = Answering(answers)
    footprint.save(host, Path("/mnt/data"), folder)
    return {m.name: (m.value, m.unit) for m in footprint.metrics(folder)}, host.asked


def test_on_most_filesystems_one_command_is_enough(tmp_path):
    found, asked = measured({"find": (0, b"100 8\nxfs\n")}, tmp_path)
    assert found == {"storage_bytes": (4096.0, "B"), "storage_apparent_bytes": (100.0, "B")}
    assert asked == ["find"]


def test_what_compression_saves_is_asked_after_a_sync(tmp_path):
    answers = {"find": (0, SIZES), "sync": (0, b""), "compsize": (0, BTRFS)}
    found, asked = measured(answers, tmp_path)
    assert found["storage_bytes"] == (4255744.0, "B")
    assert found["compression_ratio"][1] == "ratio"
    assert asked == ["find", "sync", "compsize"]


def test_without_the_tool_there_is_no_ratio(tmp_path):
    found, _ = measured({"find": (0, SIZES), "sync": (0, b"")}, tmp_path)
    assert set(found) == {"storage_bytes", "storage_apparent_bytes"}


def test_where_nothing_can_be_asked_a_trial_has_none(tmp_path):
    assert measured({}, tmp_path) == ({}, ["find"])
    (tmp_path / footprint.FILE).write_text("{torn")
    assert footprint.metrics(tmp_path) == ()


def outcome(number, status, **values):
    trial = Trial(number, "A", "w", number, 1)
    metrics = tuple(Metric(name, value, "B") for name, value in values.items())
    return Outcome(trial, status, Window(0, 1), metrics)


def test_means_are_of_the_trials_that_went_well():
    found = plain(
        [
            outcome(0, TrialStatus.OK, storage_bytes=100.0, tps=1.0),
            outcome(1, TrialStatus.OK, storage_bytes=300.0),
            outcome(2, TrialStatus.FAILED, storage_bytes=9000.0),
            outcome(3, TrialStatus.OK),
        ]
    )
    assert found == {"storage_bytes": Estimate(200.0, "B"), "tps": Estimate(1.0, "/s")}


def row(name, **values):
    shown = {n: Estimate(v, "") for n, v in values.items()}
    return Row(name, "w", "baseline", "same", 1, None, None, {}, [], plain=shown)


def comparison(*rows):
    return Comparison("c", "tps", "STOCK", 1.0, None, {}, list(rows), "", [])


def test_times_to_fill_are_reported_where_data_sets_differ():
    one, two = row("A", prepare_s=8.2), row("B", prepare_s=4.1)
    found = verdicts.preparation_sentence(comparison(one, two), "w")
    assert found == "Data filled, once each, in: A 8.2 s; B 4.1 s."
    assert verdicts.preparation_sentence(comparison(one, row("B", prepare_s=8.2)), "w") == ""


def test_a_replica_is_reported_by_its_speed_and_its_lag():
    one = row("SERIAL", replica_speed_ratio=0.275, replica_lag_s=5.086)
    two = row("PARALLEL", replica_speed_ratio=0.994, replica_lag_s=0.157)
    assert verdicts.replica_sentence(comparison(one, two), "w") == (
        "The replica's share of the server's work, and its mean lag: SERIAL 27.5 % and 5.09 s; "
        "PARALLEL 99.4 % and 157 ms."
    )
    assert verdicts.replica_sentence(comparison(row("SERIAL")), "w") == ""


def test_sizes_are_reported_in_one_sentence():
    shown = comparison(
        row("STOCK", storage_bytes=3 * 2**30),
        row("ZSTD", storage_bytes=2.0**30, compression_ratio=2.96),
        row("NONE"),
    )
    wanted = (
        "On disk after a trial: STOCK 3 GiB; ZSTD 1 GiB, compressed 2.96\N{MULTIPLICATION SIGN}."
    )
    assert verdicts.storage_sentence(shown, "w") == wanted
    same = comparison(row("STOCK", storage_bytes=1e6), row("OTHER", storage_bytes=1.0001e6))
    assert verdicts.storage_sentence(same, "w") == "On disk after a trial: 977 KiB."
    some = [row(name, storage_bytes=size) for name, size in (("A", 1e6), ("B", 2e6), ("C", 1e6))]
    sentence = verdicts.storage_sentence(comparison(*some), "w")
    assert sentence == "On disk after a trial: A and C 977 KiB; B 1.91 MiB."
    assert verdicts.storage_sentence(comparison(row("STOCK")), "w") == ""


def test_many_treatments_of_one_size_are_one_phrase():
    cells = [
        row(f"build={b},size={n}", storage_bytes=s * 1e6)
        for b, s in (("x", 1), ("y", 2))
        for n in range(5)
    ]
    assert verdicts.storage_sentence(comparison(*cells), "w") == (
        "On disk after a trial: 5 treatments with build=x 977 KiB; "
        "5 treatments with build=y 1.91 MiB."
    )
    named = [row(name, storage_bytes=1e6) for name in "ABCDEF"]
    sentence = verdicts.storage_sentence(comparison(*named, row("G", storage_bytes=2e6)), "w")
    assert sentence == "On disk after a trial: A, B, C, D and 2 more 977 KiB; G 1.91 MiB."
