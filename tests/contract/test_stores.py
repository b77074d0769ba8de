"""Every store keeps the contract: a snapshot is restored byte for byte after any change of it."""

import hashlib
from contextlib import ExitStack

import pytest

from mydyno.host import Local
from mydyno.lab import LabSpec, Stripe, listing
from mydyno.lab.lab_store import LabStore
from mydyno.model import HostError
from mydyno.snapshot import DirectoryStore, settle

HOST = Local()


def digest(folder):
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(str(path.relative_to(folder)).encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def fill(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "one").write_bytes(b"1" * 300_000)
    (folder / "two").write_bytes(b"2" * 5000)


def spoil(folder):
    (folder / "two").unlink()
    (folder / "deep" / "one").write_bytes(b"x" * 400_000)
    (folder / "three").write_bytes(b"3")


def check(make):
    with ExitStack() as stack:
        store = make()
        stack.callback(store.close, keep=False)
        assert store.open() is False
        fill(store.place.live)
        want = digest(store.place.live)
        store.freeze()
        for _ in range(2):
            store.restore("")
            settle(HOST, store)
            assert digest(store.place.live) == want
            spoil(store.place.live)
            assert digest(store.place.live) != want
        store.close(keep=True)
        again = make()
        stack.callback(again.close, keep=False)
        assert again.open() is True
        again.restore("")
        assert digest(again.place.live) == want
        live = again.place.live
        again.close(keep=False)
        assert not live.exists()


def test_a_directory(tmp_path):
    check(lambda: DirectoryStore(HOST, tmp_path / "home", tmp_path / "live"))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_has_no_mount_options(tmp_path):
    store = DirectoryStore(HOST, tmp_path / "home", tmp_path / "live", reflinks=False)
    with pytest.raises(HostError, match="use a lab disk"):
        store.restore("noatime")


@pytest.mark.root
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
@pytest.mark.parametrize("disks", [1, 4])
def test_a_lab_disk(tmp_path, kind, disks):
    spec = LabSpec(f"store-{tmp_path.name}", 512 << 20, stripe=Stripe(disks, 64 << 10))
    check(lambda: LabStore(HOST, spec, tmp_path / "home", tmp_path / "mnt", kind))
    assert spec.lab not in {state.spec.lab for state in listing(HOST)}
