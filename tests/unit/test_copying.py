"""Copies with several workers: what is copied in which order, and what is found missing."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from mydyno.host import Local, ask
from mydyno.model import HostError
from mydyno.snapshot import DirectoryStore
from mydyno.snapshot import store as stores
from mydyno.snapshot.store import Entry

HOST = Local()
GOLDEN, LIVE = Path("/g"), Path("/l")


def entries(*sizes):
    return [Entry("f:644:0:0", size, f"{number}") for number, size in enumerate(sizes)]


def test_the_largest_come_first_and_small_ones_share_a_program():
    found = stores.contents(GOLDEN, LIVE, entries(5, 2 << 20, 0, 7 << 20, 9), 3)
    large, small = found
    assert large.stdin == b"3\x001\x00"
    assert small.stdin == b"4\x000\x00"
    assert large.argv[:8] == ("env", "-C", "/g", "xargs", "-0", "-P", "3", "-n")
    assert (large.argv[8], small.argv[8]) == ("1", "64")
    assert stores.contents(GOLDEN, LIVE, entries(0), 3) == []


def test_the_sample_is_of_the_largest_files():
    compared = stores.sample(GOLDEN, LIVE, entries(*range(100)))
    words = compared.stdin.split(b"\0")
    assert words[:3] == [b"49", b"/g/99", b"/l/99"]
    assert len(words) == 3 * 8 + 1


def test_what_differs_is_named_once():
    snapshot = [Entry("f:644:0:0", 1, "a"), Entry("f:644:0:0", 1, "b"), Entry("d:755:0:0", 0, "c")]
    live = [Entry("f:644:0:0", 2, "a"), Entry("f:644:0:0", 1, "b")]
    assert stores.differing(snapshot, live) == ["a", "c"]
    assert stores.differing(snapshot, snapshot) == []


def tree(folder):
    """Fill a folder with all that a data folder may hold."""
    (folder / "db one").mkdir(mode=0o750)
    (folder / "db one" / "t\n1.ibd").write_bytes(os.urandom(3 << 20))
    with (folder / "holes").open("wb") as file:
        file.write(b"x" * 4096)
        file.truncate(64 << 20)
    (folder / "-rf").write_bytes(b"a name like an option")
    (folder / "empty").touch(mode=0o600)
    (folder / "link").symlink_to("holes")
    os.link(folder / "-rf", folder / "twin")
    os.utime(folder / "-rf", (1e9, 1e9))
    (folder / "-rf").chmod(0o640)
    if os.geteuid() == 0:
        os.chown(folder / "-rf", 65534, 65534)


@pytest.fixture
def store(tmp_path):
    made = DirectoryStore(HOST, tmp_path / "home", tmp_path / "live", reflinks=False, workers=3)
    assert made.open() is False
    tree(made.place.live)
    made.freeze()
    return made


def test_names_rights_owners_times_links_and_holes_come_back(store):
    store.restore("")
    snapshot = store.home / "golden"
    assert sorted(ask(HOST, stores.listing(store.place.live)), key=str) == sorted(
        ask(HOST, stores.listing(snapshot)), key=str
    )
    for path in snapshot.rglob("*"):
        twin = store.place.live / path.relative_to(snapshot)
        one, two = path.lstat(), twin.lstat()
        assert (one.st_mode, one.st_uid, one.st_gid) == (two.st_mode, two.st_uid, two.st_gid)
        if stat.S_ISREG(one.st_mode):
            assert path.read_bytes() == twin.read_bytes()
            assert one.st_mtime_ns == two.st_mtime_ns
    assert (store.place.live / "holes").stat().st_blocks * 512 < 1 << 20
    assert (store.place.live / "link").readlink() == Path("holes")
    assert store.place.method == "copy, 3 workers"


class Careless(Local):
    """A host on which something happens to a copy before it is looked at."""

    def __init__(self, harm):
        super().__init__()
        object.__setattr__(self, "harm", harm)

    def run(self, action, *, timeout_s=60.0):
        if action.argv[0] == "find" and action.argv[1].endswith("/next"):
            self.harm(Path(action.argv[1]))
        return super().run(action, timeout_s=timeout_s)


def a_link(live):
    """What is filled in by a path below it would be written where the link leads."""
    shutil.rmtree(live / "db one")
    (live / "db one").symlink_to("/etc")


def middle_changed(live):
    with (live / "db one" / "t\n1.ibd").open("r+b") as file:
        file.seek((3 << 20) // 2 + 100)
        file.write(b"not what was there")


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda live: (live / "empty").unlink(missing_ok=True), "1 files differ.* 'empty'"),
        (lambda live: (live / "holes").write_bytes(b""), "1 files differ.*'holes'"),
        (lambda live: (live / "empty").chmod(0o666), "1 files differ.*'empty'"),
        (lambda live: (live / "new").touch(), "1 files differ.*'new'"),
        (a_link, "db one: the original was changed while it was copied"),
        (middle_changed, "xargs -0 -r: exit 123"),
    ],
)
def test_a_copy_that_is_not_the_golden_one_is_refused(store, harm, message):
    store.host = Careless(harm)
    with pytest.raises(HostError, match=message):
        store.restore("")


class Full(Local):
    """Its disk is full once something is written."""

    def run(self, action, *, timeout_s=60.0):
        if "env" in action.argv[:1]:
            raise HostError("No space left on device")
        return super().run(action, timeout_s=timeout_s)


def test_a_copy_that_does_not_fit_leaves_the_disk_as_it_was(tmp_path):
    """The journal is on the same disk, and it stayed full after the campaign."""
    store = DirectoryStore(Full(), tmp_path / "home", tmp_path / "live", reflinks=False)
    store.open()
    (store.live / "a").write_bytes(b"x" * 4096)
    store.freeze()
    with pytest.raises(HostError, match="No space left"):
        store.restore("")
    assert [path.name for path in store.home.iterdir()] == ["golden"]
