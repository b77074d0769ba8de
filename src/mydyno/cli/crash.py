"""`mydyno lab crash-test`: what each treatment of a spec loses in a power cut."""

from pathlib import Path
from typing import Annotated

import typer

from mydyno.campaign.plan import Resolved
from mydyno.campaign.spec import DeviceTable
from mydyno.cli.benches import resolved_spec
from mydyno.cli.narrow import narrowed_source, own_settings
from mydyno.cli.recipes import SpecSource, find, overrides
from mydyno.cli.report import write
from mydyno.cli.run import Output, execute
from mydyno.cli.run_directory import RUNS, losses_of
from mydyno.cli.terminal import (
    Allow,
    Json,
    Scale,
    Set,
    SpecName,
    print_message,
    print_result,
    width,
)
from mydyno.model import SpecError, unknown_value
from mydyno.report.crash import render_losses

CUTS, THREADS = 10, 8
Cuts = Annotated[
    int | None,
    typer.Option(help="Power cuts of each treatment; else the spec's blocks, or 10.", min=1),
]
Threads = Annotated[int, typer.Option(help="Connections that commit.", min=1, max=1000)]
Chosen = Annotated[
    list[str] | None,
    typer.Option(
        "--treatment",
        "-t",
        metavar="NAME",
        help="This one, others given so, and the baseline; else all.",
    ),
]


def crash_test(  # noqa: PLR0913 - one parameter an option
    spec: SpecName,
    *,
    cuts: Cuts = None,
    treatment: Chosen = None,
    threads: Threads = THREADS,
    output: Output = None,
    settings: Set = None,
    scale: Scale = None,
    allow: Allow = None,
    json: Json = False,
) -> None:
    """Cut the power of a spec's lab disk under commits, and show what each treatment lost."""
    source = find(spec, overrides(settings, None), scale)
    folder = output or RUNS / f"{Path(source.place).stem}-crash"
    made = crash_source(source, folder, treatment, cuts, threads)
    shown = execute(made, folder, allow or [])
    found = losses_of(shown)
    print_result(found, lambda: "\n" + render_losses(found, width()), json=json)
    print_message(f"\nreport: {write(shown)}")


def crash_source(
    source: SpecSource,
    folder: Path,
    chosen: list[str] | None = None,
    cuts: int | None = None,
    threads: int = THREADS,
) -> SpecSource:
    """Return a spec's crash test for a run in `folder`; raise `SpecError` if it can have none."""
    decoded = source.decode()
    device = decoded.stack.device
    if not isinstance(device, DeviceTable) or device.machine or decoded.stack.server == "none":
        raise SpecError(
            f"{source.place}: stack.device: a crash test needs a server on a lab disk, "
            '{ lab = "loop" }'
        )
    _, named = resolved_spec(source, folder)
    of_spec = decoded.design.blocks if decoded.design.kind == "crash" else None
    blocks = cuts or of_spec or CUTS
    treatments = _chosen(named, chosen or list(named.treatments))
    return narrowed_source(
        source,
        {
            "treatments": treatments,
            "workloads": {"ledger": {"tool": "ledger", "threads": threads}},
            "design": {"kind": "crash", "blocks": blocks, "seed": decoded.design.seed},
            "protocol": {"preload": False},
            "decide": {"baseline": named.baseline, "guards": {}},
        },
    )


def _chosen(named: Resolved, chosen: list[str]) -> dict[str, dict[str, str]]:
    """Return the settings of the baseline and the chosen treatments, as a spec writes them.

    Durability is that beside the baseline, which is therefore never left out.
    """
    for name in chosen:
        if name not in named.treatments:
            raise SpecError(unknown_value(name, named.treatments, "treatment"))
    names = dict.fromkeys((named.baseline, *chosen))
    return {name: own_settings(named, name) for name in names}
