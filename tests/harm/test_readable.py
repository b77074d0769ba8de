"""Nothing that a campaign makes can be read by other users, while it runs and afterwards.

Folders that others may only pass through (0711) are on the way of the server's own user.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from command_line import COMMAND
from harm.campaigns import ENDLESS, ENVIRONMENT, STATE, TEMPORARY, CampaignDisk, campaign_disk
from harm.users import ATTACKER, as_user

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]
SHARED = [STATE, TEMPORARY, Path(tempfile.gettempdir()), Path("/dev/shm"), Path("/run")]  # noqa: S108
# A note for every user that a campaign has changed this host, and the sockets' and locks' folders.
PUBLIC = ("/run/mydyno-open", "/run/mydyno", "/run/mydyno/labs", "/run/mydyno/links")
SPEC = """
[campaign]
name = "readable"
[stack]
server = "auto"
device = { lab = "loop", size = "1G" }
data = "DATA"
[treatments.STOCK]
[treatments.ONE]
"mysqld.innodb_flush_neighbors" = 0
[workloads.w]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 1
table_size = 1000
threads = 1
[protocol]
warmup_s = 1
window_s = 2
blocks = 1
"""


def ours(out: Path) -> list[Path]:
    """Return the top of everything that mydyno made or may have made."""
    return [out, *(p for folder in SHARED if folder.is_dir() for p in folder.glob("*mydyno*"))]


def readable(top: Path) -> Iterator[str]:
    """Yield what other users can read at or below a path, by its modes and those on its way."""
    try:
        mode = top.lstat().st_mode
    except OSError:
        return
    if top.is_symlink() or str(top).startswith(PUBLIC[0]):
        return
    if mode & 0o004 and str(top) not in PUBLIC:
        yield f"{top} {mode:o}"
    if top.is_dir() and mode & 0o001:
        with suppress(OSError):
            for path in list(top.iterdir()):
                yield from readable(path)


def seen(out: Path, before: set[str]) -> set[str]:
    found = {line for top in ours(out) for line in readable(top)}
    return {line for line in found - before if "/mydyno-harm-" not in line.split("/run")[0]} | {
        line for line in found if line.startswith(str(out))
    }


def watched(argv: list[str], out: Path, before: set[str]) -> tuple[set[str], str]:
    """Return what could be read at any moment of a command's run, and what it printed."""
    found: set[str] = set()
    pipe = subprocess.PIPE
    previous = os.umask(0o022)
    try:
        process = subprocess.Popen(argv, env=ENVIRONMENT, stdout=pipe, stderr=pipe, text=True)
    finally:
        os.umask(previous)
    with process:
        while process.poll() is None:
            found |= seen(out, before)
            time.sleep(0.1)
        output = "".join(process.communicate())
    return found | seen(out, before), output


def earlier() -> set[str]:
    """Return what could be read before, made by others."""
    return {line for top in ours(Path("/none")) for line in readable(top)}


def test_a_campaign_without_a_server_shows_nothing_to_others() -> None:
    with campaign_disk() as there:
        before = earlier()
        there.spec({"kernel.sysctl.vm.swappiness": 43})
        found, output = watched(there.run_command(), there.out, before)
        assert (there.out / "report.html").exists(), output
        assert found == set()
        for command in ("report", "compare", "status", "rollback"):
            argv = there.command(command, there.out)
            assert watched(argv, there.out, before)[0] == set()


def test_what_a_killed_campaign_leaves_shows_nothing_to_others() -> None:
    with campaign_disk() as there:
        before = earlier()
        there.spec({"block.read_ahead_kb": 64}, load=ENDLESS)
        with subprocess.Popen(
            there.run_command(), env=ENVIRONMENT, stderr=subprocess.DEVNULL
        ) as process:
            end = time.monotonic() + 60
            while not there.begun.exists():
                assert time.monotonic() < end
                time.sleep(0.05)
            process.kill()
        try:
            assert seen(there.out, before) == set()
            _asked_as_another_user(there)
        finally:
            there.mydyno("rollback", there.out)


def _asked_as_another_user(there: CampaignDisk) -> None:
    """The modes forbid it; another user, who knows every name, tries."""
    names = [str(path) for path in there.out.rglob("*") if path.is_file()]
    script = 'for p; do cat "$p" >/dev/null 2>&1 && echo "$p"; done; true'
    done = subprocess.run(
        as_user(ATTACKER, script, *names), capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


@pytest.mark.mysqld
def test_the_copy_of_a_production_servers_data_shows_nothing_to_others() -> None:
    """Also base.img of the lab disk, which holds all of it, and the server's home."""
    folder = Path(tempfile.mkdtemp(prefix="harm-readable-", dir=TEMPORARY))
    try:
        folder.chmod(0o711)
        data = folder / "production"
        argv = ["mariadb-install-db", "--no-defaults", f"--datadir={data}"]
        argv += ["--user=nobody", "--skip-test-db"]
        subprocess.run(argv, check=True, capture_output=True)
        data.chmod(0o700)
        out, spec = folder / "out", folder / "spec.toml"
        spec.write_text(SPEC.replace("DATA", str(data)))
        before = earlier()
        command = [*COMMAND, "run", str(spec), "-o", str(out)]
        found, output = watched(command, out, before)
        assert (out / "report.html").exists(), output
        assert found == set()
    finally:
        subprocess.run([*COMMAND, "rollback", str(folder / "out")], check=False)
        shutil.rmtree(folder)


def test_a_lab_disk_shows_nothing_to_others() -> None:
    with campaign_disk() as there:
        before = earlier()
        home = there.mount / "labs"
        up = there.command("lab", "up", "harm-readable", "--home", home, "--size", "64M")
        try:
            found, output = watched(up, home, before)
            assert list(home.rglob("*.img")), output
            assert found == set()
        finally:
            there.mydyno("lab", "down", "harm-readable")
