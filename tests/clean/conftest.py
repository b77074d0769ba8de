"""A clean Debian tree, made once by mmdebstrap; each module has a copy."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clean.trees import SPEC, Tree


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """Pack a tree; while tests are written, $MYDYNO_TEST_TREE names one that is there."""
    if there := os.environ.get("MYDYNO_TEST_TREE"):
        return Path(there)
    path = tmp_path_factory.mktemp("base") / "base.tar"
    argv = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=ca-certificates", "bookworm"]
    subprocess.run([*argv, str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def tree(base, tmp_path_factory):
    path = tmp_path_factory.mktemp("tree")
    path.chmod(0o755)
    subprocess.run(["tar", "-C", str(path), "-xf", str(base)], check=True)
    (path / "root" / "t.toml").write_text(SPEC)
    there = Tree(path)
    there.run("apt-get update -qq")
    yield there
    shutil.rmtree(path)
