"""`mydyno run`: run a campaign from its spec to its report, or resume it."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno import __version__
from mydyno.campaign import crash
from mydyno.campaign.bench import Bench
from mydyno.campaign.designs import overhead_s
from mydyno.campaign.plan import PROVE, Campaign, name_of
from mydyno.campaign.run_loop import CampaignRun
from mydyno.campaign.run_loop import run as run_trials
from mydyno.campaign.spec import EXISTING
from mydyno.campaign.timing import Costs, relative_noise
from mydyno.campaign.trial import attempt
from mydyno.cli import leases
from mydyno.cli.benches import Built, build
from mydyno.cli.narrow import TriedWith, Try, tried
from mydyno.cli.plan import Remarks, advice, cost_key, costs_of
from mydyno.cli.recipes import SpecSource, find, overrides
from mydyno.cli.report import write
from mydyno.cli.rollback import Done, restore
from mydyno.cli.run_directory import RUNS, RunFacts, losses_of, must_run, opened, result, save
from mydyno.cli.status import left_s
from mydyno.cli.terminal import (
    Allow,
    Budget,
    Json,
    Progress,
    Scale,
    Set,
    SpecName,
    command_line,
    print_message,
    print_result,
    width,
)
from mydyno.host import Local, is_root, reach, shielded
from mydyno.host.files import resolved
from mydyno.journal import FileJournal, Opened, Prepared, outcomes
from mydyno.journal.records import FileRecords, nothing_left
from mydyno.journal.register import MeasuredCosts, RunDir, forget, register, registered, remember
from mydyno.journal.register import find as find_records
from mydyno.model import (
    HostError,
    JournalError,
    Metric,
    MydynoError,
    Outcome,
    Reset,
    SpecError,
    TrialStatus,
    os_errors_as,
    unknown_value,
)
from mydyno.report.crash import render_losses
from mydyno.report.text import render_text
from mydyno.stack.layers import Scope, of_scope
from mydyno.testbed.bench_setup import CampaignLog
from mydyno.testbed.existing_bench import CONSENT
from mydyno.testbed.lock import host_lock, refuse_open, remove_leftovers
from mydyno.testbed.preflight import HOST, REFORMAT

Output = Annotated[
    Path | None, typer.Option("-o", "--output", help="The run directory.", metavar="DIR")
]


def run(  # noqa: PLR0913 - one parameter an option
    spec: SpecName,
    *,
    output: Output = None,
    settings: Set = None,
    budget: Budget = None,
    scale: Scale = None,
    allow: Allow = None,
    treatment: TriedWith = None,
    settings_tried: Try = None,
    json: Json = False,
) -> None:
    """Run or resume a campaign: verdicts on stdout, progress on stderr."""
    if output:
        must_run(RunDir(output))
    found = find(spec, overrides(settings, budget), scale)
    source = tried(found, treatment, settings_tried, output)
    if other := _OTHERS.get(source.decode().design.kind):
        raise SpecError(f"{source.place}: design.kind: `mydyno {other} {spec}` runs this one")
    folder = output or RUNS / name_of(source.decode(), source.place)
    cuts = _crash_test(source, folder)  # what is wrong with it shows before anything is run
    shown = execute(source, folder, allow or [])
    if cuts:
        print_message("\ndurability: the power is cut under each treatment")
        execute(cuts, RunDir(shown).cuts, allow or [])
    _print_result(shown, json=json)


def _crash_test(source: SpecSource, folder: Path) -> SpecSource | None:
    """Return the crash test that a spec asks for, if it does."""
    if source.decode().decide.durability != PROVE:
        return None
    from mydyno.cli.crash import crash_source  # noqa: PLC0415 - it runs campaigns by this module

    return crash_source(source, folder)


_OTHERS = {"diagnose": "diagnose", "crash": "lab crash-test"}
Note = Callable[[Campaign, RunDir, Outcome], Sequence[Metric]]


def execute(
    source: SpecSource, shown: Path, allow: Sequence[str], note: Note | None = None
) -> Path:
    """Run or resume the campaign of a spec in a run directory, and return that.

    `note` returns what its design is to know of a finished trial besides the load's metrics.
    """
    known = (HOST, CONSENT, f"{REFORMAT}/dev/DISK")
    if wrong := [what for what in allow if what not in known and not what.startswith(REFORMAT)]:
        raise SpecError(f"--allow: {unknown_value(wrong[0], known, 'consent')}")
    built = build(source, allow, shown)
    campaign, costs = built.campaign, costs_of(built)
    files = RunDir(resolved(Local(), shown))
    refuse_open(built.db, campaign.spec.stack.host, files.path)
    if _beside_trial(built):
        print_message("warning: a lease is on trial on this host; its end may disturb a trial")
    files.claim(Local())
    journal = _journal(files, campaign, built.name)
    records = register(files.path, campaign.name, campaign.spec.stack.host)
    try:
        given = dict(source.overrides)
        run_facts = RunFacts(
            source.place, given, built.ground, command_line(), built.name, __version__
        )
        save(files, source, run_facts, begun=any(journal.events()))
        _save_facts(files, built)
        new = note is None and not any(journal.events())
        if new and (warning := advice(built, source, costs)):
            print_message(f"warning: {warning}")
        bench = _opened(
            built,
            CampaignLog(files, journal, records, print_message, partial(_beside_trial, built)),
        )
        progress = _progress(built, costs, outcomes(journal.events()))
        noted = partial(note, campaign, files) if note else lambda _: ()
        one = crash.attempt if campaign.kind is crash.CRASH else attempt
        run_trials(CampaignRun(campaign, bench, files, journal, progress, built.name, noted, one))
        _remember(built, journal, progress)
    except (KeyboardInterrupt, MydynoError):
        first = next(iter(journal.events()), None)  # none, or another's, if this one was refused
        if isinstance(first, Opened) and first.digest == campaign.digest:
            print_message(
                f"mydyno: progress saved in {shown}; run the same command again to resume"
            )
        raise
    finally:
        journal.close()
        _close(records)
    return shown


def _beside_trial(built: Built) -> bool:
    """Return whether a lease is on trial; raise an error where its host would be changed."""
    held = leases.leases_of(built.db) if is_root(built.db) else []
    keys = {key for settings in built.campaign.treatments.values() for key in settings}
    live = built.campaign.spec.stack.server.startswith(EXISTING)
    if live or any(of_scope(key, Scope.HOST, Scope.DISK) for key in keys):
        leases.refuse_open(held)
    return any(not one.is_over for one in held)


def _journal(files: RunDir, campaign: Campaign, build: str) -> FileJournal:
    """Return the journal of a campaign; that of another spec which measured nothing is renamed.

    What the other one has left on its host is restored and removed before.
    """
    journal = FileJournal(files.journal)
    first, done = next(iter(journal.events()), None), outcomes(journal.events())
    if not isinstance(first, Opened) or any(o.status is TrialStatus.OK for o in done):
        return journal
    if (first.digest, first.build) == (campaign.digest, build):
        return journal
    try:
        _restore(files.path)
        number = 1 + len([*files.path.glob("journal-*.jsonl")])
        saved = files.path / f"journal-{number}.jsonl"
        with os_errors_as(JournalError, files.path, "choose another with -o"):
            shutil.copyfile(files.spec, files.path / f"spec-{number}.toml")
            files.journal.rename(saved)  # atomic: without a journal the spec is written again
    finally:
        journal.close()
    print_message(f"nothing was measured with the spec before; its journal is now {saved}")
    return FileJournal(files.journal)


def _restore(path: Path) -> None:
    """Restore and remove what a run directory's campaign has left; raise `HostError` if unable."""
    records = find_records(path)
    of = registered(records.entries()) if records else None
    if records is None or of is None:
        return
    there, left = reach(of.host), Done()
    with shielded(), host_lock(there):
        restore(there, records, left)
    for line in left.lines:
        print_message(line)
    if left.failed:
        raise HostError(f"{'; '.join(left.failed)}; run `mydyno rollback {path}`")


def _opened(built: Built, log: CampaignLog) -> Bench:
    """Return the bench; if it is refused before a data set is prepared, remove what was created."""
    try:
        return built.open(log)
    except BaseException:
        if not any(isinstance(event, Prepared) for event in log.journal.events()):
            with shielded():
                remove_leftovers(built.db, log.records)
        raise


def _close(records: FileRecords) -> None:
    """Forget a campaign that has left nothing to restore and nothing to remove."""
    if nothing_left(records.entries()):
        forget(records)
    else:
        records.close()


def _remember(built: Built, journal: FileJournal, progress: Progress) -> None:
    """Store what this campaign cost besides its loads, for the plans of later ones."""
    done = outcomes(journal.events())
    if progress.prepared_s is None or not done:
        return
    restarted = [o for o in done if o.trial.reset is not Reset.NONE] or done[:1]
    noise = relative_noise(built.campaign, done)
    remember(cost_key(built), MeasuredCosts(overhead_s(restarted), progress.prepared_s, noise))


def _progress(built: Built, costs: Costs, already: Sequence[Outcome]) -> Progress:
    campaign, design = built.campaign, built.campaign.design
    total = design.total if design.budget_s is None else None
    length_s = campaign.stops.forecast().load_s
    responses = {name: w.info.response for name, w in campaign.workloads.items()}
    return Progress(
        total,
        responses,
        length_s,
        Remarks(campaign, costs, list(already)).after,
        partial(left_s, campaign),
        design.blocks,
        list(already),
    )


def _print_result(path: Path, *, json: bool) -> None:
    run = opened(path)
    found = result(path, run)
    text = "\n" + render_text(found, width())
    if lost := losses_of(path, run):
        text += "\n" + render_losses(lost, width())
    print_result(found.comparison, lambda: text, json=json)
    print_message(f"\nreport: {write(path)}")


def _save_facts(files: RunDir, built: Built) -> None:
    """Save the facts of the host and the warnings, before anything is changed."""
    for warning in built.warnings:
        print_message(f"warning: {warning}")
    if (files.facts / "host.json").exists():
        return
    (files.facts / "host.json").write_bytes(msgspec.json.encode(built.host.details))
    (files.facts / "lab.txt").write_text(built.lab, encoding="utf-8")
    (files.facts / "warnings.txt").write_text("\n".join(built.warnings), encoding="utf-8")
