"""The size of real files on real filesystems: compressed, with holes, and plain."""

import os
import shutil

import pytest

from integration.lab_steps import HOST, MIB, lab_maker, run
from mydyno.sample import footprint
from mydyno.stack.fs import mkfs, mount

pytestmark = pytest.mark.root


@pytest.fixture
def measured(tmp_path):
    """Return a function that fills a folder on a filesystem and gives its metrics."""
    with lab_maker(tmp_path) as make:
        where = tmp_path / "mnt"
        where.mkdir()

        def on(kind, options, content):
            disk = make(f"lab{len(list(tmp_path.iterdir()))}")
            run(*mkfs(kind, "", disk.device))
            run(*mount(kind, options, disk.device, str(where)))
            try:
                data = where / "data"
                (data / "deep").mkdir(parents=True)
                (data / "deep" / "one").write_bytes(content * (8 * MIB // len(content)))
                with (data / "hole").open("wb") as file:
                    file.truncate(MIB)
                run("sync", "-f", data)
                footprint.save(HOST, data, tmp_path)
            finally:
                run("umount", where)
            return {m.name: m.value for m in footprint.metrics(tmp_path)}

        yield on


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_what_is_allocated_and_what_is_read(measured, kind):
    found = measured(kind, "", os.urandom(4096))
    assert found == {
        "storage_bytes": pytest.approx(8 * MIB, rel=0.02),
        "storage_apparent_bytes": 9 * MIB,
    }


@pytest.mark.skipif(not shutil.which("compsize"), reason="compsize is not installed")
def test_what_compression_saves_on_btrfs(measured):
    found = measured("btrfs", "compress=zstd", b"the same again ")
    assert found["storage_apparent_bytes"] == 8 * MIB // 15 * 15 + MIB
    assert found["storage_bytes"] < 0.1 * 8 * MIB
    assert found["compression_ratio"] == pytest.approx(8 * MIB / found["storage_bytes"], rel=0.01)
    plain = measured("btrfs", "", os.urandom(4096))
    assert plain["compression_ratio"] == pytest.approx(1.0)
    assert plain["storage_bytes"] == pytest.approx(8 * MIB, rel=0.01)
