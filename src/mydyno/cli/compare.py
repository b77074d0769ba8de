"""`mydyno compare`: the verdicts of a campaign."""

import sys
from typing import Annotated

import typer

from mydyno.campaign.doses import DIAGNOSE
from mydyno.cli.run_directory import losses_of, opened, result
from mydyno.cli.terminal import Dir, Json, print_json, width
from mydyno.model import SpecError
from mydyno.report.crash import render_losses
from mydyno.report.text import render_csv, render_markdown, render_text
from mydyno.stats.decide import GATES, gate

FailUnless = Annotated[
    str | None,
    typer.Option(
        metavar="VERDICT",
        autocompletion=lambda: GATES,
        help="Exit with 1 for another verdict, 3 if a treatment failed, 5 without a verdict.",
    ),
]


Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV: ratios, and values in base units.")]


def compare(
    directory: Dir,
    *,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    fail_unless: FailUnless = None,
) -> None:
    """Show which treatment is better, by how much, and with which interval."""
    if json + markdown + csv > 1:
        raise SpecError("--json, --markdown, --csv: several forms of output; give one of them")
    if fail_unless is not None and fail_unless not in GATES:
        raise SpecError(f"--fail-unless {fail_unless}: unknown verdict; write {', '.join(GATES)}")
    run = opened(directory)
    found = result(directory, run)
    if found.design == DIAGNOSE.label:
        raise SpecError(
            f"{directory}: a diagnosis compares no treatments; see `mydyno why {directory}`"
        )
    if json:
        print_json(found.comparison)
    elif csv:
        sys.stdout.write(render_csv(found.comparison))
    else:
        sys.stdout.write(render_markdown(found) if markdown else render_text(found, width()))
        if not markdown and (cuts := losses_of(directory, run)):
            sys.stdout.write("\n" + render_losses(cuts, width()))
    if fail_unless is not None:
        raise typer.Exit(gate(found.comparison, fail_unless))
