"""Writes what mydyno is built from as CycloneDX JSON, from its lock files, with their hashes.

``python packaging/sbom.py [FILE]``; without FILE it is printed.  Same locks, same bytes.
"""

import json
import re
import sys
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
Component = dict[str, object]


def component(kind: str, name: str, version: str, hashes: list[str]) -> Component:
    """Return one part: a package of PyPI or crates.io; several hashes are one file each."""
    purl = f"pkg:{kind}/{name}@{version}"
    found: Component = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    found["purl"] = purl
    if len(hashes) == 1:
        found["hashes"] = [{"alg": "SHA-256", "content": hashes[0]}]
    elif hashes:  # a wheel for each processor, and the sources
        kind_of = {"type": "distribution", "url": purl}
        found["externalReferences"] = [
            kind_of | {"hashes": [{"alg": "SHA-256", "content": one}]} for one in hashes
        ]
    return found


def python_parts(lock: Path) -> list[Component]:
    """Return the packages of a pip lock file; raise `ValueError` for one without a hash."""
    found = []
    for text in re.split(r"\n(?=[A-Za-z0-9])", lock.read_text()):
        pinned = _PINNED.match(text)
        if pinned is None:
            continue
        hashes = _HASH.findall(text)
        if not hashes:
            raise ValueError(f"{lock.name}: {pinned[1]} has no hash; write the lock again")
        found.append(component("pypi", pinned[1].lower(), pinned[2], hashes))
    return found


def rust_parts(lock: Path) -> list[Component]:
    """Return the crates of a cargo lock file; ours have no source and are left out."""
    packages = tomllib.loads(lock.read_text())["package"]
    found = []
    for one in packages:
        if "source" not in one:
            continue
        if "checksum" not in one:
            raise ValueError(f"{lock.name}: {one['name']} has no checksum; write the lock again")
        found.append(component("cargo", one["name"], one["version"], [one["checksum"]]))
    return found


def project_of(folder: Path) -> dict[str, object]:
    """Return the table ``[project]`` of a distribution of ours."""
    found: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return found


def described(project: dict[str, object]) -> Component:
    """Return a distribution of ours by name, version and licence."""
    return {
        "type": "library",
        "name": project["name"],
        "version": project["version"],
        "licenses": [{"license": {"id": project["license"]}}],
    }


def bill() -> dict[str, object]:
    """Return the document: the parts of mydyno and of the distributions that its extras require."""
    project = project_of(ROOT)
    parts = python_parts(ROOT / "requirements.lock") + rust_parts(ROOT / "Cargo.lock")
    extras = [described(project_of(one)) for one in sorted((ROOT / "packages").iterdir())]
    about = {**described(project), "type": "application", "components": extras}
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(parts))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": about},
        "components": parts,
    }


def main() -> None:
    text = json.dumps(bill(), indent=2) + "\n"
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
