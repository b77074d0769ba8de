"""The toy package, installed as an installer would, without one."""

import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

TOY = Path(__file__).parent / "toy"


def install_toys(folder: Path) -> None:
    """Put the toys and their entry points into a folder of packages."""
    project = tomllib.loads((TOY / "pyproject.toml").read_text())["project"]
    shutil.copytree(TOY / "mydyno_toy", folder / "mydyno_toy")
    info = folder / "mydyno_toy-1.0.dist-info"
    info.mkdir()
    named = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {what}" for name, what in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")


def environment_with_toys(folder: Path) -> Path:
    """Return the Python of a new environment with the toys, and with what this one has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder / "lib" / version / "site-packages"
    install_toys(packages)
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    return folder / "bin/python"
