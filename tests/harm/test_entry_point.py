"""As root, nothing is run that another user could have put there.

Attacks here use commands and files only.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import mydyno

SCRIPT = Path(sys.prefix) / "bin/mydyno"
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not SCRIPT.is_file(), reason="make setup"),
]


def evil(folder, witness):
    """Fill a folder with modules of the names that we import; each leaves a witness."""
    text = f"import pathlib\npathlib.Path({str(witness)!r}).write_text(__name__)\n"
    text += "raise SystemExit(77)\n"
    for name in ("msgspec", "typer", "mydyno", "sitecustomize", "usercustomize", "re", "shutil"):
        (folder / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("way", "shebang"),
    [
        ("PYTHONPATH", "ours"),  # of pip's, what Python imports first is outside our control
        ("present folder", "ours"),
        ("present folder", "pip's"),
        ("user's packages", "ours"),
        ("user's packages", "pip's"),
    ],
)
def test_code_comes_from_our_own_environment(folder, way, shebang):
    witness, there = folder / "witness", folder / "there"
    site = there / f".local/lib/python3.{sys.version_info.minor}/site-packages"
    site.mkdir(parents=True)
    evil(site if way == "user's packages" else there, witness)
    script = SCRIPT
    if shebang == "pip's":  # its own line has no -I
        script = folder / "mydyno"
        lines = SCRIPT.read_text().splitlines(keepends=True)
        script.write_text(lines[0].replace(" -I", "") + "".join(lines[1:]))
        script.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "HOME": str(there)}
    env |= {"PYTHONPATH": str(there)} if way == "PYTHONPATH" else {}
    done = subprocess.run(
        [script, "recipes"], env=env, cwd=there, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout
    assert not witness.exists()


def test_the_script_that_setup_writes_is_isolated():
    assert SCRIPT.read_text().splitlines()[0].endswith(" -I")


def test_a_program_in_a_folder_of_others_is_not_found(folder):
    witness, there = folder / "witness", folder / "bin"
    there.mkdir()
    for name in ("which", "id", "cat", "stat", "sh", "lsblk", "mysqld", "mariadbd", "findmnt"):
        (there / name).write_text(f"#!/bin/bash\necho $0 >>{witness}\nexit 1\n")
        (there / name).chmod(0o755)
    shutil.chown(there, "nobody")
    env = {**os.environ, "PATH": f"{there}:{os.environ['PATH']}"}
    done = mydyno("inspect", env=env)
    assert done.returncode == 0, done.stderr
    assert not witness.exists()


@pytest.mark.parametrize("fault", ["owner", "folder", "mode"])
def test_a_server_program_of_another_user_is_not_run(folder, fault):
    witness, base = folder / "witness", folder / "base"
    (base / "bin").mkdir(parents=True)
    server = base / "bin/mysqld"
    server.write_text(f"#!/bin/bash\nid -u >{witness}\necho 'mysqld  Ver 8.0.33 for Linux'\n")
    server.chmod(0o777 if fault == "mode" else 0o755)
    if fault != "mode":
        shutil.chown(server if fault == "owner" else base / "bin", "nobody")
    spec = folder / "spec.toml"
    spec.write_text(
        f'[stack]\nserver = "{base}"\n[treatments.STOCK]\n[workloads.rw]\ntool = "sysbench-oltp"\n'
        'script = "oltp_read_only"\n'
    )
    done = mydyno("plan", spec)
    assert done.returncode == 4, done.stderr
    assert "not safe to run" in done.stderr
    assert not witness.exists()


def test_a_server_program_is_asked_without_roots_rights(folder):
    witness, base = folder / "witness", folder / "base"
    witness.mkdir()
    witness.chmod(0o777)
    (base / "bin").mkdir(parents=True)
    server = base / "bin/mysqld"
    server.write_text(
        f"#!/bin/bash\nid -u >{witness}/uid\nenv >{witness}/env\n"
        "echo 'mysqld  Ver 8.0.33 for Linux'\n"
    )
    for path in (base, base / "bin", server):
        path.chmod(0o755)
    spec = folder / "spec.toml"
    spec.write_text(
        f'[stack]\nserver = "{base}"\n[treatments.STOCK]\n[workloads.rw]\ntool = "sysbench-oltp"\n'
        'script = "oltp_read_only"\n'
    )
    mydyno("plan", spec, env={**os.environ, "LD_X": "secret"})
    assert (witness / "uid").read_text().strip() == "65534"
    assert "secret" not in (witness / "env").read_text()
