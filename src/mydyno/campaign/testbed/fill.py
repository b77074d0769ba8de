"""Filling a data set once: server initialised, tables loaded, frozen as a snapshot."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mydyno.campaign.stores import StoreKey
from mydyno.campaign.testbed.bench_setup import Hosts
from mydyno.dataset import Store, existing
from mydyno.host import Host, Local, Remote, uploaded
from mydyno.model import Action
from mydyno.server import Instance, preload
from mydyno.workloads import Target, Workload

_HOURS_S = 12 * 3600.0  # for very large data sets
_STOP_S = 900.0  # a clean shutdown writes every dirty page


@dataclass(frozen=True, slots=True)
class Filling:
    """What is needed to fill data sets; `work` is the folder for the tools' small files.

    `instances` are the servers by program, and `checked` is called with the program of the one that
    runs.  `source` is the data directory of another server to start from, if any.
    """

    hosts: Hosts
    work: Path
    instances: Mapping[str, Instance]
    checked: Callable[[str], None]
    preloaded: bool = True
    source: str = ""


def fill(f: Filling, store: Store, key: StoreKey, workload: Workload) -> None:
    """Fill and freeze one data set; raise `HostError` with the message of the failed command."""
    if key.server:
        _with_server(f, f.instances[key.server], key, workload)
    else:
        _prepare(f, workload, Target(work=f.work, directory=store.live))
    store.freeze()


def _with_server(f: Filling, instance: Instance, key: StoreKey, workload: Workload) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in key.shape)
    write_owned(f.hosts.db, instance, lines)
    if f.source:
        source = existing.find(instance.host, f.source)
        existing.copy(instance.host, source, instance.place.data, instance.identity.owner)
        instance.adopt()
    else:
        instance.initialise()
    instance.start()
    try:
        f.checked(key.server)
        _prepare(f, workload, target_of(instance, f.work, f.work))
        pages = preload.page_list(instance) if f.preloaded else b""
    finally:
        instance.stop(grace_s=_STOP_S)
    if pages:
        preload.write(instance, pages)


def write_owned(host: Host, instance: Instance, lines: str = "") -> None:
    """Write `lines` as the entire owned option file, and remove the other launch files."""
    place = instance.place
    text = f"[mysqld]\n{lines}".encode()
    host.run(Action(("install", "-m", "640", "/dev/stdin", str(place.owned)), text)).check()
    files = ("find", str(place.launch), "-mindepth", "1", "-type", "f", "-delete")
    host.run(Action(files)).check()


def target_of(instance: Instance, work: Path, directory: Path) -> Target:
    """Return the target of a load on a running private server; `work` is a folder of ours."""
    end = instance.endpoint
    return Target(
        work=work,
        directory=directory,
        socket=end.socket,
        tcp_host=end.tcp_host,
        tcp_port=end.tcp_port,
        user=end.user,
        password_file=_password_file(instance, work),
        database=end.database,
    )


def _password_file(instance: Instance, work: Path) -> Path:
    """Return a client option file for the load that can be read here: the original or a copy.

    The copy names copies of the certificates, so that both can be uploaded to the load's host.
    """
    there = instance.endpoint.password_file
    if not isinstance(instance.host, Remote) and not instance.address:
        return there
    text = _text(instance.host, there)
    tls = instance.place.tls
    for name in sorted(set(re.findall(rf'"{re.escape(str(tls))}/([^"/]+)"', text))):
        _save(_text(instance.host, tls / name), work / tls.name / name)
    here = work / there.name
    _save(text.replace(f'"{tls}/', f'"{work / tls.name}/'), here)
    return here


def _text(host: Host, path: Path) -> str:
    return host.run(Action(("cat", str(path)))).check().stdout.decode()


def _save(text: str, here: Path) -> None:
    install = ("install", "-D", "-m", "600", "/dev/stdin", str(here))
    Local().run(Action(install, text.encode())).check()


def _prepare(f: Filling, workload: Workload, target: Target) -> None:
    host = f.hosts.of(workload)
    for action in workload.prepare(target):
        there = uploaded(host, action, target.work, target.password_file)
        host.run(there, timeout_s=_HOURS_S).check()
