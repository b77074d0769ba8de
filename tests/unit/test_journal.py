"""The journal: durable, complete, owned by one process."""

import resource
import signal

import pytest

from mydyno.journal import (
    Changing,
    FileJournal,
    Interruption,
    Opened,
    RolledBack,
    Started,
    first_values,
    held,
    open_trial,
    read,
    spent_s,
)
from mydyno.model import JournalError, Trial

TRIAL = Trial(0, "A", "w", 0, 1)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_what_was_appended_is_read_again(path):
    journal = FileJournal(path)
    events = [Opened("d", "n"), Started(TRIAL), Interruption(TRIAL, 3.5)]
    for event in events:
        journal.append(event)
    journal.close()
    again = FileJournal(path)
    assert list(again.events()) == events
    again.close()


@pytest.mark.parametrize("tail", [b'{"v":1,"at":"x","ev', b"\x00\xff", b"{}"])
def test_a_torn_tail_is_moved_aside(path, tail):
    journal = FileJournal(path)
    journal.append(Opened("d", "n"))
    journal.close()
    content = path.read_bytes()
    path.write_bytes(content + tail)
    again = FileJournal(path)
    again.close()
    assert path.read_bytes() == content
    assert path.with_suffix(".torn").read_bytes() == tail + b"\n"


def test_an_unknown_version_is_refused(path):
    path.write_text('{"v":99,"at":"","event":{"type":"opened","digest":"d","name":"n"}}\n')
    with pytest.raises(JournalError, match=r"journal.jsonl:1: version 99"):
        FileJournal(path)


def test_a_damaged_line_in_the_middle_is_named(path):
    journal = FileJournal(path)
    journal.append(Opened("d", "n"))
    journal.close()
    path.write_bytes(path.read_bytes() + b"junk\n")
    with pytest.raises(JournalError, match=r"journal.jsonl:2: damaged: .*; restore it from a copy"):
        FileJournal(path)


def three(path):
    journal = FileJournal(path)
    events = [Opened("d", "n"), Started(TRIAL), Interruption(TRIAL, 3.5)]
    for event in events:
        journal.append(event)
    journal.close()
    return events


def test_every_changed_byte_is_found(path):
    events = three(path)
    content = path.read_bytes()
    for place in range(len(content) - 1):
        for bit in range(8):
            path.write_bytes(
                content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :]
            )
            try:
                found = read(path)
            except JournalError:
                continue
            assert found.damage
            assert all(event in events for event in found.events)


@pytest.mark.parametrize("order", [(0, 2), (1, 0, 2), (0, 1, 1, 2), (0, 2, 1)])
def test_a_line_that_is_missing_moved_or_repeated_is_found(path, order):
    three(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[i] for i in order))
    assert read(path).damage


def test_a_line_without_a_checksum_is_damaged(path):
    path.write_bytes(b'{"v":2,"at":"x","event":{"type":"opened","digest":"d","name":"n"}}\n')
    assert "has no checksum" in read(path).damage[0]


def test_a_number_that_is_not_finite_is_not_written(path):
    journal = FileJournal(path)
    with pytest.raises(JournalError, match="Interruption cannot be recorded"):
        journal.append(Interruption(TRIAL, float("nan")))
    journal.append(Started(TRIAL))
    journal.close()
    assert read(path).events == [Started(TRIAL)]


def test_links_are_not_followed(path, tmp_path):
    (tmp_path / "other").write_text("")
    path.symlink_to(tmp_path / "other")
    with pytest.raises(JournalError, match="choose another directory"):
        FileJournal(path)
    path.unlink()
    path.hardlink_to(tmp_path / "other")
    with pytest.raises(JournalError, match="not a plain file with one name"):
        FileJournal(path)


def test_one_writer_at_a_time(path):
    journal = FileJournal(path)
    assert held(path)
    with pytest.raises(JournalError, match="another mydyno"):
        FileJournal(path)
    journal.close()
    assert not held(path)


def test_a_disk_that_is_full_loses_nothing(path):
    """A limit on the file's size stands for the full disk: the kernel cuts the write short."""
    journal = FileJournal(path)
    journal.append(Opened("d", "n"))
    content = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 20, hard))
        with pytest.raises(JournalError, match="free disk space and run again"):
            journal.append(Started(TRIAL))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_bytes() == content
    journal.append(Started(TRIAL))
    assert list(journal.events()) == [Opened("d", "n"), Started(TRIAL)]
    journal.close()


def test_first_values_are_first_and_end_with_a_rollback():
    moved = [
        Changing("db/kernel.a", "1", "2", owned=False, trial=0),
        Changing("db/kernel.a", "2", "3", owned=False, trial=1),
        Changing("db/mysqld.b", "x", "y", owned=True, trial=1),
    ]
    assert first_values(moved) == {"db/kernel.a": "1"}
    assert first_values([*moved, RolledBack(("db/kernel.a",))]) == {}


def test_spent_time_counts_interrupted_trials():
    events = [Started(TRIAL), Interruption(TRIAL, 3.5), Started(TRIAL), Interruption(TRIAL, 1.0)]
    assert spent_s(events) == 4.5
    assert open_trial(events) is None
    assert open_trial([*events, Started(TRIAL)]) == TRIAL
