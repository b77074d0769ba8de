"""`mydyno recipes`: the campaigns that ship with mydyno; a spec found by recipe or by file."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.plan import Campaign, plan
from mydyno.campaign.spec import Spec, decode, scaled
from mydyno.campaign.timing import Costs, schedule
from mydyno.campaign.treatments import Environment
from mydyno.cli.terminal import Json, print_result, recipe_names
from mydyno.model import SpecError, unknown_value
from mydyno.report.units import duration

Name = Annotated[
    str | None,
    typer.Argument(
        help="Print its spec, as a start for your own.",
        metavar="NAME",
        autocompletion=recipe_names,
    ),
]


def recipes(name: Name = None, *, json: Json = False) -> None:
    """List the shipped campaigns: question, time, requirements, and what they change."""
    if name and json:
        raise SpecError(f"{name}: a recipe is printed as TOML; leave out --json, or the name")
    if name:
        sys.stdout.write(find(name, {}).text)
        return
    rows = [_row(name, decode(text, f"{name}.toml")) for name, text in shipped().items()]
    width = max(len(row.name) for row in rows)
    print_result(rows, lambda: "\n".join(_lines(row, width) for row in rows), json=json)


class RecipeRow(msgspec.Struct, frozen=True):
    """A campaign that ships with mydyno: what it asks, takes, needs and changes; its sizes.

    `time` and `scales` are what `plan` expects its trials to take on a host of two cores, at full
    size and at each scale; making the data is not part of it.
    """

    name: str
    question: str
    time: str
    scales: dict[str, str]
    needs: list[str]
    touches: str
    page: str


def _row(name: str, spec: Spec) -> RecipeRow:
    of, scales = spec.recipe, {scale: _time(name, scale) for scale in sorted(spec.scale)}
    return RecipeRow(
        name, spec.campaign.question, _time(name), scales, of.needs, of.touches, of.page
    )


def _lines(of: RecipeRow, width: int) -> str:
    times = [f"{of.time} of trials"]
    times += [f"{time} with --scale {name}" for name, time in of.scales.items()]
    rows = {"time": ", ".join(times), "needs": ", ".join(of.needs), "touches": of.touches}
    lines = [f"  {what:<8} {text}\n" for what, text in rows.items() if text]
    return f"{of.name:<{width}}  {of.question}\n{''.join(lines)}"


# What the times of recipes are for; a plan on a host has its own figures.
_USUAL = Environment(8 << 30, 2, "mariadb", (10, 11, 6), ("none", "mq-deadline", "bfq", "kyber"))


def _time(name: str, scale: str | None = None) -> str:
    """Return what the trials of a recipe take, as `plan` expects it of a usual host."""
    servers = find(name, {}).decode().stack.servers
    unnamed = {f"stack.servers.{key}": '"/opt"' for key, folder in servers.items() if not folder}
    campaign = find(name, unnamed, scale).plan(_USUAL)
    found = schedule(campaign, Costs(prepare_s=0.0), shown=False)
    return duration(found.expected_s) if found.expected_s else "unknown"


@dataclass(frozen=True, slots=True)
class SpecSource:
    """A spec's text, where it came from, and what the command line changed in it."""

    text: str
    place: str
    overrides: Mapping[str, str]

    def decode(self) -> Spec:
        """Return the spec, overrides included."""
        return decode(self.text, self.place, self.overrides)

    def plan(self, ground: Environment, *, stored: bool = False) -> Campaign:
        """Return the campaign for this environment; `stored`: from a run directory."""
        return plan(self.decode(), self.text, self.place, ground, stored=stored)


def shipped() -> dict[str, str]:
    """Return the shipped recipes' texts by name."""
    entries = {e.name.removesuffix(".toml"): e for e in resources.files("mydyno.recipes").iterdir()}
    return {name: e.read_text() for name, e in sorted(entries.items()) if e.name != name}


def overrides(given: list[str] | None, budget: str | None, option: str = "--set") -> dict[str, str]:
    """Return ``--set`` and ``--budget`` as dotted paths of the spec and their TOML values."""
    found: dict[str, str] = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            example = "design.blocks=5" if option == "--set" else "mysqld.sync_binlog=0"
            raise SpecError(f"{option} {item}: write KEY=VALUE, such as {example}")
        found[key.strip()] = value.strip()
    if budget:
        found["design.budget"] = f'"{budget}"'
    return found


def find(name: str, overrides: Mapping[str, str], scale: str | None = None) -> SpecSource:
    """Return the spec of a file or a recipe, at a size; raise `SpecError`.

    `overrides` take precedence over the size.
    """
    text, place = _text(name)
    size = scaled(text, place, scale) if scale else {}
    return SpecSource(text, place, {**size, **overrides})


def _text(name: str) -> tuple[str, str]:
    """Return a spec's text and its place; the error names the nearest recipe."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except OSError as error:
            raise SpecError(f"{path}: {error.strerror}; name a spec or a recipe") from error
        except UnicodeDecodeError as error:
            raise SpecError(f"{path}: not a text file: {error.reason}") from error
    known = shipped()
    if name in known:
        return known[name], f"{name}.toml"
    raise SpecError(unknown_value(name, known, "file or recipe"))
