"""Runs every golden case of the layers of a private instance, and of the kernel's.

A case is a JSON file: what the layer is (`layer`), what a command printed (`raw`) or is known
(`now`), what is wanted (`want`), and what that gives (`gives`: the settings read, the changes, or
the error).  `MYDYNO_GOLDEN=write` writes `gives` anew.
"""

import json
from pathlib import Path

import pytest

from golden.rewrite import hold
from mydyno.model import Change, SpecError
from mydyno.stack import mysqld
from mydyno.stack.alloc import Alloc
from mydyno.stack.alloc import parse as parse_alloc
from mydyno.stack.env import Env
from mydyno.stack.env import parse as parse_env
from mydyno.stack.kernel import Kernel
from mydyno.stack.known.variables import Variable
from mydyno.stack.limits import Limits
from mydyno.stack.limits import parse as parse_limits
from mydyno.stack.running import Server
from mydyno.stack.transport import Transport
from mydyno.stack.transport import parse as parse_transport

_FOLDER = Path(__file__).parent / "stack"
_LAYERS = ("mysqld", "alloc", "env", "limits", "kernel", "transport")
_CASES = sorted(case for layer in _LAYERS for case in (_FOLDER / layer).glob("*.json"))
_HOME = Path("/home/of/instance")
_OPTIONS = _HOME / "my.cnf"


def _server(name):
    return Server(_HOME / "launch" / name, _HOME / "mysqld.pid", _OPTIONS)


def _mysqld(given):
    variables = {
        name: Variable(**{**told, "choices": tuple(told.get("choices", ()))})
        for name, told in given["variables"].items()
    }
    file = _HOME / "zz-mydyno.cnf"
    version = tuple(given["version"])
    stock = given["stock"]
    return mysqld.Mysqld(("client",), file, given["flavour"], version, variables, stock)


def _layer(kind, given):
    """Return the layer that a case is about, and the reading of its command's output."""
    return {
        "mysqld": lambda: (_mysqld(given), mysqld.parse),
        "alloc": lambda: (Alloc(_server("alloc"), given.get("libraries", {})), parse_alloc),
        "env": lambda: (Env(_server("env")), parse_env),
        "limits": lambda: (Limits(_server("limits")), parse_limits),
        "kernel": lambda: (Kernel(tuple(given["keys"])), Kernel(tuple(given["keys"])).parse),
        "transport": lambda: (Transport(_HOME / "launch/transport", ("client",)), parse_transport),
    }[kind]()


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
        gives["now"] = now = dict(parse("\n".join(case["raw"]).encode()))
    if "want" in case:
        try:
            changes = layer.plan(now, case["want"])
            gives["changes"] = [_shown(change) for change in changes]
            if kind == "mysqld":
                gives["online"] = [each.stdin.decode() for each in layer.online(changes)]
        except SpecError as error:
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
