"""`mydyno why`: where the connections of a finished run are, and what limits it; from its files."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.doses import COARSE, STALLED, Doses, proven
from mydyno.campaign.plan import Campaign
from mydyno.campaign.trial import replayed
from mydyno.cli.run_directory import OpenRun, opened
from mydyno.cli.terminal import (
    Json,
    LiveServer,
    folders,
    print_message,
    print_result,
    width,
)
from mydyno.diagnose import (
    Diagnosis,
    LoadEvidence,
    Subject,
    account,
    diagnosis,
    with_proofs,
)
from mydyno.diagnose.account import AccountLine, connections_idle, connections_listed
from mydyno.diagnose.diagnosis import LIVE, Stalls
from mydyno.diagnose.elasticity import stall_below
from mydyno.host import Local
from mydyno.journal import outcomes
from mydyno.journal.register import RunDir
from mydyno.loads import Workload
from mydyno.loads.protocol import normal
from mydyno.model import (
    Action,
    Figures,
    HostError,
    Outcome,
    SpecError,
    TrialStatus,
    Window,
    unknown_value,
)
from mydyno.report.limits import render_limits
from mydyno.sample import NOT_BUILT, probe_binary
from mydyno.sample.derive import corrected
from mydyno.sample.figures import figures, mean, of_window, of_windows
from mydyno.sample.probe_file import read
from mydyno.sample.sampler import link_speed, where_in
from mydyno.server.existing import reached
from mydyno.stats.checks import mark_invalid
from mydyno.stats.estimates import unit_of

Treatment = Annotated[
    str | None,
    typer.Option("--treatment", "-t", metavar="NAME", help="Only this treatment; else all."),
]


Say = Callable[[str], object]
_MOST = 6  # trials of a treatment that its account is the mean of
_MOST_STALLING = 12  # segments that the account of stalls is the mean of
_VOID = TrialStatus.VOID
_LISTED_S = 1.0  # until the server lists its connections; cached threads have that name, too
_OTHERS = 1.1  # connections, with the sampler's: another one was there for a tenth of the time
_USUAL = 20  # seconds of a diagnosis's first trial, its last ones, which show the usual rate

Directory = Annotated[
    Path | None, typer.Argument(help="A run directory.", metavar="DIR", autocompletion=folders)
]
Live = Annotated[bool, typer.Option("--live", help="Look at a server of this host instead.")]
Seconds = Annotated[int, typer.Option(help="With --live: for so long.", min=3, max=3600)]


def why(
    directory: Directory = None,
    *,
    treatment: Treatment = None,
    live: Live = False,
    server_defaults: LiveServer = None,
    seconds: Seconds = 30,
    json: Json = False,
) -> None:
    """Show where connections spend their time, and what limits fit that; nothing is changed."""
    if live == (directory is not None):
        raise SpecError(
            "name a run directory (mydyno why demo-run), or a running server "
            "(mydyno why --live --server-defaults FILE)"
        )
    found = _of_run(directory, treatment) if directory else [_live(server_defaults, seconds)]
    print_result(found, lambda: render_limits(found, width()), json=json)


def _of_run(directory: Path, treatment: str | None) -> list[Diagnosis]:
    run = opened(directory)
    if treatment is not None and treatment not in run.campaign.treatments:
        raise SpecError(unknown_value(treatment, run.campaign.treatments, "treatment"))
    found = [one for one in read_diagnoses(directory, run) if treatment in {None, one.treatment}]
    if not any(one.lines or one.proofs for one in found):
        raise SpecError(
            f"{directory}: no valid trial has a sample of what threads do; `mydyno compare` names "
            "trials that failed; else run the campaign again with this version of mydyno, its "
            "mydyno-probe built, and a load that needs a server"
        )
    return found


def _live(options: Path | None, seconds: int) -> Diagnosis:
    """Return the account of a running server of this host; nothing of it is changed.

    Raises `SpecError` where it cannot be asked, `HostError` where its threads cannot be seen.
    """
    if options is None:
        raise SpecError(
            "--live: no server is named; name its option file with --server-defaults FILE"
        )
    if not options.is_file():
        raise SpecError(f"{options}: no such file; name an option file with a [client] section")
    if not probe_binary():
        raise HostError(NOT_BUILT)
    host = Local()
    there = reached(host, str(options))
    place, data, version = Path(there.pid_file), there.data, there.text
    with tempfile.TemporaryDirectory(prefix="mydyno-") as made:
        out = Path(made) / "probe.bin"
        asked = ("--out", str(out), "--duration", f"{seconds}s", "--states", "50ms")
        watched = ("--process-file", f"mysqld={place}", "--server-defaults", str(options))
        done = host.run(
            Action((probe_binary(), "sample", *asked, *watched)), timeout_s=seconds + 30.0
        )
        if done.returncode:
            raise HostError(done.stderr.decode(errors="replace").strip()[-400:])
        sampled = read(out)
    window = Window(_LISTED_S, float(sampled.mono_s[-1]) + 1.0)  # sources are read after its begin
    where = where_in(host, Path(data))
    sampled = corrected(sampled, where)
    links = {name: link_speed(host, name) for name in sampled.instances("net.tx_bytes")}
    linked = [(name, speed) for name, speed in links.items() if speed]
    places = [where, *(replace(where, interface=n, link_bytes_per_s=s) for n, s in linked)]
    seen = max((of_window(sampled, where, window) for where in places), key=_carried)
    if not any(key.startswith("state.seconds:mysqld/") for key in seen.means):
        raise HostError(
            f"what the threads of the server (pid file {place}) do cannot be seen; run as root, or "
            "as its user with CAP_SYS_PTRACE where kernel.yama.ptrace_scope is not 0, on its host"
        )
    others = seen.means.get("status.threads_connected", _OTHERS) >= _OTHERS
    if not others and not seen.means.get("status.connections"):
        raise HostError(f"{options}: no client was connected to the server; look while one works")
    rate, idle = seen.means.get("status.questions", 0.0), connections_idle(seen.means)
    times, n = (window.start_s, window.end_s), round(max(_counted(seen.means) - idle, 1.0), 2)
    subject = Subject(f"server {version}", LIVE, 1, rate, "/s", n, None, times)
    found = diagnosis(subject, seen)
    left_out = {"idle_connections": round(idle, 2)} if idle else {}
    return msgspec.structs.replace(found, shown=found.shown | left_out)


def _carried(seen: Figures) -> float:
    """Return the bytes a second of a link's busier direction."""
    return max(seen.means.get(name, 0.0) for name in ("net.rx_bytes", "net.tx_bytes"))


def read_diagnoses(
    directory: Path, run: OpenRun | None = None, say: Say = print_message
) -> list[Diagnosis]:
    """Return the diagnoses of a run directory; those of a diagnosis have their proofs.

    `run` is the directory where it was opened already.  What is left out is a warning to `say`.
    """
    run = run or opened(directory)
    for line in run.warnings:
        say(f"warning: {line}")
    campaign, history = run.campaign, outcomes(run.contents.events)
    design = campaign.design
    done = [o for o in history if o.status is TrialStatus.OK]
    used = done[:1] if isinstance(design, Doses) else done
    made = [_diagnosed(directory, campaign, cell, say) for cell in _cells(campaign, used)]
    found = [one for one in made if one is not None]
    if not isinstance(design, Doses):
        return found
    seen = proven(history, design.baseline, design.response, design.budget_s)
    every = (seen.worse, seen.better, seen.reliefs)
    load = campaign.workloads[design.workload]
    stalls = Stalls(seen.stalled, _in_stalls(RunDir(directory), load, done[1:]))
    coarse = [m.name for outcome in used for m in outcome.metrics if m.name == COARSE]
    found = [with_proofs(one, *every, stalls=stalls) for one in found]
    return [msgspec.structs.replace(one, doubts=[*one.doubts, *coarse]) for one in found]


def stall_rate(files: RunDir, load: Workload) -> float:
    """Return the rate below which a second of a diagnosis's segment is a stall.

    The usual rate is that of the first trial's last seconds; 0 where that is unknown.
    """
    response = load.info.response
    if not load.info.closed_loop or unit_of(response) != "/s":
        return 0.0
    first = replayed(files.trial(0), load).intervals
    return stall_below([one.values.get(response, 0.0) for one in first[-_USUAL:]])


def _in_stalls(files: RunDir, load: Workload, segments: Sequence[Outcome]) -> list[AccountLine]:
    """Return where connections are while the load stalls, on average; empty where it does not."""
    found: list[Figures] = []
    stalling = [o for o in segments if any(m.name == STALLED and m.value for m in o.metrics)]
    below = stall_rate(files, load) if stalling else 0.0
    for outcome in stalling[:_MOST_STALLING]:
        folder = files.trial(outcome.trial.id)
        intervals = replayed(folder, load).intervals
        stalls = [i.t_s for i in intervals if i.values.get(load.info.response, 0.0) < below]
        # half a second more to either side: two readings of the sample
        windows = [Window(t_s - 1.5, t_s + 0.5) for t_s in stalls]
        with suppress(HostError):  # a sample that cannot be read
            found += of_windows(folder, windows)
    means = mean(found).means
    made = account(means, connections_of(load, means)) if found else None
    return made.lines if made else []


def _cells(campaign: Campaign, done: Sequence[Outcome]) -> list[Sequence[Outcome]]:
    """Return the last trials of each treatment under each load with a server, in the spec's order.

    More of them change a mean account little.  Those that a verdict leaves out, as something else
    disturbed them, count only where a treatment has no others.
    """
    cells: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in mark_invalid([o for o in done if not o.trial.soak], campaign.rule):
        trial = outcome.trial
        if campaign.workloads[trial.workload].info.needs_server:
            cells.setdefault((trial.workload, trial.treatment), []).append(outcome)
    found = [cells[c] for c in product(campaign.workloads, campaign.treatments) if c in cells]
    return [([o for o in some if o.status is not _VOID] or some)[-_MOST:] for some in found]


def evidence(directory: Path, campaign: Campaign, outcome: Outcome) -> LoadEvidence | None:
    """Return what is known of a trial's load; None where it was not sampled."""
    made = figures(RunDir(directory).trial(outcome.trial.id), outcome.window)
    workload = campaign.workloads[outcome.trial.workload]
    found = account(made.means, connections_of(workload, made.means)) if made else None
    return LoadEvidence.of(made, found) if made and found else None


def connections_of(workload: Workload, means: Mapping[str, float]) -> float:
    """Return how many connections a load has: as the server counts them where it names none."""
    return float(getattr(workload, "threads", 0)) or _counted(means)


def keeps_rate(load: Workload) -> bool:
    """Return whether a load names a rate, which it keeps rather than wait for each reply."""
    return not load.info.closed_loop and bool(_given(load, "rate"))


def _given(load: Workload, key: str) -> object:
    """Return the value of a load's key, or of an option of its tool; None without one."""
    params = getattr(load, "params", load)
    return getattr(params, key, None) or normal(getattr(params, "options", {})).get(key)


def _counted(means: Mapping[str, float]) -> float:
    own = 1.0  # the sampler's
    return connections_listed(means) or max(means.get("status.threads_connected", 0.0) - own, 1.0)


def _diagnosed(
    path: Path, campaign: Campaign, cell: Sequence[Outcome], say: Say
) -> Diagnosis | None:
    """Return the diagnosis of the trials of one treatment under one load.

    None without a sample, except where doses have shown what needs none.
    """
    sampled: list[Figures] = []
    for outcome in cell:
        try:
            made = figures(RunDir(path).trial(outcome.trial.id), outcome.window)
        except HostError as error:
            say(f"warning: {error}; the account leaves it out")
            continue
        sampled += [made] if made else []
    first, windows = cell[0].trial, [outcome.window for outcome in cell]
    load = campaign.workloads[first.workload]
    metrics = [{m.name: m.value for m in outcome.metrics} for outcome in cell]
    rates = [one[load.info.response] for one in metrics if load.info.response in one]
    if not rates or not (sampled or isinstance(campaign.design, Doses)):
        return None
    waits = [one["latency_mean_s"] for one in metrics if "latency_mean_s" in one]
    # Little's law; a latency does not have what a terminal thinks
    follows = load.info.closed_loop and load.info.response in {"tps", "qps"}
    follows = follows and _given(load, "think_times") not in {True, "on"}
    together = mean(sampled)
    subject = Subject(
        first.treatment,
        first.workload,
        len(sampled),
        fmean(rates),
        unit_of(load.info.response),
        connections_of(load, together.means),
        fmean(rates) * fmean(waits) if waits and follows else None,
        (min(window.start_s for window in windows), max(window.end_s for window in windows)),
        paced=keeps_rate(load),
    )
    found = diagnosis(subject, together)
    disturbed = ["disturbed"] if cell[0].status is _VOID else []
    return msgspec.structs.replace(found, doubts=[*found.doubts, *disturbed])
