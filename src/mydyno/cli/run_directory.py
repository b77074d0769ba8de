"""A run directory: written once, read again as campaign, verdicts and report; no host is needed."""

import os
import re
import shutil
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from socket import gethostname
from typing import Any, TypeVar

import msgspec

from mydyno.campaign.crash import CRASH
from mydyno.campaign.importing import FILES
from mydyno.campaign.plan import Campaign
from mydyno.campaign.run_loop import reread
from mydyno.campaign.treatments import Environment
from mydyno.cli.recipes import SpecSource
from mydyno.cli.terminal import print_message
from mydyno.journal import Contents, Finished, outcomes, read, spent_s
from mydyno.journal.register import STATEMENTS, RunDir
from mydyno.loads import ReportsSession
from mydyno.model import (
    Finding,
    HostError,
    Interval,
    JournalError,
    Outcome,
    Series,
    SpecError,
    TrialStatus,
    os_errors_as,
)
from mydyno.report.statements import TrialLog, of_cut, statements
from mydyno.report.words import in_words, words
from mydyno.sample import complaint
from mydyno.sample.derive import sampled_series, used
from mydyno.stats import Rule, compare
from mydyno.stats.checks import mark_invalid
from mydyno.stats.estimates import cumulative, ended, levels_of, unit_of, within
from mydyno.stats.losses import Loss, losses
from mydyno.stats.result import (
    ChangeView,
    Comparison,
    Curve,
    Distribution,
    Result,
    TrialView,
)

RUNS = Path("runs")  # where run directories are made that no one named
_SHOWN = ("latency_p99_s",)

Read = tuple[Outcome, Sequence[Interval]]
T = TypeVar("T")
_MOVED = 0.05  # share of memory by which a host may differ when its run is resumed


class RunFacts(msgspec.Struct, frozen=True):
    """What a run directory stores besides the spec, so that it can be read on any host."""

    place: str
    overrides: dict[str, str]
    ground: Environment
    command: str
    build: str = ""
    version: str = ""


def save(files: RunDir, source: SpecSource, run_facts: RunFacts, *, begun: bool) -> None:
    """Save the spec and its run facts into a run directory; one that has `begun` retains its own.

    A run that was refused, or killed before its first event, has left a spec and facts: they are
    replaced.
    """
    with os_errors_as(JournalError, files.path, "choose another with -o"):
        if not begun:
            shutil.rmtree(files.facts, ignore_errors=True)
        files.facts.mkdir(parents=True, exist_ok=True)
        if not begun or not files.spec.exists():
            files.spec.write_text(source.text, encoding="utf-8")
            (files.facts / "campaign.json").write_bytes(msgspec.json.encode(run_facts))


def begun_on(path: Path, ground: Environment) -> Environment:
    """Return the host as it was when a run began, where only its memory is a little different now.

    A new kernel or a balloon moves that, and settings that are shares of it would be others.  A run
    that has measured nothing begins again.
    """
    with suppress(OSError, msgspec.DecodeError, JournalError):
        done = outcomes(read(RunDir(path).journal).events)
        text = (RunDir(path).facts / "campaign.json").read_bytes()
        first = msgspec.json.decode(text, type=RunFacts).ground.memory_bytes
        measured = any(one.status is TrialStatus.OK for one in done)
        if measured and abs(first - ground.memory_bytes) <= _MOVED * first:
            return replace(ground, memory_bytes=first)
    return ground


def must_run(files: RunDir) -> None:
    """Raise `SpecError` for a run directory of imported logs, which cannot be run."""
    if (files.facts / FILES).exists():
        raise SpecError(
            f"{files.path}: this run directory holds imported logs and cannot be run; compare them "
            "with `mydyno compare`, or choose another directory with -o"
        )


def reopen(path: Path) -> tuple[Campaign, RunFacts]:
    """Return the campaign of a run directory and its run facts; no host is needed."""
    files = RunDir(path)
    _refuse_pipes(path)
    try:
        text = files.spec.read_text(encoding="utf-8")
        run_facts = msgspec.json.decode((files.facts / "campaign.json").read_bytes(), type=RunFacts)
    except UnicodeDecodeError as error:
        raise JournalError(f"{files.spec}: not a text file; restore it from a copy") from error
    except OSError as error:
        why = f"not a run directory ({error.filename}: {error.strerror})"
        raise JournalError(f"{path}: {why}; name the directory of a run") from error
    except msgspec.DecodeError as error:
        raise JournalError(
            f"{files.facts / 'campaign.json'}: unreadable: {error}; restore it from a copy"
        ) from error
    source = SpecSource(text, run_facts.place, run_facts.overrides)
    return source.plan(run_facts.ground, stored=True), run_facts


def _refuse_pipes(path: Path) -> None:
    """Raise `JournalError` for a pipe or a device in a run directory: reading it would block."""
    for root, folders, names in os.walk(path):
        if Path(root) == path and "work" in folders:
            folders.remove("work")
        for name in names:
            with suppress(OSError):
                mode = Path(root, name).stat().st_mode
                if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
                    raise JournalError(f"{Path(root, name)}: is a pipe or a device; remove it")


def recorded(path: Path, campaign: Campaign) -> tuple[Contents, list[str]]:
    """Return the valid part of the journal of a run directory, and warnings about the rest.

    A trial that the campaign does not have (in a journal without checksums) counts as damaged.
    """
    contents = read(RunDir(path).journal)
    warnings = [f"{line}; what it recorded is left out" for line in contents.damage]
    for outcome in outcomes(contents.events):
        trial = outcome.trial
        if trial.workload not in campaign.workloads or trial.treatment not in campaign.treatments:
            warnings.append(
                f"{RunDir(path).journal}: trial {trial.id + 1} is of {trial.treatment} under "
                f"{trial.workload}, which the campaign does not have; it is left out"
            )
            contents.events = [e for e in contents.events if e != Finished(outcome)]
    return contents, warnings


def rule_of(campaign: Campaign, changes: dict[str, list[ChangeView]]) -> Rule:
    """Return the decision rule of a campaign, with the durability class of each treatment."""
    if not campaign.kind.runs:
        return replace(campaign.rule, durability=dict.fromkeys(campaign.treatments, "unknown"))
    weaker = {n: "weaker" for n, c in changes.items() if any(x.durability == "weaker" for x in c)}
    return replace(campaign.rule, durability=weaker)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run directory that was read: its campaign, facts and journal, and warnings about that."""

    campaign: Campaign
    facts: RunFacts
    contents: Contents
    warnings: Sequence[str]


def opened(path: Path) -> OpenRun:
    """Return a run directory, read once for all that is made of it."""
    campaign, run_facts = reopen(path)
    return OpenRun(campaign, run_facts, *recorded(path, campaign))


def losses_of(path: Path, run: OpenRun | None = None) -> list[Loss]:
    """Return what the treatments of a crash test in a run directory lost; [] for another run.

    `run` is the directory where it was opened already.
    """
    run, files = run or opened(path), RunDir(path)
    if run.campaign.kind is not CRASH:
        return losses_of(files.cuts) if files.cuts.exists() else []
    done = outcomes(run.contents.events)
    rule = rule_of(run.campaign, _changes(files, run.campaign, [(one, []) for one in done]))
    return losses(done, run.campaign.treatments, rule.durability or {})


def result(path: Path, run: OpenRun | None = None) -> Result:
    """Return the content of the report of a run directory, read again from its raw output.

    `run` is the directory where it was opened already.
    """
    run, files = run or opened(path), RunDir(path)
    campaign, run_facts = run.campaign, run.facts
    trials = reread(files, outcomes(run.contents.events), campaign.workloads)
    changes = _changes(files, campaign, trials)
    rule = rule_of(campaign, changes)
    ends = ended([o for o, _ in trials], rule.responses, rule.lower)
    trials = [(end, intervals) for end, (_, intervals) in zip(ends, trials, strict=True)]
    short = [o for o, _ in trials if not o.trial.soak]
    judged = {o.trial.id: o for o in mark_invalid(short, rule)}
    facts = _facts(files, run_facts) | _sessions(files, campaign, trials)
    logs = _logs(files, trials)
    lines = [*_complaints(files, trials), *of_cut(logs)]
    return Result(
        comparison=in_words(_compared(run, files, trials, rule, lines)),
        question=campaign.spec.campaign.question,
        command=run_facts.command,
        started=run.contents.began,
        design=campaign.kind.label,
        protocol=campaign.stops.label,
        lab=_fact(files, "lab"),
        trials=[
            _view(judged.get(o.trial.id, o), i, campaign, _gauges(files, o)) for o, i in trials
        ],
        changes=changes,
        distributions=_distributions([t for t in trials if _counts(judged.get(t[0].trial.id))]),
        facts=facts,
        blocks=len({o.trial.block for o in short}),
        margin=campaign.spec.decide.margin,
        imported=not campaign.kind.runs,
        closed_loops=[n for n, w in campaign.workloads.items() if w.info.closed_loop],
        loads={n: described(campaign, n) for n in campaign.workloads},
        versions=_versions(run_facts, facts),
        spec=files.spec.read_text(encoding="utf-8"),
        settings=run_facts.overrides,
        names=_names(campaign, facts),
        statements=statements(logs),
    )


def _compared(
    run: OpenRun, files: RunDir, trials: Sequence[Read], rule: Rule, more: Sequence[str]
) -> Comparison:
    """Return the comparison of a run's trials, with what was noted as it ran, and `more`."""
    campaign, done = run.campaign, outcomes(run.contents.events)
    found = compare([o for o, _ in trials], rule, [*campaign.treatments], campaign.cells)
    lines = [*run.warnings, *_fact(files, "warnings").splitlines(), *more]
    noted = [Finding("recorded", {"text": line}) for line in lines]
    # not every label of a log was run under every workload, nor each part of a ladder's rungs
    planned = {rule.baseline, *campaign.compared} if campaign.kind.runs else set()
    return msgspec.structs.replace(
        found,
        machine_time_s=spent_s(run.contents.events),
        findings=[*_interim(campaign, done), *noted, *found.findings],
        treatments=[r for r in found.treatments if r.trials or r.findings or r.name in planned],
    )


def _logs(files: RunDir, trials: Sequence[Read]) -> list[TrialLog]:
    """Return the digests of the slow logs that measured trials have left."""
    from mydyno.report import digestpage  # noqa: PLC0415 - its templates take a tenth of a start
    from mydyno.testbed.slow_log import MOST  # noqa: PLC0415 - as above

    found = []
    for outcome, _ in trials:
        digest = files.trial(outcome.trial.id) / STATEMENTS
        if _counts(outcome) and digest.is_file():
            log = digestpage.read(_stored(digest, dict[str, object]))
            cut = log.summary.bytes >= MOST
            found.append(TrialLog(outcome.trial, outcome.window.end_s, log, cut))
    return found


def _interim(campaign: Campaign, done: Sequence[Outcome]) -> list[Finding]:
    """Return the finding that a campaign is not finished, if so."""
    going_on = campaign.kind.runs and done and campaign.next(done) is not None
    return [Finding("interim")] if going_on else []


def described(campaign: Campaign, name: str) -> dict[str, str]:
    """Return what a workload's load is: its tool, and each of its parameters, defaults too."""
    if not campaign.kind.runs:
        return {}
    workload, tables = campaign.workloads[name], campaign.spec.workloads
    table = tables.get(name) or tables.get(name.rpartition("/")[0], {})
    params = getattr(workload, "params", None)
    of = {"tool": table.get("tool", ""), **(msgspec.to_builtins(params) if params else {}), **table}
    of["threads"] = getattr(workload, "threads", of.get("threads", ""))
    found: dict[str, str] = {}
    for key, value in of.items():
        if isinstance(value, dict):
            found |= {f"option {k}": str(v) for k, v in value.items()}
        else:
            found[key] = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    if found.get("rate") == "0":
        found["rate"] = "none: a closed loop"
    if isinstance(of.get("tables"), int) and isinstance(of.get("table_size"), int):
        found["rows"] = f"{of['tables'] * of['table_size']:,}"
    return {key.replace("_", " "): value for key, value in found.items() if value}


def _versions(run_facts: RunFacts, facts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    tool = {k.removesuffix(" --version"): v for k, v in facts.get("load tool", {}).items()}
    found = {
        "mydyno": run_facts.version or "not recorded",
        "server": run_facts.build,
        **{k: v for k, v in tool.items() if not k.startswith("ldd ")},
    }
    return {name: version for name, version in found.items() if version}


def _names(campaign: Campaign, facts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the names of the hosts and users that the run had, and of this machine."""
    stack = campaign.spec.stack
    hosts = [stack.host, stack.load, stack.address, *(of.get("name", "") for of in facts.values())]
    users = [os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    parts = [word for host in hosts for word in re.split(r"://|@|:\d+", host)]
    return list(dict.fromkeys(n for n in (*parts, *users, gethostname()) if n and n != "ssh"))


def _complaints(files: RunDir, trials: Sequence[Read]) -> list[str]:
    """Return the sampler's warnings, each once."""
    complaints = (complaint(files.trial(outcome.trial.id)) for outcome, _ in trials)
    return [f"sampling: {line}" for line in dict.fromkeys(complaints) if line]


def _gauges(files: RunDir, outcome: Outcome) -> Sequence[Series]:
    """Return the sampled series of a trial; none if its file cannot be read."""
    try:
        return sampled_series(files.trial(outcome.trial.id))
    except HostError as error:
        print_message(f"warning: {error}; the report leaves it out")
        return ()


def _view(
    outcome: Outcome, intervals: Sequence[Interval], campaign: Campaign, gauges: Sequence[Series]
) -> TrialView:
    response = campaign.workloads[outcome.trial.workload].info.response
    trial = outcome.trial
    return TrialView(
        id=trial.id,
        treatment=trial.treatment,
        workload=trial.workload,
        block=trial.block,
        status=outcome.status.value,
        error=words(outcome.finding) if outcome.finding else outcome.error,
        window=(outcome.window.start_s, outcome.window.end_s),
        metrics={m.name: m.value for m in (*outcome.metrics, *used(gauges, outcome.window))},
        curves=[c for name in (response, *_SHOWN) if (c := _curve(name, intervals))],
        gauges=[Curve(g.name, g.unit, list(g.t_s), list(g.values)) for g in gauges],
        soak=trial.soak,
    )


def _curve(name: str, intervals: Sequence[Interval]) -> Curve | None:
    shown = [i for i in intervals if name in i.values]
    if not shown:
        return None
    return Curve(name, unit_of(name), [i.t_s for i in shown], [i.values[name] for i in shown])


def _counts(outcome: Outcome | None) -> bool:
    """Return whether a trial is one of those that verdicts are of."""
    return outcome is not None and outcome.status is TrialStatus.OK and not outcome.trial.soak


def _distributions(trials: Sequence[Read]) -> list[Distribution]:
    """Return the latencies of each treatment and workload, its trials' windows merged.

    If the load reports kinds of transactions, those of each kind follow.
    """
    histograms: dict[tuple[str, str, str], list[str]] = {}
    for outcome, intervals in trials:
        cell = (outcome.trial.treatment, outcome.trial.workload)
        for interval in within(intervals, outcome.window):
            for kind, encoded in {"": interval.latency, **interval.kinds}.items():
                histograms.setdefault((*cell, kind), []).append(encoded)
    found = []
    for (treatment, workload, kind), several in histograms.items():
        if total := levels_of(several):
            count = sum(one.events for one in total)
            found.append(Distribution(treatment, workload, count, cumulative(total), kind))
    return found


def _changes(
    files: RunDir, campaign: Campaign, trials: Sequence[Read]
) -> dict[str, list[ChangeView]]:
    """Return the changes of each treatment, from the first of its trials that changed anything.

    The environment of a load, and changes before the first trial, are not recorded; these are the
    requested values.
    """
    found: dict[str, list[ChangeView]] = {}
    for outcome, _ in trials:
        path = files.trial(outcome.trial.id) / "changes.json"
        if not found.get(outcome.trial.treatment) and path.exists():
            found[outcome.trial.treatment] = _stored(path, list[ChangeView])
    for name, settings in campaign.treatments.items():
        asked = {k: v for k, v in settings.items() if name not in found or k.startswith("load/")}
        if not found.get(name):
            found[name] = [ChangeView(k, "", v, "online", "same") for k, v in asked.items()]
    return {name: found[name] for name in campaign.treatments}


def _stored(path: Path, kind: type[T]) -> T:
    """Return the value of a JSON file of the run directory; raise `JournalError` naming it."""
    with os_errors_as(JournalError, path, "make it readable, or remove it"):
        text = path.read_bytes()
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(
            f"{path}: unreadable: {error}; restore it from a copy, or remove it"
        ) from error


def _fact(files: RunDir, name: str) -> str:
    path = files.facts / f"{name}.txt"
    return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""


def _sessions(
    files: RunDir, campaign: Campaign, trials: Sequence[Read]
) -> dict[str, dict[str, str]]:
    """Return the load's own session facts, from the first trial that reports them."""
    for outcome, _ in trials:
        workload = campaign.workloads[outcome.trial.workload]
        raw = files.trial(outcome.trial.id) / "load.out"
        ran = outcome.status is TrialStatus.OK and raw.exists()
        if ran and isinstance(workload, ReportsSession):
            with raw.open("rb") as lines, suppress(ValueError):  # `reread` names a damaged file
                found = {n: value or "none" for n, value in workload.session(lines).items()}
                return {"load session": found}
    return {}


def _facts(files: RunDir, run_facts: RunFacts) -> dict[str, dict[str, str]]:
    """Return the facts that were recorded before the first change."""
    stored = {
        p: _stored(p, dict[str, Any])
        for p in sorted(files.facts.glob("*.json"))
        if p.name != "campaign.json"
    }
    sections = {p.stem: {k: str(v) for k, v in facts.items()} for p, facts in stored.items()}
    if run_facts.build:
        sections.setdefault("server", {})["build"] = run_facts.build
    return sections
