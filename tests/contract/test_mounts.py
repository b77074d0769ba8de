"""btrfs on several real devices: writing follows the profile and the mount options."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from mydyno.host import Local, ask
from mydyno.lab import LabSpec, create
from mydyno.model import Action, SpecError
from mydyno.stack.fs import Fs, missing, mkfs, mount

pytestmark = pytest.mark.root


def run(*argv):
    return Local().run(Action(argv)).check().stdout.decode()


@pytest.fixture
def disks(tmp_path):
    """Give as many lab disks as asked for."""
    with ExitStack() as stack:

        def make(count):
            made = []
            for number in range(count):
                spec = LabSpec(f"mounts-{tmp_path.name}-{number}", 320 << 20)
                device = create(Local(), spec, tmp_path / f"lab{number}")
                stack.callback(device.remove)
                made.append(device.device)
            return made

        yield make


@pytest.fixture
def where(tmp_path):
    place = tmp_path / "mnt"
    place.mkdir()
    yield place
    Local().run(Action(("umount", str(place))))


@pytest.mark.parametrize(("profile", "count"), [("raid0", 2), ("raid1", 2), ("raid10", 4)])
def test_btrfs_uses_its_devices_according_to_its_profile(disks, where, profile, count):
    first, *others = disks(count)
    run(*mkfs("btrfs", f"-d {profile} -m {profile}", first, *others))
    run(*mount("btrfs", "nodatacow", first, str(where), *others))
    report = run("btrfs", "filesystem", "df", "--raw", str(where))
    used = re.findall(r"^(?:Data|Metadata), (\w+):", report, re.MULTILINE)
    assert [word.lower() for word in used] == [profile, profile]
    seen = ask(Local(), Fs(str(where), first).observe())
    assert missing(seen["mount"], "nodatacow") == []
    file = Path(where) / "data"
    file.write_bytes(b"x" * 65536)
    assert "C" in run("lsattr", str(file)).split()[0]  # written in place, as the option requires


def test_other_filesystems_take_one_device():
    with pytest.raises(SpecError, match="stripe the disks below it"):
        mkfs("ext4", "", "/dev/a", "/dev/b")
