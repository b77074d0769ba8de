"""The spec as TOML tables: decoded strictly; errors name the line and the nearest key."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from mydyno.model import Settings, SpecError, unknown_value

T = TypeVar("T")
Scalar = str | int | float | bool
FromZero = Annotated[float, msgspec.Meta(ge=0)]
_UNQUOTED = "is a table; put the key of a setting in quotes, its dots included"
_LARGEST = 2**64 - 1  # the largest number that a server's variable holds


class CampaignTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[campaign]``: its name and its question."""

    name: str = ""
    question: str = ""


class DeviceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``device = {...}`` under ``[stack]``: lab disks of a cloud class, striped, on a VM.

    For a `lab` that is a virtual machine, `kernel` is the release it boots first, and `memory` and
    `cores` are its size, by default a quarter of this machine's.
    """

    lab: str
    size: str = "4G"
    disk_class: str = msgspec.field(default="", name="class")
    disks: int = 1
    chunk: str = "512K"
    vm: str = ""
    kernel: str = ""
    credits: str | float = "empty"
    read_latency_us: Annotated[int, msgspec.Meta(ge=0)] = 0
    write_latency_us: Annotated[int, msgspec.Meta(ge=0)] = 0
    flush_latency_us: Annotated[int, msgspec.Meta(ge=0)] = 0
    # for a crash test of the crash test; unset, so that the digest stays the same
    ignores_flushes: bool | msgspec.UnsetType = msgspec.UNSET
    # the load's data are written at the caps' speed; unset, so that the digest stays the same
    fill_capped: bool | msgspec.UnsetType = msgspec.UNSET
    # unset, so that the digest stays the same
    memory: str | msgspec.UnsetType = msgspec.UNSET
    cores: Annotated[int, msgspec.Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET

    @property
    def machine(self) -> bool:
        """Return whether the disks are those of a machine that the lab boots, then the host."""
        return self.lab != "loop"


class StackTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[stack]``: the host, the server and the device under test.

    The load runs on `host` too unless `load` names another; `address` is then the server's address
    for the load, if it differs from that of `host`.  `servers` names further programs, by basedir,
    for treatments with ``server.build``; ``existing:FILE`` is a running server that is not ours,
    reached by a client option file of the host.  `data` is the existing data directory of a stopped
    server: each data set starts as a copy of it.  With `replica`, one follows the server.
    """

    host: str = "local"
    load: str = ""
    address: str = ""
    server: str = "auto"
    servers: dict[str, str] = {}
    device: str | DeviceTable = "here"
    data: str = ""
    # unset, so that the digest stays the same
    replica: bool | msgspec.UnsetType = msgspec.UNSET

    @property
    def replicated(self) -> bool:
        """Return whether a replica follows the server."""
        return self.replica is True


class DesignTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[design]``: what is compared in which order, and when to stop."""

    kind: str = "auto"
    rungs: list[str] = []
    blocks: int | None = None
    budget: str | None = None
    seed: int = 1
    cells: Annotated[int, msgspec.Meta(ge=1)] | None = None
    soak: str | None = None
    # the doses of a diagnosis; unset, so that the digest of a spec without them stays the same
    doses: list[str] | msgspec.UnsetType = msgspec.UNSET


class ProtocolTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[protocol]``: how one trial is run; ``kind`` is fixed where a length is given."""

    kind: str = ""
    warmup_s: float | None = None
    window_s: float | None = None
    bias: float | None = None
    blocks: int | None = None
    reset: str = "dataset"
    preload: bool = True


class DecideTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[decide]``: response, baseline and margins; margins are ratios (0.03 = 3 %).

    `direction` is whether higher or lower is better, for a `response` unknown to mydyno.
    """

    response: str | None = None
    # unset rather than None, so that the digest of a spec without it stays the same
    direction: Literal["higher", "lower"] | msgspec.UnsetType = msgspec.UNSET
    margin: FromZero = 0.03
    guards: dict[str, FromZero] | None = None
    baseline: str | None = None
    durability: str = "same"


class RecipeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``[recipe]``: description of a recipe.

    `time` and `small` stand in the specs of older run directories; both are computed.
    """

    time: str = ""
    small: str = ""
    needs: list[str] = []
    touches: str = ""
    page: str = ""


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A complete spec as written; `common`, `bundles` and `treatments` may contain ``when`` tables.

    `common` has the settings that every treatment has beside its own, which come first.  `scale`
    holds, by the name of a size, overrides as ``--set`` takes them.
    """

    campaign: CampaignTable = CampaignTable()
    recipe: RecipeTable = RecipeTable()
    scale: dict[str, dict[str, Any]] = {}
    stack: StackTable = StackTable()
    bundles: dict[str, dict[str, Any]] = {}
    factors: dict[str, list[Scalar]] = {}
    treatments: dict[str, dict[str, Any]] = {}
    workloads: dict[str, dict[str, Any]] = {}
    design: DesignTable = DesignTable()
    protocol: ProtocolTable = ProtocolTable()
    decide: DecideTable = DecideTable()
    # unset, so that the digest of a spec without it stays the same
    common: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


def decode(text: str, place: str, overrides: Mapping[str, str] | None = None) -> Spec:
    """Return the spec in `text`; raise `SpecError` naming `place`, the line and the nearest key.

    `overrides` maps dotted paths (``design.blocks``) to TOML values, as ``--set`` gives them.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{place}: not TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SpecError(f"{place}: {_beyond(error)}") from error
    for path, value in (overrides or {}).items():
        _override(tables, path, value)
    check_numbers(tables, place, text)
    spec = convert(tables, Spec, place, text)
    if wrong := next(_misshapen(spec), None):
        raise SpecError(located(f"{place}: {wrong}", place, text))
    return spec


def _misshapen(spec: Spec) -> Iterator[str]:
    """Yield the errors in the tables that hold values of any type."""
    tables = {"common": dict(spec.common or {})}
    for part, named in (("treatments", spec.treatments), ("bundles", spec.bundles)):
        tables |= {f"{part}.{name}": table for name, table in named.items()}
    for path, table in tables.items():
        when = table.get("when", {})
        if not isinstance(when, dict) or not all(isinstance(t, dict) for t in when.values()):
            yield f'{path}.when: needs a table of settings; write [{path}.when."mysql >= 8"]'
        given = [pair for of in (table, *when.values()) for pair in of.items()]
        for key in (key for key, value in given if isinstance(value, dict) and key != "when"):
            yield f"{path}.{key}: {_UNQUOTED}"
    for name, table in spec.workloads.items():
        for key in ("tool", "response", "direction"):
            if not isinstance(value := table.get(key, ""), str):
                yield f"workloads.{name}.{key}: {value!r}: must be text; write a name in quotes"


def check_numbers(tables: Mapping[str, Any], place: str, text: str = "") -> None:
    """Raise `SpecError` for a number anywhere in `tables` that no computation can use.

    Those are nan, inf, and integers that need more than 64 bits.
    """
    for path, value in _leaves(tables):
        if isinstance(value, float) and not isfinite(value):
            what = f"{value} is not a finite number"
        elif isinstance(value, int) and abs(value) > _LARGEST:
            what = f"a number of {value.bit_length()} bits is too large"
        else:
            continue
        raise SpecError(
            f"{place}{_line(text, path)}: {path}: {what}; write another, or remove the key"
        )


def _leaves(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield each value that is no table and no list, with its dotted path."""
    left: list[tuple[str, Any]] = [("", tables)]
    while left:
        path, value = left.pop()
        if isinstance(value, Mapping):
            left += [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]
        elif isinstance(value, list):
            left += [(path, each) for each in value]
        else:
            yield path, value


def _beyond(error: Exception) -> str:
    """Return the problem of TOML that exceeds the parser's limits."""
    if isinstance(error, RecursionError):
        return "lists or tables are nested too deeply; reduce the nesting"
    return "a number has thousands of digits; write a shorter one"


def convert(tables: Mapping[str, Any], kind: type[T], place: str, text: str, at: str = "") -> T:
    """Return `tables` as `kind`; errors name the line of the key in `text`."""
    try:
        return msgspec.convert(tables, kind)
    except msgspec.ValidationError as error:
        raise SpecError(explain(str(error), kind, place, text, at)) from error


def explain(reason: str, kind: type, place: str, text: str, at: str) -> str:
    """Return the message for a decoding error: place and line, key, reason, nearest key."""
    found = re.search(r" - at `\$\.?(.*)`$", reason)
    path = ".".join(p for p in (at, found[1] if found else "") if p)
    core = reason[: found.start()] if found else reason
    unknown = re.search(r"unknown field `(.+)`", core)
    if unknown:
        path = ".".join(p for p in (path, unknown[1]) if p)
        known = _fields(kind, found[1] if found else "")
        core = unknown_value(unknown[1], known, "key", listed=False)
    elif re.search(r"Expected `\w+` (>|<)", core):
        core += "; write such a number"
    elif path == "factors[...]" and core.endswith("got `object`"):
        path, core = "factors", f"one {_UNQUOTED}"
    return f"{place}{_line(text, path)}: {path}: {core}"


def _fields(kind: Any, path: str) -> list[str]:  # noqa: ANN401 - a msgspec type of any shape
    """Return the keys known at `path` below `kind`."""
    for part in filter(None, path.split(".")):
        field = next((f for f in msgspec.structs.fields(kind) if f.encode_name == part), None)
        if field is None:
            return []
        options = getattr(field.type, "__args__", (field.type,))
        kind = next((o for o in options if hasattr(o, "__struct_fields__")), None)
        if kind is None:
            return []
    return [f.encode_name for f in msgspec.structs.fields(kind)]


def _line(text: str, path: str) -> str:
    """Return ``:LINE`` of the key `path` in the TOML `text`, or of the table it belongs to."""
    parts = path.split(".")
    table, wanted = "", ""
    best = 0
    for number, raw in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[+\s*([^\]]+?)\s*\]", raw)
        if header:
            table = header[1].replace('"', "")
            if path == table or path.startswith(table + "."):
                best, wanted = number, path[len(table) :].lstrip(".")
            continue
        key = re.match(r'\s*"?([^"=]+?)"?\s*=', raw)
        inside = wanted or ".".join(parts)
        if key and path.startswith(table) and inside.split("=")[0].strip() == key[1]:
            return f":{number}"
        if key and path.startswith(f"{table}.{key[1]}."):
            best = number
    return f":{best}" if best else ""


def located(reason: str, place: str, text: str) -> str:
    """Return the error for `place` with the line of the longest key that it names."""
    message = reason.removeprefix(place)
    for word in sorted(re.findall(r"[\w/+-]+(?:\.[\w/+-]+)+", message), key=len, reverse=True):
        if found := re.search(rf'^\s*"?{re.escape(word)}"?\s*=', text, re.MULTILINE):
            return f"{place}:{text.count(chr(10), 0, found.end()) + 1}{message}"
        if line := _line(text, word):
            return f"{place}{line}{message}"
    return reason


def scaled(text: str, place: str, name: str) -> dict[str, str]:
    """Return the overrides of a size, as ``--set`` would give them; raise `SpecError`."""
    sizes = decode(text, place).scale
    if name not in sizes:
        problem = unknown_value(name, sizes, "size") if sizes else "the spec has no [scale.NAME]"
        raise SpecError(f"{place}: --scale: {problem}")
    return {path: toml(value) for path, value in sizes[name].items()}


def toml(value: Any) -> str:  # noqa: ANN401 - any value of a spec
    """Return a value as TOML in one line."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml(str(k))} = {toml(v)}" for k, v in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    # a string of TOML differs from JSON's in one character only
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _override(tables: dict[str, Any], path: str, value: str) -> None:
    """Set the dotted `path` in `tables` to a TOML value; a bare word is taken as a string.

    A key that is there and has dots itself (``factors.block.scheduler``) is found; ``false``
    removes an entire table.
    """
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    except (ValueError, RecursionError) as error:
        raise SpecError(f"--set {path}: {_beyond(error)}") from error
    *outer, last = _parts(path, tables)
    for part in outer:
        tables = tables.setdefault(part, {})
        if not isinstance(tables, dict):
            raise SpecError(f"--set {path}: {part} is a value, not a table")
    if parsed is False and isinstance(tables.get(last), dict):
        del tables[last]
    else:
        tables[last] = parsed


def _parts(path: str, tables: Mapping[str, Any]) -> list[str]:
    """Return the keys along `path`, of which the last one may have dots, quoted as in TOML or not.

    A setting has them (``treatments.pool.mysqld.max_connections``), and what a table holds.
    """
    parts = _quoted(path) if '"' in path else path.split(".")
    below = _SETTINGS.get(parts[0], len(parts))
    below += 2 if parts[below : below + 1] == ["when"] else 0  # a condition, then settings
    for depth in range(len(parts)):
        rest = ".".join(parts[depth:])
        if rest in tables or depth == below:
            return [*parts[:depth], rest]
        tables = tables.get(parts[depth], {})
        if not isinstance(tables, Mapping):
            break
    return parts


def _quoted(path: str) -> list[str]:
    """Return the keys of a dotted path as TOML reads it; raise `SpecError`."""
    try:
        inner, parts = tomllib.loads(f"{path} = 0"), list[str]()
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"--set {path}: not a key; write design.blocks=5") from error
    while isinstance(inner, dict):
        key, inner = next(iter(inner.items()))
        parts.append(key)
    return parts


# below how many keys settings stand
_SETTINGS = {"common": 1, "factors": 1, "treatments": 2, "bundles": 2, "scale": 2}

EXISTING = "existing:"  # of stack.server, before a client option file on the host
KEY = "server.build"
SETTING = f"db/{KEY}"


def program_of(settings: Settings, stack: StackTable) -> str:
    """Return the program of a treatment as ``[stack]`` writes it: ``auto`` or a basedir."""
    named = settings.get(SETTING, stack.server)
    return stack.servers.get(named, named)


def program_in(table: Mapping[str, Any], stack: StackTable) -> str:
    """Return the program that a treatment's or a bundle's table asks for."""
    named = table.get(KEY, table.get(SETTING))
    return program_of({} if named is None else {SETTING: str(named)}, stack)


def programs(spec: Spec, place: str, text: str) -> tuple[str, ...]:
    """Return every program of a spec, its own first; raise `SpecError` for an unknown name."""
    if spec.stack.server == "none" or spec.stack.server.startswith(EXISTING):
        return ()
    levels = [{KEY: level} for key in (KEY, SETTING) for level in spec.factors.get(key, ())]
    tables = (*spec.treatments.values(), *spec.bundles.values(), *levels)
    found = dict.fromkeys(
        (program_of({}, spec.stack), *(program_in(t, spec.stack) for t in tables))
    )
    if wrong := _wrong(spec, tables, found):
        raise SpecError(located(f"{place}: {wrong}", place, text))
    return tuple(found)


def _wrong(spec: Spec, tables: Iterable[Mapping[str, Any]], found: Iterable[str]) -> str:
    """Return the error in the servers of a spec, or an empty string."""
    if {KEY, SETTING} & dict(spec.common or {}).keys():
        return f"common: {KEY}: all treatments would have it; set stack.server instead"
    conditions = [values for table in tables for values in table.get("when", {}).values()]
    if any({KEY, SETTING} & values.keys() for values in conditions):
        return (
            f"{KEY}: a condition (when) depends on the server and cannot choose it; remove it there"
        )
    for name, basedir in spec.stack.servers.items():
        if not basedir and basedir in found:
            return (
                f"stack.servers.{name}: no basedir; set it here or with "
                f"--set stack.servers.{name}=/opt/mysql-8.0"
            )
    for name in found:
        if name != "auto" and "/" not in name:
            known = ", ".join(("auto", *spec.stack.servers))
            return (
                f"{KEY}: unknown server {name!r}; known: {known}; name a basedir, or add "
                f'{name} = "/opt/..." to the servers of [stack]'
            )
    return ""
