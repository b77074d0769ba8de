"""Packages in clean trees: installed, used for a tiny campaign, removed without a trace."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from clean.trees import ROOT, packed

TOOLS = "mariadb-server-core mariadb-client-core sysbench fio openssl procps libjemalloc2"
VERSIONS = "mydyno --version; mydyno-probe --version; mydyno-disk --version; mydyno-guard --version"
PRINTED = "mydyno 0.1.0\nmydyno-probe 0.1.0\nmydyno-disk 0.1.0\nmydyno-guard 0.1.0\n"
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(not shutil.which("mmdebstrap"), reason="needs mmdebstrap"),
]


@pytest.fixture(scope="module")
def deb(tree):
    shutil.copy(packed("mydyno_*_amd64.deb"), tree.path / "root" / "mydyno.deb")
    tree.run(f"apt-get install -y -qq --no-install-recommends {TOOLS} python3.11")
    before = tree.files()
    tree.run("dpkg -i /root/mydyno.deb")  # dpkg alone: no dependency is missing
    return before


def test_the_deb_has_all_that_it_imports(tree, deb):
    assert tree.run(VERSIONS) == PRINTED
    assert "rw/2" in tree.run("cd /root; mydyno plan t.toml")
    assert "question" in tree.run("mydyno recipes demo")


def test_a_campaign_runs_from_the_deb(tree, deb):
    printed = tree.run("cd /root; rm -rf r; mydyno run t.toml -o r")
    assert "Trials" in printed
    assert "failed" not in printed
    status = json.loads(tree.run("cd /root; mydyno status r --json"))
    assert status
    assert (tree.path / "root" / "r" / "report.html").stat().st_size > 100_000


def test_what_the_deb_links_to_is_what_it_depends_on(tree, deb):
    """If it fails, a wheel of the lock links to a library that the package does not ask for."""
    site = tree.path / "usr/lib/mydyno/lib"
    own = {path.name for path in site.rglob("*.so*")}
    argv = ["readelf", "-d", *map(str, site.rglob("*.so*"))]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    needed = {line.split("[")[1].rstrip("]") for line in listed.splitlines() if "(NEEDED)" in line}
    asked = runpy.run_path(str(ROOT / "packaging" / "packages.py"))["LIBRARIES"].values()
    assert needed - own - {"ld-linux-x86-64.so.2"} <= {name for names in asked for name in names}


def test_removal_waits_for_what_is_to_be_restored_and_purge_leaves_nothing(tree, deb):
    tree.run("mkdir -p /var/lib/mydyno/campaigns/ab; touch /var/lib/mydyno/campaigns/ab/changes")
    assert "run mydyno rollback DIR" in tree.run("dpkg -r mydyno", exit_code=1)
    assert tree.run("mydyno --version")
    tree.run("rm -r /var/lib/mydyno/campaigns/ab; apt-get purge -y -qq mydyno")
    assert set(tree.files()) - set(deb) == set()


@pytest.fixture(scope="module")
def wheels(tree):
    """Put the wheel of mydyno, and those that it requires, where every user can read them."""
    there = tree.path / "opt" / "wheels"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "--dest", there]
    pip += ["--python-version", "3.11", "--require-hashes", "-r", ROOT / "requirements.lock"]
    subprocess.run([*pip, "--no-deps"], check=True)
    shutil.copy(packed("mydyno-*.whl"), there)
    shutil.copy(tree.path / "root" / "t.toml", there)
    tree.run(f"apt-get install -y -qq --no-install-recommends python3-venv {TOOLS}")
    tree.run("useradd -m someone; chmod -R a+rX /opt/wheels")


@pytest.mark.parametrize("user", ["root", "someone"])
def test_the_wheel_by_itself(tree, wheels, user):
    """In an environment of pip, without a checkout, as root and as an ordinary user."""
    script = (
        "set -e; cd ~; python3 -m venv v; v/bin/pip install -q --no-index -f /opt/wheels mydyno; "
        f'export PATH="$HOME/v/bin:$PATH"; {VERSIONS}; mydyno run /opt/wheels/t.toml -o r; '
        "mydyno-probe sample --out h.bin --duration 2s; ls v/share/man/man1/mydyno-run.1"
    )
    printed = tree.run(f"su {user} -s /bin/sh -c '{script}'")
    assert PRINTED in printed
    assert "failed" not in printed
    assert printed.rstrip().endswith("mydyno-run.1")


def test_the_wheel_holds_each_program_once():
    with zipfile.ZipFile(packed("mydyno-*.whl")) as wheel:
        names = wheel.namelist()
    for name in ("mydyno-probe", "mydyno-disk", "mydyno-guard"):
        assert [n for n in names if n.endswith(f"/{name}")] == [
            f"mydyno-0.1.0.data/data/bin/{name}"
        ]


@pytest.mark.skipif(not shutil.which("rpm"), reason="needs rpm")
def test_the_rpm(tmp_path):
    path = packed("mydyno-*.x86_64.rpm")
    rpm = ["rpm", "--root", str(tmp_path), "--dbpath", "/var/lib/rpm"]
    asked = ["rpm", "-qp", "--requires", "--list", str(path)]
    printed = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    assert {"/usr/bin/python3.11", "libstdc++.so.6()(64bit)", "/usr/bin/mydyno"} <= {*printed}
    refused = subprocess.run([*rpm, "-i", path], capture_output=True, text=True, check=False)
    assert "/usr/bin/python3.11 is needed by mydyno" in refused.stderr
    subprocess.run([*rpm, "-i", "--nodeps", path], check=True)
    subprocess.run([*rpm, "-V", "--nodeps", "mydyno"], check=True)
    subprocess.run([*rpm, "-e", "--noscripts", "mydyno"], check=True)  # there is no shell in it
    assert [*tmp_path.rglob("*mydyno*")] == []


@pytest.mark.skipif(not shutil.which("buildah"), reason="needs buildah")
def test_the_container(base, tmp_path):
    """Built on the tree, since a registry may not be reached, and run."""
    packed("mydyno_*_amd64.deb")
    store = [
        "buildah",
        "--storage-driver",
        "vfs",
        "--root",
        tmp_path / "root",
        "--runroot",
        tmp_path / "r",
    ]

    def buildah(*argv):
        return subprocess.run([*store, *argv], capture_output=True, text=True, check=True).stdout

    made = buildah("from", "scratch").strip()
    buildah("add", made, base, "/")
    buildah("commit", made, "clean")
    recipe = ROOT / "packaging" / "Containerfile"
    chroot = ("--isolation", "chroot")
    buildah("bud", *chroot, "--build-arg", "BASE=clean", "-t", "mydyno", "-f", recipe, ROOT)
    box = buildah("from", "mydyno").strip()
    assert buildah("run", *chroot, box, "mydyno", "--version") == "mydyno 0.1.0\n"
    assert "mariadbd" in buildah("run", *chroot, box, "mydyno", "plan", "demo")


@pytest.mark.skipif(not shutil.which("qemu-aarch64"), reason="needs qemu-user")
def test_the_programs_for_arm64(tmp_path):
    """Built on this processor by Debian's packages, run by emulation: the same digest as here."""
    subprocess.run([ROOT / "packaging" / "arm64.sh"], check=True)
    folder = ROOT / "target" / "aarch64-unknown-linux-gnu" / "release"
    log = ROOT / "tests" / "golden" / "digest" / "administrator-commands" / "input.log"

    def arm(name, *argv):
        argv = ["qemu-aarch64", folder / name, *argv]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    assert arm("mydyno-probe", "--version") == "mydyno-probe 0.1.0\n"
    assert "azure-p15" in arm("mydyno-disk", "classes")
    arm("mydyno-probe", "sample", "--out", tmp_path / "h.bin", "--duration", "3s")
    from mydyno.sample.probe_file import read  # noqa: PLC0415

    assert len(read(tmp_path / "h.bin").seqs) >= 3
    here = Path(ROOT / ".venv" / "bin" / "mydyno-probe")
    argv = [here, "digest", "--json", log]
    own = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert arm("mydyno-probe", "digest", "--json", log) == own
