"""A data directory that is there already: of a real server of each kind, copied, and made ours."""

import shutil
import subprocess

import pytest

from integration.server_steps import HOST, SERVERS, build_of, open_folder
from mydyno.host import Local, ask
from mydyno.model import Action, HostError, RefusedError, SpecError
from mydyno.server import client, prepare
from mydyno.snapshot import existing, store

pytestmark = [pytest.mark.mysqld, pytest.mark.slow]

SHOP = """
CREATE DATABASE shop; USE shop;
CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB;
INSERT INTO item VALUES (1, 'bolt'), (2, 'nut');
CREATE TABLE tick (at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB;
CREATE USER 'app'@'%' IDENTIFIED BY 'My1-app-password';
GRANT ALL ON shop.* TO 'app'@'%';
CREATE DEFINER='app'@'%' SQL SECURITY DEFINER VIEW named AS SELECT name FROM item;
CREATE EVENT ticking ON SCHEDULE EVERY 1 SECOND DO INSERT INTO shop.tick () VALUES ();
SET GLOBAL event_scheduler = ON;
"""


@pytest.fixture(scope="module", params=SERVERS)
def shop(request):
    """Another server's data directory with a shop in it, the server still running."""
    folder = open_folder()
    build = build_of(request.param)
    other = prepare(HOST, build, places=(folder / "other", folder / "var [lib]"))
    try:
        other.initialise()
        other.start()
        other.query(SHOP)
        yield other
    finally:
        other.close()
        shutil.rmtree(folder)


def adopted(other):
    """Return an instance of ours whose data are a copy of the other's."""
    folder = other.place.home.parent
    mine = prepare(
        HOST,
        other.build,
        places=(folder / "mine", folder / "copy"),
        original=str(other.place.data),
    )
    source = existing.find(HOST, str(other.place.data))
    existing.copy(HOST, source, mine.place.data, mine.identity.owner)
    mine.adopt()
    return mine


def own_rights(entry):
    """Return an entry's type and what its owner and group may do; others may do nothing."""
    kind, mode, *_ = entry.kind.split(":")
    return kind, mode[:-1]


@pytest.fixture
def closed(shop):
    """The shop while its server is stopped."""
    shop.stop()
    yield shop
    shop.start()


def test_a_stopped_servers_data_become_ours_and_the_original_stays_as_it_was(closed):
    shop = closed
    before = ask(HOST, store.listing(shop.place.data))
    mine = adopted(shop)
    mine.start()
    try:
        assert mine.query("SELECT name FROM shop.named ORDER BY name") == [("bolt",), ("nut",)]
        assert mine.query("SELECT @@event_scheduler") == [("OFF",)]
        assert ("app", "%") in mine.query("SELECT user, host FROM mysql.user")
        load = client.with_options(mine.build, mine.place.load)
        asked = (*load, f"--socket={mine.place.socket}")
        assert client.query(HOST, asked, "SELECT count(*) FROM shop.item", 60.0) == [("2",)]
        if (
            shop.build.flavour != "mariadb"
        ):  # two servers of one name would not replicate from each other
            ((uuid,),) = mine.query("SELECT @@server_uuid")
            assert uuid not in (shop.place.data / "auto.cnf").read_text()
    finally:
        mine.close()
    assert ask(HOST, store.listing(shop.place.data)) == before
    rights = {e.path: own_rights(e) for e in before if e.path}
    there = {e.path: own_rights(e) for e in ask(HOST, store.listing(mine.place.data))}
    common = rights.keys() & there.keys()
    assert {"ibdata1", "mysql", "shop"} <= common
    assert {path: there[path] for path in common} == {path: rights[path] for path in common}


def test_what_a_server_has_open_is_refused_and_the_server_named(shop):
    with pytest.raises(RefusedError, match=rf"in use by process {shop.pid} \(m.*d\); stop that"):
        existing.find(HOST, str(shop.place.data))


class Blind(Local):
    """A host whose processes may not be looked into."""

    def run(self, action, **ways):
        hidden = action.argv[:2] == ("find", "/proc")
        return super().run(Action(("true",)) if hidden else action, **ways)


def test_a_lock_reveals_a_server_whose_files_cannot_be_seen(shop):
    assert existing.user_of(Blind(), shop.place.data).startswith(f"process {shop.pid} (")


def test_what_is_no_data_directory_or_leads_out_of_it_is_refused(tmp_path):
    with pytest.raises(SpecError, match="not a data directory"):
        existing.find(HOST, str(tmp_path / "none"))
    with pytest.raises(SpecError, match="no folder mysql in it"):
        existing.find(HOST, str(tmp_path))
    (tmp_path / "mysql").mkdir()
    assert existing.find(HOST, str(tmp_path)) == tmp_path
    (tmp_path / "shop").symlink_to("/srv")
    with pytest.raises(RefusedError, match="shop: a link, so its target would not be copied"):
        existing.find(HOST, str(tmp_path))


@pytest.mark.root
def test_a_copy_that_does_not_fit_is_refused_before_a_byte_is_copied(tmp_path):
    source, small = tmp_path / "source", tmp_path / "small"
    (source / "mysql").mkdir(parents=True)
    (source / "ibdata1").write_bytes(b"x" * 200_000)
    small.mkdir()
    subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small), check=True)
    try:
        with pytest.raises(RefusedError, match=r"make stack\.device\.size larger"):
            existing.copy(HOST, source, small / "data")
        assert list(small.iterdir()) == []
    finally:
        subprocess.run(("umount", small), check=True)


def test_a_copy_that_differs_is_reported(tmp_path, monkeypatch):
    source = tmp_path / "source"
    (source / "mysql").mkdir(parents=True)
    (source / "ibdata1").write_bytes(b"x" * 5000)
    real = store.contents

    def grown(*arguments):
        actions = real(*arguments)
        (source / "ibdata1").write_bytes(b"x" * 6000)
        return actions

    monkeypatch.setattr(store, "contents", grown)
    with pytest.raises(HostError, match="check that no server uses it"):
        existing.copy(HOST, source, tmp_path / "copy")
