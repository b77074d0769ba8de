"""A layer: the dice of a host, which have any even number of sides."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError, unknown_value
from mydyno.stack.layers import LayerKind, Scope

KEYS = ("sides",)


@dataclass(frozen=True, slots=True)
class Dice:
    """Key `dice.sides`."""

    name: str = "dice"
    owned: bool = False
    at: str = ""

    def observe(self) -> Probe[Settings]:
        return Probe(Action(("get",)), lambda raw: dict(json.loads(raw)))

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        for key, value in want.items():
            if key not in KEYS:
                raise SpecError(unknown_value(key, KEYS, "setting", prefix="dice."))
            if not value.isdecimal() or int(value) % 2:
                raise SpecError(f"dice.sides = {value!r}: must be an even number")
        return [
            Change(key, now.get(key, ""), value, Action(("set", key, value)))
            for key, value in want.items()
            if now.get(key) != value
        ]

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        return self.plan(now, first)


LAYER = LayerKind(Scope.HOST, lambda _: Cost.ONLINE, lambda _: Dice())
