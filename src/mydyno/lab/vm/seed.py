"""A machine's keys: made before it is booted, so that its host key is known and always checked."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

from mydyno.host import Host
from mydyno.lab.vm.values import VmPaths
from mydyno.model import Action

_SECRET, _PUBLIC, _FOLDER = 0o600, 0o644, 0o700


def plant(host: Host, lab: str, paths: VmPaths, port: int) -> None:
    """Make the machine's keys, the archive that it takes them from, and its ssh configuration."""
    for key in (paths.key, paths.host_key):
        argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"mydyno {lab}", "-f")
        host.run(Action((*argv, str(key)))).check()
    paths.seed.touch(_SECRET)
    paths.seed.write_bytes(archive(lab, paths.host_key, paths.key))
    public = _public(paths.host_key).read_text("ascii")
    paths.known_hosts.write_text(f"[127.0.0.1]:{port} {public}", encoding="ascii")
    paths.config.write_text(configuration(lab, paths, port), encoding="utf-8")


def archive(lab: str, host_key: Path, key: Path) -> bytes:
    """Return the archive that the machine unpacks over its root when it boots."""
    files = (
        ("etc/hostname", f"{lab}\n".encode(), _PUBLIC),
        ("etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {lab}\n".encode(), _PUBLIC),
        ("etc/ssh/ssh_host_ed25519_key", host_key.read_bytes(), _SECRET),
        ("etc/ssh/ssh_host_ed25519_key.pub", _public(host_key).read_bytes(), _PUBLIC),
        ("root/.ssh/authorized_keys", _public(key).read_bytes(), _SECRET),
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for member in _folders("root/.ssh"):
            tar.addfile(member)
        for name, content, mode in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def configuration(lab: str, paths: VmPaths, port: int) -> str:
    """Return the configuration under which ``ssh LAB`` reaches the machine and no other one."""
    lines = {
        "HostName": "127.0.0.1",
        "Port": str(port),
        "User": "root",
        "IdentityFile": f'"{paths.key}"',
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f'"{paths.known_hosts}"',
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlgorithms": "ssh-ed25519",
        "BatchMode": "yes",
        "ConnectTimeout": "60",
        "ServerAliveInterval": "30",
        "ServerAliveCountMax": "6",
    }
    return f"Host {lab}\n" + "".join(f"  {name} {value}\n" for name, value in lines.items())


def _folders(path: str) -> Iterator[tarfile.TarInfo]:
    member = tarfile.TarInfo(path)
    member.type, member.mode = tarfile.DIRTYPE, _FOLDER
    yield member


def _public(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")
