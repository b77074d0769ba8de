"""Change records: what a crash or a damaged line leaves is known, and nothing else is believed."""

import fcntl
import os
import shutil
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mydyno.host import Local
from mydyno.journal import register
from mydyno.journal.records import (
    Acted,
    Acting,
    Damaged,
    FileRecords,
    Made,
    Removed,
    Restored,
    decoded,
    encoded,
    moved,
    nothing_left,
    things,
)
from mydyno.model import JournalError, RefusedError

KEY = ("block", "sda", "8:0 7")


def acting(before, wanted):
    return Acting("db", "block", "sda", "8:0 7", "boot", False, 0, before, wanted)  # noqa: FBT003


FIRST = acting({"a": "1", "b": "2", "c": "3"}, {"a": "9"})


def test_only_what_moved_is_to_be_restored():
    entries = [FIRST, Acted("block", "sda", {"a": "9", "b": "8"})]
    assert moved(entries)[KEY].values() == {"a": "1", "b": "2"}
    assert moved(entries)[KEY].last == {"a": "9", "b": "8"}


def test_a_crash_within_an_act_restores_all_that_was_watched():
    found = moved([FIRST])[KEY]
    assert not found.sure
    assert found.values() == {"a": "1", "b": "2", "c": "3"}


def test_an_act_after_one_that_failed_keeps_its_first_values():
    """The act that undoes what a failed one did finds the moved values, which are not the first."""
    entries = [FIRST, acting({"a": "9", "b": "2"}, {}), Acted("block", "sda", {"a": "1"})]
    found = moved(entries)[KEY]
    assert found.sure
    assert found.values() == {"a": "1", "c": "3"}  # c was not looked at again


def test_first_values_stay_the_first():
    entries = [
        FIRST,
        Acted("block", "sda", {"a": "9"}),
        acting({"a": "9", "b": "2"}, {"a": "7"}),
        Acted("block", "sda", {"a": "7"}),
    ]
    assert moved(entries)[KEY].values() == {"a": "1"}


def test_what_moved_before_a_boot_is_not_what_moves_after_it():
    """What an earlier boot left is as it boots; the first values of a later act are others."""
    again = replace(acting({"a": "5"}, {"a": "9"}), boot="later")
    found = moved([FIRST, Acted("block", "sda", {"a": "9"}), again])[KEY]
    assert (found.acting.boot, found.values()) == ("later", {"a": "5"})


def test_what_is_restored_is_forgotten_and_the_rest_is_not():
    entries = [FIRST, Acted("block", "sda", {"a": "9", "b": "8"})]
    entries.append(Restored("block", "sda", "8:0 7", ("a",)))
    assert moved(entries)[KEY].values() == {"b": "2"}
    assert not nothing_left(entries)
    entries.append(Restored("block", "sda", "8:0 7", ("b",)))
    assert moved(entries) == {}
    assert nothing_left(entries)


def test_a_first_value_after_a_damaged_line_is_doubtful():
    entries = [Damaged(1), FIRST, Acted("block", "sda", {"a": "9"})]
    assert moved(entries)[KEY].doubtful == {"a"}
    assert not nothing_left(entries)


def test_things_are_there_until_they_are_removed():
    made = Made("folder", "/x", {"inode": "7"})
    assert things([Made("folder", "/x"), made], "folder") == [made]
    assert things([made, Removed("folder", "/x")], "folder") == []
    assert not nothing_left([made])


@given(st.binary(max_size=300), st.integers(0, 10_000))
def test_a_line_that_was_changed_is_never_another_entry(noise, at):
    line = encoded(FIRST)
    where = at % len(line)
    changed = line[:where] + noise + line[where + len(noise) :]
    found = [e for e in decoded(changed + b"\n") if not isinstance(e, Damaged)]
    assert found in ([], [FIRST])


def test_a_cut_last_line_is_left_out_and_the_next_is_complete(tmp_path):
    records = FileRecords(tmp_path / "changes")
    records.add(FIRST)
    records.close()
    with (tmp_path / "changes").open("ab") as file:
        file.write(encoded(FIRST)[:20])
    records = FileRecords(tmp_path / "changes")
    records.add(Made("folder", "/x"))
    assert list(records.entries()) == [FIRST, Made("folder", "/x")]
    with pytest.raises(RefusedError, match="another mydyno"):
        FileRecords(tmp_path / "changes")
    records.close()
    records = FileRecords(tmp_path / "changes")
    assert list(records.entries()) == [FIRST, Made("folder", "/x")]
    records.close()


def test_records_that_were_removed_before_their_lock_was_free_are_not_written_to(
    tmp_path, monkeypatch
):
    """What is in a file without a name, no rollback would find."""
    place, lock = tmp_path / "changes", fcntl.flock

    def late(file, how):
        place.unlink()
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with pytest.raises(RefusedError, match="another mydyno"):
        FileRecords(place)


def test_records_on_a_disk_that_became_read_only_are_read(tmp_path, monkeypatch):
    """A disk fault remounts the root filesystem read-only: to restore, reading is enough."""
    place = tmp_path / "changes"
    records = FileRecords(place)
    records.add(FIRST)
    records.close()
    place.chmod(0o400)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_RDONLY))
    records = FileRecords(place)
    assert list(records.entries()) == [FIRST]
    with pytest.raises(JournalError, match="changes"):
        records.add(FIRST)
    records.close()


def test_a_marker_and_an_id_that_were_cut_off_are_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(register, "state_place", lambda: tmp_path / "state")
    run = tmp_path / "run"
    run.mkdir()
    (run / register.MARKER).touch()
    register.RunDir(run).claim(Local())
    assert register.marked(run)
    first = register.controller()
    assert len(first) == 16
    assert register.controller() == first
    (register.state_folder() / "controller").write_text("")
    assert len(register.controller()) == 16


def test_a_copy_of_a_run_directory_never_gets_the_records_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(register, "state_place", lambda: tmp_path / "state")
    first, copy = tmp_path / "run", tmp_path / "copy"
    register.RunDir(first).claim(Local())
    register.register(first, "c", "local").close()
    shutil.copytree(first, copy)
    with pytest.raises(RefusedError, match=r"copy: is a copy of .*run, which has changes"):
        register.register(copy, "c", "local")
    with pytest.raises(RefusedError, match="use the copy with compare and report only"):
        register.find(copy)
    found = register.find(first)  # neither of the two has it locked
    assert found is not None
    found.close()
