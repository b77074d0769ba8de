"""`mydyno effect`: what a change did in production, with an interval that holds."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.leases import call, open_lease
from mydyno.cli.run_directory import result
from mydyno.cli.terminal import Json, folders, print_result, width
from mydyno.keep.history import (
    LOAD,
    VALUE,
    Samples,
    from_csv,
    from_prometheus,
    from_samples,
    instance_label,
    seconds_of,
)
from mydyno.model import SpecError
from mydyno.report import units
from mydyno.report.production import EffectReport, render_effect
from mydyno.sample.derive import counted_once
from mydyno.sample.probe_file import is_probe_file, read
from mydyno.stats.production import (
    LEAST_H,
    WEEK_H,
    History,
    TooLittleError,
    can_show,
)
from mydyno.stats.production import (
    effect as measured,
)

_HOUR_S = 3600
_PROBE = ".bin"  # how a file of mydyno-probe ends
_COUNTED = ("threads_running", "questions")
_BEFORE_H = 8 * WEEK_H
_LENGTHS_H = (24, 72, 168)
REVERT = 1  # exit code where the change is worse

Subject = Annotated[
    str,
    typer.Argument(
        metavar="SERVER",
        help="A value of the label instance; a CSV file; a file of mydyno-probe (*.bin), or a "
        "folder of them.",
    ),
]
Before = Annotated[
    str, typer.Option(metavar="FROM..TO", help="Hours before the change; else 8 weeks.")
]
After = Annotated[
    str, typer.Option(metavar="FROM..TO", help="Hours after it; without it, what could be shown.")
]
Url = Annotated[str, typer.Option(metavar="URL", help="Prometheus: http://mon:9090.")]
Control = Annotated[str, typer.Option(help="An untouched server of the same load.")]
ValueQuery = Annotated[
    str,
    typer.Option(
        "--value", metavar="PROMQL", help="What is judged, less is better; {instance} in it."
    ),
]
LoadQuery = Annotated[str, typer.Option("--load", metavar="PROMQL", help="What is asked for.")]
LeaseOf = Annotated[
    str,
    typer.Option(
        metavar="HOST",
        help="Note the verdict with the lease on trial there: confirm refuses what is worse.",
    ),
]
RunDirectory = Annotated[
    Path | None,
    typer.Option(help="The run that foretold it: shown beside it.", autocompletion=folders),
]


def effect(  # noqa: PLR0913 - one parameter an option
    subject: Subject,
    *,
    before: Before = "",
    after: After = "",
    prometheus: Url = "",
    control: Control = "",
    value: ValueQuery = VALUE,
    load: LoadQuery = LOAD,
    run: RunDirectory = None,
    lease: LeaseOf = "",
    json: Json = False,
) -> None:
    """Show what a change did in production, or what this history could show."""
    if not prometheus and (value, load) != (VALUE, LOAD):
        raise SpecError("--value and --load are queries of Prometheus; add --prometheus URL")
    begin_h, last_h, change_h, end_h = _hours(before, after, of_now=bool(prometheus))

    def history(name: str) -> History:
        if not prometheus:
            found = _table(name)
        else:
            queries = [_with(query, name) for query in (value, load)]
            found = from_prometheus(prometheus, queries[0], queries[1], begin_h, end_h)
        hour = found.hour
        chosen = ((hour >= begin_h) & (hour < last_h)) | ((hour >= change_h) & (hour < end_h))
        return History(hour[chosen], found.value[chosen], found.load[chosen])

    own, other = history(subject), history(control) if control else None
    report = _judged(subject, own, other, change_h, end_h - change_h)
    report = msgspec.structs.replace(report, foretold=_foretold(run) if run else [])
    if lease:
        report = _noted(lease, report)
    print_result(report, lambda: render_effect(report, width()), json=json)
    if report.verdict == "revert":
        raise typer.Exit(REVERT)


def _hours(before: str, after: str, *, of_now: bool) -> tuple[int, int, int, int]:
    """Return the hours before the change and after it, without those to come where it is `of_now`.

    Raises `SpecError` where they do not follow each other.
    """
    now_h = int(datetime.now(UTC).timestamp()) // _HOUR_S
    change_h, end_h = _range("--after", after) if after else (now_h, now_h)
    if of_now:  # of the hour that runs it would have a part
        end_h = min(end_h, max(change_h, now_h))
    begin_h, last_h = _range("--before", before) if before else (change_h - _BEFORE_H, change_h)
    if not after:
        change_h = end_h = last_h
    if not begin_h < last_h <= change_h <= end_h:
        raise SpecError("--before must end where --after begins, or earlier")
    return begin_h, last_h, change_h, end_h


def _noted(to: str, report: EffectReport) -> EffectReport:
    """Note a verdict with the lease on trial on a host; return it with what was foretold of it."""
    if not report.verdict:
        raise SpecError(
            "--lease needs a full hour after the change: add --after FROM..TO, or wait for it"
        )
    text = f"{report.ratio:.3f} [{report.low:.3f}..{report.high:.3f}] of before"
    host, held = open_lease(to)
    lease = held.lease
    call(host, "judge", lease.id, report.verdict, text)
    foretold = [f"{load}: {ratio}" for load, ratio in lease.note.foretold.items()]
    return msgspec.structs.replace(report, foretold=report.foretold or foretold)


def _judged(
    subject: str, own: History, control: History | None, change_h: int, hours: int
) -> EffectReport:
    """Return the effect, or, without hours after the change, what could be shown."""
    at = f"{datetime.fromtimestamp(change_h * _HOUR_S, UTC):%Y-%m-%d %H:%M} UTC"
    try:
        if not hours:
            lengths = {n: can_show(own, change_h, n, control) for n in _LENGTHS_H}
            return EffectReport(subject, at, control is not None, can_show=lengths)
        found = measured(own, change_h, hours, control)
    except TooLittleError as error:
        raise SpecError(
            f"{subject}: {error}; give a longer --before (at least {LEAST_H // WEEK_H} weeks), a "
            "--control, or compare other hours"
        ) from error
    return EffectReport(
        subject,
        at,
        control is not None,
        verdict=found.verdict,
        ratio=found.ratio,
        low=found.low,
        high=found.high,
        hours=found.hours,
        outside=found.outside,
        placebos=list(found.placebos),
        can_show={hours: found.half_width},
    )


def _range(option: str, text: str) -> tuple[int, int]:
    """Return the first hour of ``FROM..TO`` and the one after its last."""
    first, mark, last = text.partition("..")
    try:
        begin, end = (int(seconds_of(one) // _HOUR_S) for one in (first, last))
    except ValueError as error:
        raise SpecError(f"{option} {text}: write 2026-11-10..2026-11-17, or with T14:00") from error
    if not mark or end <= begin:
        raise SpecError(f"{option} {text}: ends before it begins; write FROM..TO")
    return begin, end


def _sampled(paths: Sequence[Path]) -> History:
    """Return the hours in files of mydyno-probe; raise `SpecError` for one without a server."""
    parts = []
    for path in paths:
        found = read(path)
        running, questions = (found.find(f"status.{name}") for name in _COUNTED)
        if running is None or questions is None:
            raise SpecError(f"{path}: has no server; sample with --server-defaults FILE")
        # one of the threads is the sampler's own
        parts.append(Samples(found.wall_s, running - 1, counted_once(questions)))
    return from_samples(parts)


def _table(name: str) -> History:
    path = Path(name)
    if path.is_dir() or is_probe_file(path):
        return _sampled(sorted(path.glob(f"*{_PROBE}")) if path.is_dir() else [path])
    if not path.is_file():
        raise SpecError(
            f"{name}: no such file; name a CSV file with columns time, value and load, or files "
            "of mydyno-probe, or add --prometheus URL"
        )
    return from_csv(path)


def _with(query: str, instance: str) -> str:
    """Return a query for one instance; its name may hold no quote that would end the matcher."""
    return (
        query.replace("{{", "{").replace("}}", "}").replace("{instance}", instance_label(instance))
    )


def _foretold(run: Path) -> list[str]:
    """Return what a campaign found of its winner under each load, a line each."""
    found = result(run).comparison
    if found.winner is None:
        raise SpecError(f"{run}: no treatment won there; leave --run out")
    return [
        f"{row.name} under {row.workload}: {units.bracketed(row.effect, 2)} of {found.response}"
        for row in found.treatments
        if row.name == found.winner and row.effect
    ]
