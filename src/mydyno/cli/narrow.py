"""A spec narrowed to what is diagnosed, cut off from power, or compared with one more setting."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from mydyno.campaign.plan import Resolved, name_of
from mydyno.campaign.spec import Spec, toml
from mydyno.cli.benches import resolved_spec
from mydyno.cli.recipes import SpecSource, overrides
from mydyno.cli.run_directory import RUNS
from mydyno.model import SpecError, unknown_value
from mydyno.stack.protocol import spec_key

TRY = "TRY"  # the treatment with the settings that are tried
Treatment = Annotated[
    str | None,
    typer.Option(
        "--treatment",
        "-t",
        metavar="NAME",
        help="Which treatment; else the only one, or the baseline.",
    ),
]
TriedWith = Annotated[
    str | None,
    typer.Option(
        "--treatment",
        "-t",
        metavar="NAME",
        help="With --try: the treatment that gets the setting; else the baseline.",
    ),
]
Try = Annotated[
    list[str] | None,
    typer.Option(
        "--try",
        metavar="KEY=VALUE",
        help="Compare a treatment with itself and this setting: mysqld.sync_binlog=0.",
    ),
]


def chosen(spec: Spec, named: Resolved, treatment: str | None) -> str:
    """Return the treatment that is meant; raise `SpecError` for an unknown one."""
    only_one = next(iter(spec.treatments)) if len(spec.treatments) == 1 else named.baseline
    name = treatment or spec.decide.baseline or only_one
    if name not in named.treatments:
        raise SpecError(unknown_value(name, named.treatments, "treatment"))
    return name


def own_settings(named: Resolved, treatment: str) -> dict[str, str]:
    """Return the settings of a treatment as a spec writes them."""
    return {spec_key(key): value for key, value in named.treatments[treatment].items()}


def tried(
    source: SpecSource,
    treatment: str | None,
    settings: Sequence[str] | None,
    folder: Path | None = None,
) -> SpecSource:
    """Return the comparison of one treatment with itself and these settings, if there are some.

    It is run in `folder`, by default in one below `RUNS` that has its name.
    """
    if not settings:
        if treatment:
            raise SpecError("--treatment needs --try KEY=VALUE; add it, or leave --treatment out")
        return source
    title = f"{name_of(source.decode(), source.place)}-try"
    spec, named = resolved_spec(source, folder or RUNS / title)
    name = chosen(spec, named, treatment)
    own = own_settings(named, name)
    design = {key: getattr(spec.design, key) for key in ("seed", "budget", "blocks")}
    tables = {
        "campaign.name": title,
        "treatments": {name: own, TRY: {**own, **overrides([*settings], None, "--try")}},
        "design": {key: value for key, value in design.items() if value is not None},
        "decide.baseline": name,
    }
    return narrowed_source(source, tables)


def narrowed_source(source: SpecSource, tables: Mapping[str, Any]) -> SpecSource:
    """Return a spec with these tables in place of its own, without factors, bundles and scales."""
    spec = source.decode()
    found = {name: toml(table) for name, table in tables.items()}
    found |= {part: "{}" for part in ("factors", "bundles", "scale") if getattr(spec, part)}
    return SpecSource(source.text, source.place, {**source.overrides, **found})
