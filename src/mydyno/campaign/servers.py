"""Which server program each treatment runs on: the spec's own, or the one `server.build` names."""

from collections.abc import Iterable, Mapping
from typing import Any

from mydyno.campaign.spec import Spec, StackTable, located
from mydyno.model import Settings, SpecError

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
    if spec.stack.server == "none":
        return ()
    levels = [{KEY: level} for key in (KEY, SETTING) for level in spec.factors.get(key, ())]
    tables = (*spec.treatments.values(), *spec.bundles.values(), *levels)
    found = dict.fromkeys(
        (program_of({}, spec.stack), *(program_in(t, spec.stack) for t in tables))
    )
    if wrong := _wrong(spec.stack, tables, found):
        raise SpecError(located(f"{place}: {wrong}", place, text))
    return tuple(found)


def _wrong(stack: StackTable, tables: Iterable[Mapping[str, Any]], found: Iterable[str]) -> str:
    """Return the error in the servers of a spec, or an empty string."""
    conditions = [values for table in tables for values in table.get("when", {}).values()]
    if any({KEY, SETTING} & values.keys() for values in conditions):
        return (
            f"{KEY}: a condition (when) depends on the server and cannot choose it; remove it there"
        )
    for name, basedir in stack.servers.items():
        if not basedir and basedir in found:
            return (
                f"stack.servers.{name}: no basedir; set it here or with "
                f"--set stack.servers.{name}=/opt/mysql-8.0"
            )
    for name in found:
        if name != "auto" and "/" not in name:
            known = ", ".join(("auto", *stack.servers))
            return (
                f"{KEY}: unknown server {name!r}; known: {known}; name a basedir, or add "
                f'{name} = "/opt/..." to the servers of [stack]'
            )
    return ""
