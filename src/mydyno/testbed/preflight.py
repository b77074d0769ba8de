"""Checks before anything is made: tools, disk space, privileges, and an idle host."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mydyno.campaign.plan import Campaign
from mydyno.campaign.spec import DeviceTable, Spec, StackTable, program_of
from mydyno.host import Host, Remote, ask, is_root
from mydyno.lab.lab_link import available as link_available
from mydyno.loads import Checkable, Workload
from mydyno.loads import tools as load_tools
from mydyno.loads.mysqlslap import PROGRAMS
from mydyno.model import Action, RefusedError, Settings, SpecError
from mydyno.model.text import size_bytes
from mydyno.server import Build
from mydyno.server.programs import option_names, read_options
from mydyno.snapshot import existing, store
from mydyno.snapshot.device import require_empty
from mydyno.stack import Layer, cgroup, doses, refuse_reboot
from mydyno.stack.alloc import installed
from mydyno.stack.cpus import online
from mydyno.stack.known.variables import Variable, rejected
from mydyno.stack.layers import ServerPlace
from mydyno.stack.layers import layers as layer_kinds
from mydyno.stack.link import DELAY, resolved, uses_lab_link
from mydyno.stack.mysqld import option_file
from mydyno.stack.net import LAB
from mydyno.stack.protocol import StackSettings
from mydyno.testbed.bench_setup import Hosts, server_kind
from mydyno.testbed.lock import REMOTE_ROOT

HOST = "host"
REFORMAT = "reformat:"


def consent(
    treatments: Mapping[str, StackSettings], layers: Sequence[Layer], allow: Sequence[str]
) -> None:
    """Raise `RefusedError` for a host-wide setting without consent."""
    for name, settings in treatments.items():
        for layer in layers:
            if not layer.owned and HOST not in allow and (wanted := settings.of(layer.name)):
                raise RefusedError(
                    f"{name}: {layer.name}.{next(iter(wanted))} is a host-wide setting, not only "
                    "one of the server under test; "
                    "add --allow host to consent (it is restored when the campaign ends)"
                )


def consent_reformat(device: str, allow: Sequence[str]) -> None:
    """Raise `RefusedError` unless the user named exactly this device."""
    if REFORMAT + device not in allow:
        raise RefusedError(
            f"stack.device: {device} would be formatted; add --allow {REFORMAT}{device} to "
            "consent (only an empty device is accepted)"
        )


def refuse_settings(host: Host, campaign: Campaign, servers: Mapping[str, Build]) -> None:
    """Raise `SpecError` for a setting that its layer, or the server of its treatment, refuses.

    The server program is asked, so that no data are made for a misspelt name or a value out of
    range.
    """
    stack, treatments = campaign.spec.stack, campaign.treatments
    used = {program_of(s, stack) for s in treatments.values() if s}
    libraries = ask(host, installed()) if servers else {}
    places = {
        program: ServerPlace(
            server_kind(build, dict.fromkeys(option_names(host, build), Variable())),
            libraries=libraries,
            link=LAB,
            cpus=_cpus(host, stack),
        )
        for program, build in servers.items()
        if program in used
    }
    for name, settings in treatments.items():
        if not (place := places.get(program_of(settings, stack))):
            continue  # what needs no server was validated when it was planned
        try:
            for kind in layer_kinds().values():
                if kind.in_server:
                    kind.validate(settings, place)
        except SpecError as error:
            raise SpecError(f"{name}: {error}") from error
    for program in places:
        mine = {
            name: settings.of("mysqld")
            for name, settings in treatments.items()
            if program_of(settings, stack) == program
        }
        _refuse_values(host, servers[program], mine)


def _cpus(host: Host, stack: StackTable) -> Mapping[str, frozenset[int]]:
    """Return the CPUs of each role's host, as far as they are known before there is a machine."""
    if isinstance(stack.device, DeviceTable) and stack.device.machine:
        return {}
    return dict.fromkeys(("db",) if stack.load else ("db", "load"), ask(host, online()))


def refuse_host_settings(
    host: Host, layer: Layer, now: Settings, treatments: Mapping[str, StackSettings]
) -> None:
    """Raise for a setting that a layer of the host, seen as `now`, does not take or restore."""
    for name, settings in treatments.items():
        # a share of the traffic is no rate yet, nor one of a latency what is added to it
        wanted = doses.resolved(resolved(settings, "", {}), {})
        try:
            refuse_reboot(host, layer.plan(now, wanted.of(layer.name)))
        except SpecError as error:
            raise SpecError(f"{name}: {error}") from error


def refuse_occupied(host: Host, stack: StackTable, folder: Path) -> None:
    """Raise where the device holds anything, or the data to copy are none, in use or too large.

    Only root can look into a device; to others `run` refuses it.
    """
    device, free = stack.device, 0
    if isinstance(device, DeviceTable):
        free = size_bytes(device.size, "stack.device.size")
    elif device == "here":
        free = ask(host, store.free(existing_parent(host, folder)))
    elif is_root(host):
        require_empty(host, device)
    if stack.data:
        source = existing.find(host, stack.data)
        existing.refuse_too_large(source, existing.size(host, source) if free else 0, free)


def _refuse_values(host: Host, build: Build, treatments: Mapping[str, Settings]) -> None:
    """Raise `SpecError` for a variable's value that the program rejects or changes.

    A program judges each value by itself, so that one option file holds values of several
    treatments.
    """
    values: dict[str, dict[str, None]] = {}
    for settings in treatments.values():
        for key, value in settings.items():
            values.setdefault(key, {})[value] = None
    for one in range(max(map(len, values.values()), default=0)):
        tried = {key: [*each][one] for key, each in values.items() if one < len(each)}
        text = option_file(tried, build.flavour, build.version)
        problems = rejected(read_options(host, build, text), tried)
        for name, settings in treatments.items():
            if mine := [problems[k] for k in settings if k in problems and settings[k] == tried[k]]:
                raise SpecError(f"{name}: {'; '.join(mine)}")


_VERSION = "TLSv"


def tls_mismatch(wanted: str, session: Mapping[str, str]) -> str:
    """Return how a load's session differs from its treatment, or ``""``.

    `wanted` is a value of `net.tls`; `session` holds the status variables of the load's first
    connection.  The cipher decides: a client's option does not show whether TLS is in use.
    """
    cipher, version = session.get("ssl_cipher", ""), session.get("ssl_version", "")
    if wanted == "off":
        return f"net.tls is off, but the load's session has {cipher}" if cipher else ""
    if not cipher:
        return f"net.tls is {wanted}, but the load's session has no cipher"
    has = version if wanted.startswith(_VERSION) else cipher
    if wanted == "on" or _plain(wanted) == _plain(has):
        return ""
    return f"net.tls is {wanted}, but the load's session has {has}"


def _plain(cipher: str) -> str:
    """Return a name that OpenSSL and wolfSSL agree on: wolfSSL's TLS13-AES128-GCM-SHA256."""
    return re.sub("[_-]", "", re.sub("^TLS_", "TLS13-", cipher))


_PACKAGES = {
    "ip": "iproute2",
    "mariadb-slap": "mariadb-client",
    "mkfs.btrfs": "btrfs-progs",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
    "mysqlslap": "mariadb-client",
    "sysctl": "procps",
    "tc": "iproute2",
    "zfs": "zfsutils-linux",
}
_SPARE_BYTES = 1 << 30  # a full disk would affect the entire host
_BUSY = 0.3  # cores: above this, other processes are at work


def preflight(hosts: Hosts, campaign: Campaign, folder: Path) -> None:
    """Raise `SpecError` for a missing tool or invalid option, `RefusedError` if space is short."""
    spec, known = campaign.spec, load_tools()
    for cell, workload in campaign.workloads.items():
        name = cell.partition("/")[0]
        table = spec.workloads.get(name, {})
        declared = known[str(table["tool"])].program if "tool" in table else ""
        tool = str(table.get("program", declared))
        host = hosts.of(workload)
        if tool:
            _refuse_missing(hosts, host, f"workloads.{name}", tool)
        if isinstance(workload, Checkable):
            workload.check(host)
    for layer, kind in layer_kinds().items():
        for settings in campaign.treatments.values():
            for tool in kind.needs.tools(settings.of(layer)) if settings.of(layer) else ():
                _refuse_missing(hosts, hosts.db, layer, tool)
    _refuse_quota(hosts.db, campaign)
    _space(hosts.db, spec, folder)


def _refuse_missing(hosts: Hosts, host: Host, place: str, tool: str) -> None:
    if not path_of(host, tool):
        where = f" on {host.name}" if hosts.remote else ""
        raise SpecError(f"{place}: {tool} is not installed{where}; {_remedy(host, tool)}")


def _remedy(host: Host, tool: str) -> str:
    """Return how to get a missing tool, which may be installed under its other name."""
    others = [p for p in PROGRAMS if tool in PROGRAMS and p != tool and path_of(host, p)]
    if others:
        return f'set program = "{others[0]}"'
    return f"apt-get install {_PACKAGES.get(tool, tool)}"


def refuse_unprivileged(host: Host, layers: Sequence[Layer]) -> None:
    """Raise `RefusedError` where host-wide settings are to be changed without root there."""
    kinds = layer_kinds()
    names = ", ".join(layer.name for layer in layers if kinds[layer.name].needs.root)
    if names and not is_root(host):
        raise RefusedError(
            f"{host.name}: {names} settings need root; connect as root (ssh://root@...), or remove "
            "them from the spec"
        )


def refuse_connections(campaign: Campaign) -> None:
    """Raise `SpecError` for a load with more threads than a treatment's server lets in."""
    for cell, workload in campaign.workloads.items():
        threads = getattr(workload, "threads", 0) if workload.info.needs_server else 0
        ours = (1 + campaign.spec.stack.replicated) if threads else 0  # the sampler, a replica
        for name, settings in campaign.treatments.items():
            most = settings.of("mysqld").get("max_connections", _CONNECTIONS)
            if most.isdecimal() and threads + ours > int(most):
                raise SpecError(
                    f"workloads.{cell}: {threads} threads, but the server of {name} lets "
                    f"{most} connections in, and mydyno itself needs {ours} of them; set "
                    "mysqld.max_connections in its treatments"
                )


def refuse_network(hosts: Hosts, campaign: Campaign) -> None:
    """Raise `SpecError` for a treatment under which the load cannot reach the server."""
    for name, settings in campaign.treatments.items():
        if hosts.address and settings.of("net").get("transport") == "socket":
            raise SpecError(
                f"{name}: net.transport = 'socket': the load runs on {hosts.load.name}, and a "
                "socket can only be used on the server's host; remove stack.load"
            )
        if hosts.remote and uses_lab_link(settings):
            raise SpecError(
                f"{name}: net.address = 'lab': a lab link exists on the local host only, but this "
                f"campaign uses {hosts.db.name} and {hosts.load.name}; run mydyno there, or set "
                "stack.load to a host on a real network"
            )
        delayed = DELAY in settings
        if uses_lab_link(settings) and (reason := link_available(hosts.db, delayed=delayed)):
            raise RefusedError(f'net.address = "{LAB}": {reason}')


def _refuse_quota(host: Host, campaign: Campaign) -> None:
    """Raise `RefusedError` for a CPU quota on a host that has none to give; a VM lab has."""
    device = campaign.spec.stack.device
    machine = isinstance(device, DeviceTable) and device.machine
    wanted = any(settings.of("cgroup") for settings in campaign.treatments.values())
    if wanted and not machine and (reason := ask(host, cgroup.refusal())):
        raise RefusedError(f"cgroup.cpu: {host.name}: {reason}; or remove cgroup.cpu")


_CONNECTIONS = "151"  # where max_connections is not set: of all versions that are supported


def path_of(host: Host, tool: str) -> str:
    """Return where a tool is on the host's PATH, or ``""``."""
    return host.run(Action(("which", tool))).stdout.decode(errors="replace").strip()


def existing_parent(host: Host, folder: Path) -> Path:
    """Return the existing folder of the host below which `folder` will be made."""
    if isinstance(host, Remote):
        return REMOTE_ROOT
    return next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())


def _space(host: Host, spec: Spec, folder: Path) -> None:
    """Raise `RefusedError` where a lab disk of full size would not fit on the host."""
    there = existing_parent(host, folder)
    free = ask(host, store.free(there))
    device = spec.stack.device
    size = device.size if isinstance(device, DeviceTable) else "1G"
    wanted = size_bytes(size, "stack.device.size") + _SPARE_BYTES
    if free < wanted:
        raise RefusedError(
            f"{there}: {free / 2**30:.1f} GiB free, but this campaign may need "
            f"{wanted / 2**30:.1f}; free some space, reduce stack.device.size, or choose another "
            "directory with -o"
        )


def tools(hosts: Hosts, workloads: Mapping[str, Workload]) -> dict[str, str]:
    """Return the version and client library that each load tool reports, by its command."""
    versions: dict[str, str] = {}
    asked = dict.fromkeys((a, hosts.of(w)) for w in workloads.values() for a in w.describe())
    for action, host in asked:
        lines = host.run(_resolved(host, action)).stdout.decode(errors="replace").splitlines()
        known = [line.strip() for line in lines if "mysql" in line or "maria" in line]
        versions[" ".join(Path(part).name for part in action.argv)] = (known or lines or ["?"])[0]
    return versions


def _resolved(host: Host, action: Action) -> Action:
    """Return the action with the tools that it names by path as that host has them."""
    words = (path_of(host, Path(w).name) or w if Path(w).is_absolute() else w for w in action.argv)
    return Action(tuple(words), action.stdin)


def busy(cores_busy: float) -> Sequence[str]:
    """Return a warning for a host on which `cores_busy` cores were busy before the campaign."""
    if cores_busy <= _BUSY:
        return ()
    seen = f"{cores_busy:.1f} cores of the host were busy before the campaign began"
    return (f"{seen}; that load is part of every result; stop it and run again",)


def mount_point(host: Host, folder: Path) -> str:
    """Return where the filesystem of a folder is mounted."""
    done = host.run(Action(("stat", "--format=%m", "--", str(folder)))).check()
    return done.stdout.decode(errors="surrogateescape").removesuffix("\n")


def beneath(host: Host, folder: Path) -> str:
    """Return the name in /sys/block of the disk under `folder`.

    Raises `SpecError` where there is none, or where several may be stacked: a volume or an array
    has no queue of its own to set.
    """
    find = ("findmnt", "--noheadings", "--output", "SOURCE", "--target", str(folder))
    source = host.run(Action(find)).check().stdout.decode().split("[")[0].strip()
    found = f"block settings: {folder} is on {source}"
    if not source.startswith("/dev/"):
        raise SpecError(
            f"{found}, which is not a disk; use a lab, or choose another directory with -o"
        )
    columns = ("--noheadings", "--nodeps", "--raw", "--output", "TYPE,NAME,PKNAME", source)
    kind, name, *parent = host.run(Action(("lsblk", *columns))).check().stdout.decode().split()
    if kind not in {"disk", "part", "loop"}:
        raise SpecError(f"{found}, a {kind}; set its member disks manually, or use a lab")
    return parent[0] if parent else name
