"""`mydyno diagnose`: what limits a load, proven by slowing one resource at a time while it runs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from mydyno.campaign.doses import (
    COARSE,
    EXPECTED,
    OWN,
    PACED,
    SEGMENT_S,
    STALLED,
    STEADY,
    WASHOUT_S,
)
from mydyno.campaign.plan import Campaign, Resolved
from mydyno.campaign.spec import EXISTING, DeviceTable, Spec
from mydyno.campaign.trial import replayed
from mydyno.cli.benches import resolved_spec
from mydyno.cli.narrow import Treatment, chosen, narrowed_source, own_settings
from mydyno.cli.recipes import SpecSource, find, overrides
from mydyno.cli.report import write
from mydyno.cli.run import Output, execute
from mydyno.cli.run_directory import RUNS, reopen
from mydyno.cli.terminal import Allow, Json, Scale, Set, print_message, print_result, width
from mydyno.cli.why import evidence, keeps_rate, read_diagnoses, stall_rate
from mydyno.diagnose import LoadEvidence, suspects, worth
from mydyno.diagnose.elasticity import outside
from mydyno.diagnose.suspects import IDLE
from mydyno.host import Host, Remote, reach
from mydyno.journal.register import RunDir
from mydyno.loads import Workload as Load
from mydyno.model import (
    Action,
    HostError,
    Metric,
    Outcome,
    RefusedError,
    SpecError,
    unknown_value,
)
from mydyno.model.text import duration_s
from mydyno.report.limits import render_limits
from mydyno.stats.estimates import unit_of, within

Subject = Annotated[
    str,
    typer.Argument(help="A spec file, a recipe, or a run directory.", metavar="SPEC|RECIPE|DIR"),
]
Workload = Annotated[
    str | None, typer.Option("--workload", "-w", metavar="NAME", help="Which load; else the first.")
]
Only = Annotated[
    str | None,
    typer.Option(metavar="KEY,KEY", help="Slow only these: disk.rate, link.rate, slow.host, …"),
]
Budget = Annotated[
    str | None,
    typer.Option(help="Machine time; without --blocks 6m.", metavar="TIME", show_default=False),
]
Blocks = Annotated[
    int | None,
    typer.Option(metavar="N", min=3, help="Run at least N blocks of segments: narrower intervals."),
]


_BUDGET = "6m"
_LEAST_S = 150.0  # the first trial, and three blocks of one dose
# Prints pid and name of each process of a database server, without those that mydyno started: they
# have an option file of their own beside a folder of launch files.
_OTHERS = """
for at in /proc/[0-9]*; do
  read -r name <"$at/comm" || continue
  case $name in mysqld|mariadbd|postgres|mongod|redis-server|valkey-server) ;; *) continue ;; esac
  words=$(tr '\\0' '\\n' <"$at/cmdline")
  [ -n "$words" ] || continue  # it is ending: a server of ours that was killed with its owner, too
  file=$(echo "$words" | sed -n 's/^--defaults-file=//p' | head -n 1)
  [ -n "$file" ] && [ -d "${file%/*}/launch" ] && continue
  echo "$name (pid ${at#/proc/})"
done 2>/dev/null
"""


def diagnose(  # noqa: PLR0913 - one parameter an option
    subject: Subject,
    *,
    treatment: Treatment = None,
    workload: Workload = None,
    budget: Budget = None,
    blocks: Blocks = None,
    only: Only = None,
    output: Output = None,
    settings: Set = None,
    scale: Scale = None,
    allow: Allow = None,
    json: Json = False,
) -> None:
    """Prove what limits a load: slow one resource at a time, and see what follows."""
    source = _subject(subject, overrides(settings, None), scale)
    folder = output or RUNS / f"{Path(source.place).stem}-why"
    spec, named = resolved_spec(source, folder)
    name = chosen(spec, named, treatment)
    load = workload or next(iter(named.loads))
    if load not in named.loads:
        raise SpecError(unknown_value(load, named.loads, "workload"))
    _refuse(spec, named.loads[load])
    if budget is not None and duration_s(budget, "--budget") < _LEAST_S:
        raise SpecError(
            f"--budget {budget}: too short for three blocks of segments; write 3m or more"
        )
    design = _design(budget, blocks, only)
    narrowed = narrowed_source(source, _tables(spec, named, name, load, design))
    shown = execute(narrowed, folder, allow or [], note)
    found = read_diagnoses(shown)
    print_result(found, lambda: "\n" + render_limits(found, width()), json=json)
    print_message(f"\nreport: {write(shown)}")


def _subject(subject: str, changed: Mapping[str, str], scale: str | None) -> SpecSource:
    """Return the spec of a file, recipe or run directory."""
    path = Path(subject)
    if not (path / "journal.jsonl").exists():
        return find(subject, changed, scale)
    _, run_facts = reopen(path)
    text = RunDir(path).spec.read_text(encoding="utf-8")
    return SpecSource(text, run_facts.place, {**run_facts.overrides, **changed})


def _refuse(spec: Spec, load: Load) -> None:
    """Raise an error for what cannot be diagnosed, or must not be."""
    device = spec.stack.device
    if not load.info.needs_server:
        raise SpecError(
            f"{load.info.name}: needs no server, so there are no connections to account for"
        )
    if isinstance(device, DeviceTable) and device.machine:
        raise SpecError(
            "stack.device: a virtual machine has no doses yet; `mydyno why` gives its account"
        )
    if spec.stack.server.startswith(EXISTING):
        raise RefusedError(
            "stack.server: a dose would slow a server that is not mydyno's; name a server to start "
            '("auto"), or read the account with `mydyno why --live`'
        )
    host = reach(spec.stack.host)
    if isinstance(host, Remote):
        return
    if others := other_databases(host):
        raise RefusedError(
            f"this host runs {', '.join(others)}: a dose would slow that, too; diagnose on a host "
            "without other databases, or read the account with `mydyno why`"
        )


def other_databases(host: Host) -> list[str]:
    """Return the database servers of a host that mydyno did not start, with their pids."""
    done = host.run(Action(("sh", "-c", _OTHERS)))
    return done.stdout.decode(errors="replace").splitlines()


def _design(budget: str | None, blocks: int | None, only: str | None) -> dict[str, Any]:
    """Return what the options ask of the design."""
    until = budget or (None if blocks else _BUDGET)
    doses = None if only is None else [key.strip() for key in only.split(",") if key.strip()]
    asked = {"budget": until, "blocks": blocks, "doses": doses}
    return {"kind": "diagnose"} | {key: value for key, value in asked.items() if value is not None}


def _tables(
    spec: Spec, named: Resolved, name: str, load: str, design: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the tables that leave one treatment and one load of a spec, to be diagnosed."""
    table = load if load in spec.workloads else load.rpartition("/")[0]
    tool = dict(spec.workloads[table])
    if isinstance(tool.get("threads"), list):
        tool["threads"] = [getattr(named.loads[load], "threads", tool["threads"][0])]
    if isinstance(tool.get("rate"), list):
        tool["rate"] = [int(load.rpartition("@")[2])]
    if str(tool.get("response", "")).startswith("latency_"):
        del tool["response"]  # what slowing costs is measured in throughput
    return {
        "treatments": {name: own_settings(named, name)},
        "workloads": {table: tool},
        "design": {**design, "seed": spec.design.seed},
        "protocol": {"preload": spec.protocol.preload},
        "decide": {"baseline": name},
    }


def note(campaign: Campaign, files: RunDir, outcome: Outcome) -> Sequence[Metric]:
    """Return what doses are chosen and dimensioned by, of the first trial; of a segment, stalls."""
    if outcome.trial.id:
        return _stalls(campaign, files, outcome)
    load = campaign.workloads[outcome.trial.workload]
    ends_s = [0.0, *(one.t_s for one in replayed(files.trial(0), load).intervals)]
    apart_s = median([end - start for start, end in pairwise(ends_s)] or [0.0])
    coarse = [Metric(COARSE, apart_s, "s")] if apart_s > SEGMENT_S - WASHOUT_S else []
    found = None
    with suppress(HostError):  # a damaged sample: doses need none, and are then not chosen by it
        found = evidence(files.path, campaign, outcome)
    return [*coarse, *(_chosen_by(found, paced=keeps_rate(load)) if found else [])]


def _chosen_by(found: LoadEvidence, *, paced: bool) -> list[Metric]:
    """Return what the evidence makes likely, and the latencies that doses are a share of."""
    suspicion = suspects(found, paced=paced)
    suspected = suspicion.suspects
    own = {
        "read_latency": found.ratio("disk.read_s", "disk.reads"),
        "flush_latency": found.ratio("disk.flush_s", "disk.flushes"),
    }
    keeps = paced and any(suspect.limit == IDLE for suspect in suspected)
    return [
        *([Metric(PACED, 1.0, "ratio")] if keeps or suspicion.answer == IDLE else []),
        *(
            Metric(f"{EXPECTED}{dose}", value, "ratio")
            for dose, value in worth(found, suspected).items()
        ),
        *(Metric(f"{OWN}{key}", value, "s") for key, value in own.items() if value),
    ]


def _stalls(campaign: Campaign, files: RunDir, outcome: Outcome) -> Sequence[Metric]:
    """Return a segment's rate outside of stalls and their share."""
    load = campaign.workloads[outcome.trial.workload]
    response, below = load.info.response, stall_rate(files, load)
    if not below:
        return ()
    own = replayed(files.trial(outcome.trial.id), load).intervals
    skip = len(own) - len(within(own, outcome.window))
    steady, share = outside([one.values.get(response, 0.0) for one in own], below, skip)
    found = [Metric(STALLED, share, "ratio")]
    return found if steady is None else [Metric(STEADY, steady, unit_of(response)), *found]
