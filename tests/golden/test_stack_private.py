"""Runs every golden case of the layers of a private instance, of a filesystem and of the kernel.

A case is a JSON file: what the layer is (`layer`), what a command printed (`raw`) or is known
(`now`), what is wanted (`want`), and what that gives (`gives`: the settings read, the changes, or
the error).  `MYDYNO_GOLDEN=write` writes `gives` again.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from golden.rewrite import hold
from mydyno.model import Change, HostError, RefusedError, SpecError
from mydyno.stack import mysqld
from mydyno.stack.alloc import Alloc
from mydyno.stack.alloc import parse as parse_alloc
from mydyno.stack.cgroup import Cgroup, parse_cgroup
from mydyno.stack.cpus import Cpus, parse_cpus
from mydyno.stack.fs import Fs
from mydyno.stack.kernel import Kernel
from mydyno.stack.known.variables import Variable
from mydyno.stack.launch_file import Env, Limits, Server, parse_env, parse_limits
from mydyno.stack.layers import judged
from mydyno.stack.link import Link
from mydyno.stack.link import parse as parse_link
from mydyno.stack.net import Net
from mydyno.stack.protocol import full_key, split
from mydyno_vm.raid import Raid
from mydyno_vm.zfs import Zfs

_FOLDER = Path(__file__).parent / "stack"
_LAYERS = (
    *("mysqld", "alloc", "env", "fs", "limits", "cpus", "cgroup", "kernel"),
    *("net", "link", "raid", "zfs"),
)
_CASES = sorted(case for layer in _LAYERS for case in (_FOLDER / layer).glob("*.json"))
_HOME = Path("/home/of/instance")
_OPTIONS = _HOME / "my.cnf"
_FS = Fs("/mnt/x", "/dev/loop7")


def _server(name):
    return Server(_HOME / "launch" / name, _HOME / "mysqld.pid", _OPTIONS)


def _mysqld(given):
    variables = {
        name: Variable(**{**facts, "choices": tuple(facts.get("choices", ()))})
        for name, facts in given["variables"].items()
    }
    file = _HOME / "zz-mydyno.cnf"
    version = tuple(given["version"])
    stock = given["stock"]
    return mysqld.Mysqld(("client",), file, given["flavour"], version, variables, stock)


def _net(given):
    version = tuple(given.get("version", ()))
    lab = given.get("lab", "")
    return Net(_HOME / "launch/net", ("client",), given.get("flavour", ""), version, lab)


def _layer(kind, given):
    """Return the layer that a case is about, and the reading of its command's output."""
    return {
        "mysqld": lambda: (_mysqld(given), mysqld.parse),
        "alloc": lambda: (Alloc(_server("alloc"), given.get("libraries", {})), parse_alloc),
        "fs": lambda: (_FS, _FS.observe().parse),
        "env": lambda: (Env(_server("env")), parse_env),
        "limits": lambda: (Limits(_server("limits")), parse_limits),
        "cpus": lambda: (Cpus(_server("cpus")), parse_cpus),
        "cgroup": lambda: (Cgroup(_server("cgroup")), parse_cgroup),
        "kernel": lambda: (Kernel(tuple(given["keys"])), Kernel(tuple(given["keys"])).parse),
        "net": lambda: (_net(given), _net(given).parse),
        "link": lambda: (Link("labh", "lab", "labl"), parse_link),
        "raid": lambda: (Raid(tuple(given["disks"])), Raid(tuple(given["disks"])).parse),
        "zfs": lambda: (Zfs(given["dataset"]), Zfs(given["dataset"]).parse),
    }[kind]()


def _judged(kind, layer, case, changes):
    """Return the changes with the durability that the layer's declaration gives them."""
    settings = {full_key(layer.name, key): value for key, value in case["want"].items()}
    stock = case.get("layer", {}).get("stock", {}) if kind == "mysqld" else {}
    full = [replace(change, key=full_key(layer.name, change.key)) for change in changes]
    first = {full_key(layer.name, key): value for key, value in stock.items()}
    return [
        replace(change, key=change.key.partition(".")[2])
        for change in judged(full, split(settings), first, {})
    ]


def _shown(change: Change):
    return {
        "key": change.key,
        "before": change.before,
        "after": change.after,
        "cost": change.cost.name,
        "durability": change.durability.value,
        "argv": list(change.action.argv),
        "stdin": change.action.stdin.decode(),
    }


def _gives(kind, case):
    layer, parse = _layer(kind, case.get("layer", {}))
    gives = {}
    now = case.get("now", {})
    if "raw" in case:
        try:
            gives["now"] = now = dict(parse("\n".join(case["raw"]).encode()))
        except HostError as error:
            return {"error": str(error)}
    if "want" in case:
        try:
            changes = layer.plan(now, case["want"])
            gives["changes"] = [_shown(change) for change in _judged(kind, layer, case, changes)]
            if kind == "mysqld":
                gives["online"] = [each.stdin.decode() for each in layer.online(changes)]
        except (SpecError, RefusedError) as error:
            gives["error"] = str(error)
    return gives


@pytest.mark.parametrize("path", _CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_case_gives_what_it_gave(path):
    case = json.loads(path.read_text("utf-8"))
    gives = _gives(path.parent.name, case)
    hold(path, json.dumps({**case, "gives": gives}, indent=2) + "\n")


@pytest.mark.parametrize("layer", _LAYERS)
def test_every_layer_has_cases(layer):
    assert len(list((_FOLDER / layer).glob("*.json"))) >= 3
