"""Filling a data set once: the server initialised in its shape, the load's tables made, sealed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mydyno.campaign.stores import StoreKey
from mydyno.dataset import Store
from mydyno.host import Host
from mydyno.model import Action
from mydyno.server import Instance, preload
from mydyno.workloads import Target, Workload

_HOURS_S = 12 * 3600.0  # the largest data set a person would wait for
_STOP_S = 900.0  # a clean shutdown writes every dirty page


@dataclass(frozen=True, slots=True)
class Filling:
    """What is needed to fill data sets: where tools keep small files, and who looks on first."""

    host: Host
    work: Path
    instance: Instance | None
    checked: Callable[[], None]
    preloaded: bool = True


def fill(f: Filling, store: Store, key: StoreKey, workload: Workload) -> None:
    """Fill and seal one data set; raise `HostError` with the words of what failed."""
    if key.server and f.instance is not None:
        _with_server(f, f.instance, key, workload)
    else:
        _prepare(f.host, workload, Target(work=f.work, directory=store.live))
    store.seal()


def _with_server(f: Filling, instance: Instance, key: StoreKey, workload: Workload) -> None:
    lines = "".join(f"{name} = {value}\n" for name, value in key.shape)
    write_owned(f.host, instance, lines)
    instance.initialise()
    instance.start()
    try:
        f.checked()
        _prepare(f.host, workload, target_of(instance, f.work, f.work))
        pages = preload.page_list(instance) if f.preloaded else b""
    finally:
        instance.stop(grace_s=_STOP_S)
    if pages:
        preload.write(instance, pages)


def write_owned(host: Host, instance: Instance, lines: str = "") -> None:
    """Make `lines` all that our option file holds, and empty the other launch files."""
    place = instance.place
    text = f"[mysqld]\n{lines}".encode()
    host.run(Action(("install", "-m", "644", "/dev/stdin", str(place.owned)), text)).check()
    files = ("find", str(place.launch), "-mindepth", "1", "-type", "f", "-delete")
    host.run(Action(files)).check()


def target_of(instance: Instance, work: Path, directory: Path) -> Target:
    """Return the target of a load on a running private server."""
    end = instance.endpoint
    return Target(
        work=work,
        directory=directory,
        socket=end.socket,
        tcp_host=end.tcp_host,
        tcp_port=end.tcp_port,
        user=end.user,
        password_file=end.password_file,
        database=end.database,
    )


def _prepare(host: Host, workload: Workload, target: Target) -> None:
    for action in workload.prepare(target):
        host.run(action, timeout_s=_HOURS_S).check()
