"""Builds the .deb and the .rpm of one processor in dist/, from the wheel there and the lock file.

``python packaging/packages.py [--arch amd64|arm64] deb rpm``.  Both hold the same tree: an environment
of its own below /usr/lib/mydyno, for the Python of this distribution, with everything it imports.
"""

import argparse
import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "packaging"
HOME = "usr/lib/mydyno"
PROGRAMS = ("mydyno", "mydyno-probe", "mydyno-disk", "mydyno-guard")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
GLIBC = 28  # the newest 2.x that a wheel of the lock asks for
# What the wheels of the lock link to outside of themselves, by package and by name of the library.
LIBRARIES = {
    "libc6": ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"),
    "libgcc-s1": ("libgcc_s.so.1",),
    "libstdc++6": ("libstdc++.so.6",),
    "zlib1g": ("libz.so.1",),
}
NOT_NEEDED = {"python3-venv", "gcc", "libc6-dev"}  # of apt.txt: only a checkout needs them


def wanted(*, optional: bool) -> list[list[str]]:
    """Return the packages of apt.txt that a campaign uses; each is a list of alternatives."""
    lines = [line.partition("#")[0].strip() for line in (HERE / "apt.txt").read_text().splitlines()]
    named = [
        line.removeprefix("? ").split("|") for line in lines if line.startswith("? ") == optional
    ]
    return [one for one in named if one[0] and one[0] not in NOT_NEEDED]


def other_names(family: str) -> dict[str, str]:
    """Return the names that another family of distributions has for Debian's packages."""
    text = (HERE / "other.txt").read_text().splitlines()
    (head,) = (line.split()[1:] for line in text if line.endswith("apk"))
    rows = [line.split() for line in text if not line.startswith("#")]
    return {row[0]: row[head.index(family)] for row in rows}


def system_python() -> str:
    """Return the version of the distribution's Python, such as 3.11."""
    argv = ["/usr/bin/python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


def install_locked(site: Path, arch: str, python: str) -> None:
    """Install the lock file for a processor, which need not be this one; wheels only."""
    machine = MACHINES[arch]
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(17, GLIBC + 1)]
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    argv += ["--require-hashes", "-r", str(ROOT / "requirements.lock"), "--no-deps", "--no-compile"]
    argv += ["--only-binary=:all:", "--target", str(site), "--python-version", python]
    for one in (*platforms, f"manylinux2014_{machine}"):
        argv += ["--platform", one]
    subprocess.run(argv, check=True)
    shutil.rmtree(site / "bin", ignore_errors=True)
    for tests in [*site.rglob("tests")]:  # a third of numpy and scipy
        shutil.rmtree(tests, ignore_errors=True)


def unpack_wheel(tree: Path, site: Path) -> None:
    """Unpack the wheel of mydyno: its modules, its programs, and what is shared."""
    (wheel,) = (ROOT / "dist").glob("mydyno-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            data = re.fullmatch(r"mydyno-[^/]+\.data/data/(bin|share)/(.+)", name)
            if data is None:
                packed.extract(name, site)
                continue
            to = tree / (f"{HOME}/bin" if data[1] == "bin" else "usr/share") / data[2]
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(packed.read(name))


def make_tree(tree: Path, arch: str, python: str) -> None:
    """Write all files of the packages below `tree`."""
    shutil.rmtree(tree, ignore_errors=True)
    home = tree / HOME
    site = home / "lib" / f"python{python}" / "site-packages"
    site.mkdir(parents=True)
    install_locked(site, arch, python)
    unpack_wheel(tree, site)
    binaries = home / "bin"
    if MACHINES[arch] != platform.machine():
        for name in PROGRAMS[1:]:
            built = ROOT / "target" / f"{MACHINES[arch]}-unknown-linux-gnu" / "release" / name
            shutil.copy(built, binaries / name)
    (home / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {python}\n"
    )
    (binaries / "python").symlink_to(f"/usr/bin/python{python}")
    start = f"#!/{HOME}/bin/python -I\nfrom mydyno.cli import main\n\nmain()\n"
    (binaries / "mydyno").write_text(start)
    # checked by no date, so that root never writes below /usr: nothing is left when it is removed
    compiled = ["--invalidation-mode", "unchecked-hash", "-q", "-s", str(tree), "-p", "/"]
    subprocess.run(
        [f"/usr/bin/python{python}", "-m", "compileall", *compiled, str(site)], check=True
    )
    documents(tree)
    for path in tree.rglob("*"):
        if not path.is_symlink():
            runs = path.is_dir() or path.parent == binaries
            path.chmod(0o755 if runs else 0o644)


def documents(tree: Path) -> None:
    """Pack the man pages; add changes, licence and bill of materials."""
    for one in [*(tree / "usr/share/man").rglob("*.1")]:
        one.with_name(f"{one.name}.gz").write_bytes(gzip.compress(one.read_bytes(), mtime=0))
        one.unlink()
    to = tree / "usr/share/doc/mydyno"
    to.mkdir(parents=True)
    changes = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
    (to / "CHANGELOG.md.gz").write_bytes(changes)
    (to / "copyright").write_text(
        "Copyright: 2025, 2026 the authors of mydyno\n"
        "License: Apache-2.0, in /usr/share/common-licenses/Apache-2.0 on Debian, and in the folder\n"
        f"mydyno-*.dist-info of /{HOME}/lib. What else is there has its own licences, in its\n"
        "own folder *.dist-info.\n"
    )
    argv = [sys.executable, str(HERE / "sbom.py"), str(to / "mydyno.cdx.json")]
    subprocess.run(argv, check=True)


def contents(tree: Path, *, rpm: bool) -> list[dict[str, str]]:
    """Return what the packages hold, by the folders that are theirs alone; links lead to programs."""
    site = "site-functions" if rpm else "vendor-completions"
    found = [{"src": str(tree / HOME), "dst": f"/{HOME}", "type": "tree"}]
    found += [
        {"src": f"../lib/mydyno/bin/{one}", "dst": f"/usr/bin/{one}", "type": "symlink"}
        for one in PROGRAMS
    ]
    found.append({"dst": "/usr/share/doc/mydyno", "type": "dir"})
    for path in sorted((tree / "usr" / "share").rglob("*")):
        if path.is_file():
            to = f"/{path.relative_to(tree)}".replace("zsh/site-functions", f"zsh/{site}")
            found.append({"src": str(path), "dst": to})
    return found


def config(tree: Path, arch: str, python: str, kind: str) -> dict[str, object]:
    """Return the configuration of nfpm for one kind of package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    summary = project["description"]
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    found: dict[str, object] = {
        "name": "mydyno",
        "arch": arch,
        "version": project["version"],
        "release": "1",
        "section": "database",
        "priority": "optional",
        "maintainer": "the authors of mydyno <mydyno@example.org>",
        "license": project["license"],
        "mtime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
        "description": f"{summary if kind == 'rpm' else summary.removeprefix('A ')}\n"
        "It compares configurations of the complete stack under a load, shows which\n"
        "is better, by how much and with which interval, and restores the host.",
        "scripts": {
            "preremove": str(HERE / "scripts" / "before-removal.sh"),
            "postremove": str(HERE / "scripts" / "after-removal.sh"),
        },
        "contents": contents(tree, rpm=kind == "rpm"),
    }
    if kind == "deb":
        found["depends"] = [f"python{python}", f"libc6 (>= 2.{GLIBC})", *list(LIBRARIES)[1:]]
        found["recommends"] = [" | ".join(one) for one in wanted(optional=False)]
        found["suggests"] = [" | ".join(one) for one in wanted(optional=True)]
        found["deb"] = {"compression": "zstd"}
    else:
        names = other_names("dnf")
        soname = [f"{one}()(64bit)" for two in LIBRARIES.values() for one in two]
        found["depends"] = [
            f"/usr/bin/python{python}",
            f"libc.so.6(GLIBC_2.{GLIBC})(64bit)",
            *soname,
        ]
        found["recommends"] = [names[one[0]] for one in wanted(optional=False) if one[0] in names]
        found["rpm"] = {
            "compression": "zstd",
            "group": "Applications/Databases",
            "summary": summary,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    machines = {machine: arch for arch, machine in MACHINES.items()}
    parser.add_argument("--arch", choices=MACHINES, default=machines.get(platform.machine()))
    parser.add_argument("kinds", nargs="+", choices=("deb", "rpm"))
    asked = parser.parse_args()
    python = system_python()
    home = ROOT / "target" / "packages" / asked.arch
    nfpm = subprocess.run(
        [HERE / "nfpm.sh"], capture_output=True, text=True, check=True
    ).stdout.strip()
    make_tree(home / "tree", asked.arch, python)
    for kind in asked.kinds:
        path = home / f"{kind}.yaml"  # JSON is YAML
        path.write_text(json.dumps(config(home / "tree", asked.arch, python, kind), indent=1))
        argv = [nfpm, "package", "--config", path, "--packager", kind, "--target", ROOT / "dist"]
        subprocess.run(argv, check=True)


if __name__ == "__main__":
    main()
