"""`mydyno audit`: faults, promises and advice worth a test, of a running server; read-only."""

import hashlib
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.audit.campaign_text import FOUND, campaign_text
from mydyno.audit.facts import ServerEvidence, ServerFacts, facts
from mydyno.audit.findings import (
    Audit,
    Remembered,
    RuleFinding,
    Tested,
    Unevaluated,
    evaluate,
    proposal_name,
    remembered,
)
from mydyno.audit.rules import counters, rules
from mydyno.cli.run_directory import result
from mydyno.cli.terminal import HostOption, Json, folders, print_message, print_result, width
from mydyno.host import LOCAL, reach
from mydyno.journal.register import state_folder, state_place
from mydyno.keep.history import PEAK_DAYS, peaks
from mydyno.model import MydynoError, SpecError
from mydyno.model.text import duration_s
from mydyno.report import units
from mydyno.report.findings import heading, message, render_audit, render_inventory
from mydyno.server.existing import (
    Existing,
    environment_of,
    group_suffix,
    host_outputs,
    look,
    option_files,
    reached,
)
from mydyno.stack.known.variables import RENAMED
from mydyno.stats.decide import GATES

_FOLDER = "audit"
_LONGEST_S = 3600.0
FINDINGS = 1  # exit code where there are findings

Options = Annotated[
    str,
    typer.Option(
        "--server",
        "--server-defaults",
        metavar="FILE",
        help="Which server: a client option file, or a socket, on the host.",
    ),
]
Watch = Annotated[str, typer.Option(help="How long the server is watched for rates; 0s: not.")]
SpecFile = Annotated[
    Path | None,
    typer.Option("--spec", metavar="FILE", help="Write the campaign that tests the advice."),
]
TestedBy = Annotated[
    Path | None,
    typer.Option(
        "--tested",
        metavar="RUN",
        help="Remember what a run of such a campaign found.",
        autocompletion=folders,
    ),
]
Url = Annotated[
    str, typer.Option(metavar="URL", help="Prometheus: peaks of a month instead of one watch.")
]
Instance = Annotated[str, typer.Option(help="With --prometheus: the server's label instance.")]
WhyNot = Annotated[bool, typer.Option("--why-not", help="Also list rules without an answer.")]
Inventory = Annotated[
    bool, typer.Option("--inventory", help="Also list host, disk, limits and settings.")
]


class AuditReport(msgspec.Struct, frozen=True):
    """What `audit --json` prints: the server, the findings with their messages, the memory.

    Bytes; `promised` at the level that was seen, `worst` with every connection at work.
    """

    server: str
    flavour: str
    version: tuple[int, ...]
    watched_s: float
    findings: list["Reported"]
    unevaluated: list[Unevaluated]
    evaluated: int
    memory: dict[str, float]
    problems: list[str]
    host: dict[str, str]
    settings: list["SettingRow"]


class SettingRow(msgspec.Struct, frozen=True):
    """A variable that is not at its default, and where it is set: ``/etc/my.cnf:31``."""

    name: str
    value: str
    where: str


class Reported(msgspec.Struct, frozen=True):
    """A finding, and its message as text."""

    message: str
    finding: RuleFinding


def audit(  # noqa: PLR0913 - one parameter an option
    *,
    host: HostOption = LOCAL,
    server: Options = "",
    watch: Watch = "60s",
    spec: SpecFile = None,
    tested: TestedBy = None,
    prometheus: Url = "",
    instance: Instance = "",
    why_not: WhyNot = False,
    inventory: Inventory = False,
    json: Json = False,
) -> None:
    """Look at a running server: what is wrong, and what to test; nothing is changed."""
    seconds = _seconds(watch)
    if bool(prometheus) != bool(instance):
        raise SpecError("--prometheus URL and --instance NAME go together; give both")
    if spec is not None and (spec.exists() or spec.is_symlink()):  # nor through a link
        raise SpecError(f"{spec}: exists already; remove it, or name another file")
    existing = reached(reach(host), server)
    if seconds:
        print_message(f"watching {existing.text} for {units.duration(seconds)}")
    seen = _with_peaks(gathered(existing, round(seconds)), prometheus, instance)
    known = facts(seen)
    found = judged(seen, known, tested)
    if spec is not None:
        with spec.open("x", encoding="utf-8") as file:
            file.write(campaign_text(seen, known, found))
        print_message(f"{spec} written; next: mydyno plan {spec}")
    text = render_audit(heading(seen, known), found, width(), unevaluated=why_not)
    text += render_inventory(*_inventory(seen, known), width()) if inventory else ""
    print_result(_report(seen, known, found), lambda: text, json=json)
    for problem in seen.problems:
        print_message(f"warning: not read: {problem}")
    if any(one.kind in {"fault", "promise", "test"} for one in found.findings):
        raise typer.Exit(FINDINGS)


def _seconds(watch: str) -> float:
    seconds = duration_s(watch, "--watch")
    if seconds > _LONGEST_S:
        raise SpecError(f"--watch: at most {units.duration(_LONGEST_S)}; write 60s or 5m")
    return seconds


def _with_peaks(seen: ServerEvidence, url: str, instance: str) -> ServerEvidence:
    """Return the evidence with the fastest hour of each counter; raise `SpecError` without any."""
    if not url:
        return seen
    found = peaks(url, instance, counters())
    if not found:
        raise SpecError(
            f"--instance {instance}: Prometheus has no mysqld_exporter's counters of it; check the "
            "label instance"
        )
    return msgspec.structs.replace(seen, peaks=found, peak_s=PEAK_DAYS * 86400.0)


def gathered(existing: Existing, seconds: int) -> ServerEvidence:
    """Return what is read of a server, of its option files and of its host."""
    looked = look(existing, seconds)
    process = existing.process
    environment = (environment_of(existing.host, process.pid) if process else None) or {}
    start, files, modes = option_files(existing, environment)
    host = host_outputs(existing)
    if files:
        host["modes"] = "\n".join(f"{path}={mode}" for path, mode in modes.items())
    renamed = {new: v for old, new in RENAMED.items() if (v := looked.variables.get(old))}
    return ServerEvidence(
        name=looked.variables.get("hostname", existing.host.name),
        flavour=existing.flavour,
        version=existing.version,
        text=existing.text,
        variables={**renamed, **looked.variables},
        looks=(dict(looked.looks[0]), dict(looked.looks[1])),
        seconds=looked.seconds,
        running=tuple(looked.running),
        origins=dict(looked.origins),
        replica=dict(looked.replica),
        data_bytes=looked.data_bytes,
        suffix=group_suffix(existing, environment),
        start=start,
        files=files,
        host=host,
        problems=tuple(looked.problems),
    )


def judged(seen: ServerEvidence, known: ServerFacts, tested: Path | None = None) -> Audit:
    """Return the findings, and remember them for the next audit of this server.

    What the run `tested` is remembered with those that propose it.
    """
    path = state_place() / _FOLDER / f"{_id(seen)}.json"
    before: dict[str, Remembered] = {}
    with suppress(OSError, msgspec.DecodeError):
        before = msgspec.json.decode(path.read_bytes(), type=dict[str, Remembered])
    found = evaluate(seen, known, rules(), _today(), before)
    if tested is not None:
        before = _with_verdicts(remembered(found), tested, seen, known)
        found = evaluate(seen, known, rules(), _today(), before)
    with suppress(OSError, MydynoError):  # what cannot be remembered is found again
        (state_folder(_FOLDER) / path.name).write_bytes(msgspec.json.encode(remembered(found)))
    return found


def _with_verdicts(
    before: dict[str, Remembered], run: Path, seen: ServerEvidence, known: ServerFacts
) -> dict[str, Remembered]:
    """Return what is remembered with the verdicts of a run; raise `SpecError` if it has none."""
    found = result(run).comparison
    verdicts = {
        row.name.removeprefix(f"{FOUND}+"): Tested(
            row.name.removeprefix(f"{FOUND}+"),
            row.verdict,
            units.bracketed(row.effect, 3),
            found.campaign,
            seen.flavour,
            seen.version[:2],
            known.memory.limit or 0.0,
        )
        for row in found.treatments
        if row.effect and row.verdict in GATES
    }
    made = {}
    for rule, one in before.items():
        names = [proposal_name(settings) for settings in one.proposed]
        new = [verdicts[name] for name in names if name in verdicts]
        old = [t for t in one.tested if t.proposal not in verdicts]
        made[rule] = Remembered(one.since, one.proposed, [*old, *new])
    if not any(one.tested for one in made.values()):
        raise SpecError(
            f"{run}: decides nothing that this audit proposes; name a run of a campaign that "
            "mydyno audit --spec wrote for this server"
        )
    return made


def _id(seen: ServerEvidence) -> str:
    """Return an id of the server: its uuid, or its host and data folder."""
    own = seen.variables.get("server_uuid") or seen.variables.get("server_uid", "")
    text = own or f"{seen.name} {seen.variables.get('datadir', '')}"
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def _today() -> date:
    return datetime.now(UTC).date()


def _report(seen: ServerEvidence, known: ServerFacts, found: Audit) -> AuditReport:
    host, settings = _inventory(seen, known)
    return AuditReport(
        server=seen.text,
        flavour=seen.flavour,
        version=seen.version,
        watched_s=seen.seconds,
        findings=[Reported(message(one.message), one) for one in found.findings],
        unevaluated=list(found.unevaluated),
        evaluated=found.evaluated,
        memory=known.memory.known,
        problems=list(seen.problems),
        host=host,
        settings=[SettingRow(*row) for row in settings],
    )


_LISTED = ("disk.", "limit.", "mount.type", "process.allocator", "host.thp", "host.kernel")


def _inventory(
    seen: ServerEvidence, known: ServerFacts
) -> tuple[dict[str, str], list[tuple[str, str, str]]]:
    """Return what the host is by name, and each setting that is no default with its place."""
    host = {
        name: str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        for name, value in known.values.items()
        if name.startswith((*_LISTED, "sysctl.", "host.numa", "host.governor", "host.unit"))
    }
    if mount := seen.host.get("mount", "").strip():
        host["mount.options"] = mount.partition(" ")[2]
    for line in seen.host.get("nic", "").splitlines():
        name, _, rest = line.partition(" ")
        host[f"nic.{name}"] = rest
    settings = [
        (name, seen.variables[name], where)
        for name, where in sorted(known.where.items())
        if name in seen.variables
    ]
    return dict(sorted(host.items())), settings
