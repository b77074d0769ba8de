"""The note on a host that names the campaign which changed its settings."""

import pytest

from mydyno.host import Local
from mydyno.model import Action
from mydyno.testbed import lock


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "_FOLDER", str(tmp_path / "open"))
    monkeypatch.setattr(lock, "controller", lambda: "0" * 16)
    return tmp_path / "open"


def test_a_note_is_there_while_settings_are_changed(folder):
    lock.post(Local(), "ab" * 8, "tune", folder.parent / "run")
    assert "may have changed settings" in (folder / ("ab" * 8)).read_text()
    lock.withdraw(Local(), "ab" * 8)
    assert not folder.exists()  # nor its folder: the host is as it was


def test_a_note_that_a_kill_left_half_written_goes_too(folder):
    """A kill while the note is posted leaves a file that no later rollback would look for."""
    folder.mkdir()
    Local().run(Action(("touch", str(folder / f".{'ab' * 8}"))))
    lock.withdraw(Local(), "ab" * 8)
    assert not folder.exists()


def test_the_note_of_another_machine_stays(folder, monkeypatch):
    """A marker in a run directory is anybody's to write: it must not take others' notes away."""
    lock.post(Local(), "ab" * 8, "tune", folder.parent / "run")
    monkeypatch.setattr(lock, "controller", lambda: "1" * 16)
    lock.withdraw(Local(), "ab" * 8)
    assert (folder / ("ab" * 8)).exists()
