"""What is compared: bundles on rungs, factors in a grid, or plain treatments, as settings."""

import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from mydyno.campaign.spec import DeviceTable, Spec, program_in
from mydyno.lab import Stripe
from mydyno.lab.values import RAID_KEYS, check_stripe
from mydyno.model import Settings, SpecError, unknown_value
from mydyno.model.text import resolve, size_bytes
from mydyno.stack.doses import CLASS, CREDITS, credit_level, ratio
from mydyno.stack.flavours import matches
from mydyno.stack.layers import layers
from mydyno.stack.protocol import StackSettings, full_key, spec_key
from mydyno.stack.zfs import with_log_folder


def stripe_of(device: str | DeviceTable, settings: StackSettings, place: str = "") -> Stripe:
    """Return the stripe of a treatment on a device; raise `SpecError` for an invalid one."""
    wanted = settings.of("raid")
    if not isinstance(device, DeviceTable) or device.lab != "loop":
        return Stripe()  # a virtual machine has md, which is a layer
    for key in wanted:
        if key not in RAID_KEYS:
            raise SpecError(f"{place}{unknown_value(key, RAID_KEYS, 'setting', prefix='raid.')}")
    if wanted.get("level", "0").removeprefix("raid") != "0":
        raise SpecError(
            f'{place}raid.level: {wanted["level"]}: a loop lab has level 0; use lab = "vm"'
        )
    count = wanted.get("devices", str(device.disks))
    if not count.isdecimal():
        raise SpecError(f"{place}raid.devices: {count!r}: must be a number of disks")
    chunk = size_bytes(wanted.get("chunk", device.chunk), f"{place}raid.chunk")
    stripe = Stripe(int(count), chunk)
    check_stripe(stripe, f"{place}raid")
    return stripe


def credits_of(device: str | DeviceTable, settings: StackSettings) -> float:
    """Return the share of a full bucket that each load of a treatment begins with, on lab disks.

    The lab refuses a table's level that is none.
    """
    if not isinstance(device, DeviceTable):
        return 0.0
    own = settings.of("disk").get(CREDITS)
    if own is not None:
        return ratio(credit_level(own))
    with suppress(SpecError):
        return ratio(credit_level(str(device.credits)))
    return 0.0


def disk_class_of(device: str | DeviceTable, settings: StackSettings) -> str:
    """Return the class of a treatment's lab disks, ``""`` for none."""
    if not isinstance(device, DeviceTable):
        return ""
    return settings.of("disk").get(CLASS, device.disk_class)


ROLES = ("db", "load")
STOCK = "STOCK"


@dataclass(frozen=True, slots=True)
class Environment:
    """What values and conditions are resolved against: the host's size, server flavour and version.

    `servers` holds flavour and version of every program that a treatment may name.
    """

    memory_bytes: int
    cores: int
    flavour: str = ""
    version: tuple[int, ...] = ()
    schedulers: tuple[str, ...] = ()
    servers: Mapping[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)

    def on(self, program: str) -> "Environment":
        """Return the environment of a treatment that runs on this server program."""
        flavour, version = self.servers.get(program, (self.flavour, self.version))
        return replace(self, flavour=flavour, version=version)


Cells = Mapping[str, dict[str, Any]]
Select = Callable[[Spec, str, Callable[[], Cells]], Cells]


def treatments_of(
    spec: Spec, place: str, environment: Environment, select: Select
) -> dict[str, Settings]:
    """Return the settings of each treatment by name; raise `SpecError` naming the key at fault.

    `select` returns which cells of the factors' grid are treatments.
    """
    given = [n for n in ("treatments", "factors") if getattr(spec, n)]
    given += ["bundles with rungs"] if spec.design.rungs else []
    if len(given) != 1:
        what = " and ".join(given) or "nothing"
        raise SpecError(
            f"{place}: {what} to compare; give exactly one of [treatments.NAME], [factors], "
            "or [bundles.NAME] with [design] rungs"
        )
    if spec.treatments:
        raw: Cells = {
            n: _merged(t, f"{place}: treatments.{n}", environment.on(program_in(t, spec.stack)))
            for n, t in spec.treatments.items()
        }
    elif spec.factors:
        raw = select(spec, place, lambda: _grid(spec, environment))
    else:
        raw = _bundled(rungs_of(spec, place), spec, place, environment)
    return {
        name: _with_common(own, spec, f"{place}: {name}", environment) for name, own in raw.items()
    }


def stock(spec: Spec, place: str, environment: Environment) -> Settings:
    """Return the settings of a baseline that is no treatment: those that all have."""
    return _with_common({}, spec, f"{place}: {STOCK}", environment)


def _with_common(
    own: Mapping[str, Any], spec: Spec, place: str, environment: Environment
) -> Settings:
    there = environment.on(program_in(own, spec.stack))
    common = _merged(spec.common or {}, f"{place}: common", there)
    return _settings({**common, **own}, place, environment)


def rungs_of(spec: Spec, place: str) -> dict[str, tuple[str, ...]]:
    """Return the bundles on each rung: one, a sum of them (``A+B``), ALL of them, or none.

    A rung named again is another treatment of the same settings: ``STOCK-2`` shows the noise.
    """
    rungs: dict[str, tuple[str, ...]] = {}
    for rung in spec.design.rungs:
        parts = [] if rung == STOCK else rung.split("+")
        if rung == "ALL" and rung not in spec.bundles:
            parts = list(spec.bundles)
        unknown = [part for part in parts if part not in spec.bundles]
        if unknown:
            raise SpecError(
                f"{place}: design.rungs: {rung}: "
                f"{unknown_value(unknown[0], spec.bundles, 'bundle')}"
            )
        again = sum(1 for name in rungs if name == rung or name.startswith(f"{rung}-"))
        rungs[f"{rung}-{again + 1}" if again else rung] = tuple(parts)
    return rungs


def less_of(rungs: Mapping[str, tuple[str, ...]]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return, for each rung of several bundles, what it is without each of them, by name.

    Where that is a rung already, it is that rung.
    """
    known: dict[frozenset[str], str] = {}
    for name, parts in rungs.items():
        known.setdefault(frozenset(parts), name)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for rung, parts in rungs.items():
        for part in parts if len(parts) > 1 else ():
            left = tuple(p for p in parts if p != part)
            name = known.get(frozenset(left), "+".join(left))
            found.setdefault(rung, {})[name] = left
    return found


def spare_of(spec: Spec, place: str, environment: Environment) -> dict[str, Settings]:
    """Return the settings of what rungs are without one of their bundles, and no rung itself."""
    rungs = rungs_of(spec, place)
    spare = {name: parts for less in less_of(rungs).values() for name, parts in less.items()}
    merged = _bundled({n: p for n, p in spare.items() if n not in rungs}, spec, place, environment)
    return {
        name: _with_common(values, spec, f"{place}: {name}", environment)
        for name, values in merged.items()
    }


def _bundled(
    rungs: Mapping[str, tuple[str, ...]], spec: Spec, place: str, environment: Environment
) -> dict[str, dict[str, Any]]:
    """Return the settings of each rung: those of its bundles, later ones over earlier ones.

    One of them may bring another server, for which the conditions of the others hold or not.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, parts in rungs.items():
        plain = {key: value for part in parts for key, value in spec.bundles[part].items()}
        there = environment.on(program_in(plain, spec.stack))
        bundles = {n: _merged(t, f"{place}: bundles.{n}", there) for n, t in spec.bundles.items()}
        found[name] = {key: value for part in parts for key, value in bundles[part].items()}
    return found


def _grid(spec: Spec, environment: Environment) -> dict[str, dict[str, Any]]:
    """Return every combination of the factors' levels; ``*`` means each scheduler there is."""
    keys = list(spec.factors)
    every = [
        environment.schedulers if levels == ["*"] and key.endswith("block.scheduler") else levels
        for key, levels in spec.factors.items()
    ]
    return {
        ",".join(f"{k.rsplit('.', 1)[-1]}={v}" for k, v in zip(keys, levels, strict=True)): dict(
            zip(keys, levels, strict=True)
        )
        for levels in itertools.product(*every)
    }


def first_of(spec: Spec, place: str, environment: Environment) -> Settings:
    """Return the first level of each factor, as a treatment has it."""
    first = next(iter(_grid(spec, environment).values()), {})
    return _with_common(first, spec, place, environment)


def levels_of(settings: Mapping[str, str], spec: Spec) -> dict[str, str]:
    """Return what settings have of the spec's factors, in their order, by the keys of a spec."""
    mine = {spec_key(key): value for key, value in settings.items()}
    return {key: mine[key] for key in map(spec_key, spec.factors) if key in mine}


def numbered(cells: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[int, ...]]:
    """Return each cell's levels, numbered by factor, by its treatment's name."""
    columns = zip(*(cell.values() for cell in cells.values()), strict=True)
    known = [list(dict.fromkeys(levels)) for levels in columns]
    return {
        name: tuple(of.index(value) for of, value in zip(known, cell.values(), strict=True))
        for name, cell in cells.items()
    }


def _merged(table: Mapping[str, Any], place: str, environment: Environment) -> dict[str, Any]:
    """Return a table with every ``when`` whose condition is true merged in."""
    merged = {key: value for key, value in table.items() if key != "when"}
    for condition, values in table.get("when", {}).items():
        try:
            holds = matches(condition, environment.flavour, environment.version)
        except SpecError as error:
            raise SpecError(f"{place}.when: {error}") from error
        merged |= values if holds else {}
    return merged


def _settings(values: Mapping[str, Any], place: str, environment: Environment) -> Settings:
    """Return settings with full keys and text values; relative values are resolved."""
    settings: dict[str, str] = {}
    for key, value in values.items():
        if not isinstance(value, str | int | float | bool):
            raise SpecError(
                f"{place}: {key}: {value!r} is not a valid value; write text or a number"
            )
        role, _, rest = key.rpartition("/")
        role = role or "db"
        layer, dot, name = rest.partition(".")
        if role not in ROLES:
            raise SpecError(f"{place}: {key}: {unknown_value(role, ROLES, 'role')}")
        if layer not in layers() or not dot or not name:
            raise SpecError(f"{place}: {key}: {unknown_value(layer, sorted(layers()), 'layer')}")
        kind = layers()[layer]
        if kind.keys and name not in kind.keys:
            known = unknown_value(name, kind.keys, "setting", prefix=f"{layer}.")
            raise SpecError(f"{place}: {key}: {known}")
        if role not in kind.roles:
            known = "only load/env.NAME and load/cpus.allowed can be set for the load tool"
            raise SpecError(f"{place}: {key}: {known}")
        text = str(int(value)) if isinstance(value, bool) else str(value)
        # A share of a link is one of a load's traffic, measured later; a server's is a path.
        if not kind.literal:
            text = resolve(text, memory_bytes=environment.memory_bytes, cores=environment.cores)
        settings[full_key(layer, name, role)] = text
    return with_log_folder(settings, place)
