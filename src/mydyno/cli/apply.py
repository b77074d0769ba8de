"""`mydyno apply`: a treatment on a production host, on trial, restored unless it is confirmed."""

import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path, PurePosixPath
from time import time
from typing import Annotated

import msgspec
import typer

from mydyno.audit.facts import ServerEvidence
from mydyno.audit.host_facts import section
from mydyno.audit.option_files import Include, read
from mydyno.cli.audit import Options
from mydyno.cli.export import (
    WEAKER,
    Allow,
    On,
    allows_weaker,
    chosen,
    kept_of,
    read_export,
    target_of,
    warn_unless_adopted,
)
from mydyno.cli.leases import (
    Why,
    begun,
    lease_of,
    leases_of,
    look_at,
    on_top,
    refuse_beside,
    refuse_open,
    refuse_shared,
    replication,
    scene_of,
    unit_of,
)
from mydyno.cli.run_directory import opened, result
from mydyno.cli.terminal import Json, folders, print_json, print_message, width
from mydyno.host import Host, is_root
from mydyno.host.processes import identify
from mydyno.keep.forms import udev
from mydyno.keep.kept import KEPT, Kept, KeptOn
from mydyno.keep.lease import (
    LeaseNote,
    LeasePlan,
    LeaseRow,
    planned,
    stored_places,
)
from mydyno.keep.refusals import (
    managed_files,
    managers,
    refuse,
    refuse_another,
    refuse_edited,
    refuse_foreign_files,
)
from mydyno.model import (
    Action,
    Change,
    Durability,
    MydynoError,
    RefusedError,
    SpecError,
)
from mydyno.model.text import duration_s
from mydyno.report import units
from mydyno.report.lease import render_plan
from mydyno.server.client import query
from mydyno.server.existing import Existing
from mydyno.server.place import Identity
from mydyno.server.programs import PATH, refuse_foreign
from mydyno.stack import cgroup
from mydyno.stack.flavours import flavours, quirks
from mydyno.stack.layers import judged
from mydyno.stack.protocol import full_key, split
from mydyno.testbed.lock import beside_no_campaign

_SHORTEST_S, _LONGEST_S = 10.0, 7 * 86400.0
_PERSISTED = "SELECT variable_name FROM performance_schema.persisted_variables;"
_IDS = r"s/^[UG]id:\s*\([0-9]*\).*/\1/p"  # the real user and group

Source = Annotated[
    Path,
    typer.Argument(
        metavar="RUN|FILE",
        help="A run directory, a folder of mydyno export, or a TOML file of settings.",
        autocompletion=folders,
    ),
]
Name = Annotated[str | None, typer.Argument(help="A treatment of the run; else the winner.")]
To = Annotated[str, typer.Option("--to", metavar="HOST", help="local, or ssh://user@host:port.")]
Length = Annotated[
    str, typer.Option("--lease", metavar="TIME", help="How long it is on trial: 30m, 2h, 7d.")
]
YesTo = Annotated[
    str, typer.Option("--yes-to", metavar="NAME", help="Begin without asking: the host's own name.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, and end.")]
Accept = Annotated[
    str, typer.Option(metavar="SENTENCE", help="With --allow: the sentence about what is lost.")
]


class Applied(msgspec.Struct, frozen=True):
    """What `apply --json` prints: the host by its own name, the lease, when it ends, what changes.

    `until` is in seconds since the epoch; with --dry-run it is 0, and there is no `id`.
    """

    host: str
    id: str
    until: float
    rows: list[LeaseRow]
    restarts: int
    evidence: list[str]


def apply(  # noqa: PLR0913 - one parameter an option
    source: Source,
    treatment: Name = None,
    *,
    to: To,
    server: Options = "",
    lease: Length = "30m",
    target: On = None,
    allow: Allow = None,
    accept: Accept = "",
    why: Why = "",
    yes_to: YesTo = "",
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Put a treatment on trial on a host; without `confirm` everything is restored."""
    seconds = _seconds(lease)
    wanted, foretold = _wanted(source, treatment, target_of(target or []))
    existing, seen = look_at(to, server)
    refuse_beside(existing.host, to)
    kept, already, plan = _planned(wanted, existing, seen)
    sentence = _losses(plan)
    _refuse_weaker(sentence, allow or [])
    _validate(existing, plan)
    name = name_of(seen, existing.host)
    shown = Applied(name, "", 0.0, list(plan.rows), int(plan.restart), list(kept.evidence))
    if not (dry_run and json):
        text = render_plan(name, plan, kept.evidence, seconds, width(), seen.data_bytes)
        (sys.stdout if dry_run else sys.stderr).write(text)
    if not dry_run:
        consent(name, yes_to, sentence, accept)
        note = _noted(kept, already, plan, foretold, seen)
        reason = why or f"mydyno apply {source}{f' {treatment}' if treatment else ''}"
        asked = lease_of(existing, seen, name, plan, reason, seconds=round(seconds), note=note)
        # a campaign that runs takes what is in force now for the host's own
        with beside_no_campaign(existing.host):
            begun(existing.host, to, server, asked, plan, kept)
        shown = msgspec.structs.replace(shown, id=asked.id, until=time() + seconds)
    if json:
        print_json(shown)
    elif not dry_run:
        sys.stdout.write(
            f"{name}: on trial for {units.duration(seconds)}; then everything is restored\n"
            f"next: mydyno confirm {to}, or mydyno rollback {to}\n"
        )


def _planned(
    wanted: Kept, existing: Existing, seen: ServerEvidence
) -> tuple[Kept, dict[str, str], LeasePlan]:
    """Return a treatment for this host, the settings kept there already, and what it changes.

    Raises an error for what a lease cannot change, or where another one is open.
    """
    leases = leases_of(existing.host)
    refuse_open(leases)
    kept = _with_quota(_on(wanted, existing, seen))
    refuse(kept, with_persisted(existing, seen))
    refuse_another(kept, leases)
    if kept.of("mysqld"):
        refuse_shared(existing)
    already = on_top(leases).all
    every = replace(kept, settings={**already, **kept.settings})
    scene = scene_of(existing, seen, kept, every)
    refuse_foreign_files({p: scene.texts.get(p) for p in stored_places(every)}, leases)
    plan = planned(kept, already, scene)
    refuse_edited(plan.stored, leases)
    _refuse_managed(plan, seen)
    return kept, already, plan


def with_persisted(existing: Existing, seen: ServerEvidence) -> ServerEvidence:
    """Return it with what is persisted since the server's start, whose origin it does not show."""
    if not quirks(existing.flavour, existing.version).persists:
        return seen
    names = [name for (name,) in query(existing.host, existing.argv, _PERSISTED, 60.0)]
    persisted = dict.fromkeys(names, ("persisted", ""))
    return msgspec.structs.replace(seen, origins={**seen.origins, **persisted})


def _with_quota(kept: Kept) -> Kept:
    """Return it with its CPU quota as the kernel keeps it; raise `SpecError` for one that is none.

    systemd passes over a line that it does not understand.
    """
    made, _ = cgroup.normal(kept.of("cgroup"))
    return replace(
        kept, settings={**kept.settings, **{f"cgroup.{key}": value for key, value in made.items()}}
    )


def _noted(
    kept: Kept,
    already: Mapping[str, str],
    plan: LeasePlan,
    foretold: dict[str, str],
    seen: ServerEvidence,
) -> LeaseNote:
    settings = {row.key: row.wanted for row in plan.rows}
    return LeaseNote(
        settings,
        {**plan.along, **{row.key: row.before for row in plan.rows}},
        {**already, **settings},
        list(kept.evidence),
        foretold,
        kept.target,
        replication(seen),
    )


def _seconds(text: str) -> float:
    seconds = duration_s(text, "--lease")
    if not _SHORTEST_S <= seconds <= _LONGEST_S:
        raise SpecError(f"--lease {text}: from 10s to 7d")
    return seconds


def _wanted(source: Path, treatment: str | None, target: KeptOn) -> tuple[Kept, dict[str, str]]:
    """Return the treatment, and what its campaign foretold of each load."""
    is_export = (source / KEPT).is_file()
    if treatment and (source.is_file() or is_export):
        raise SpecError(f"{treatment}: {source} is one treatment; leave its name out")
    if source.is_file():
        return Kept(_table(source), [f"mydyno: settings of {source.name}"], target=target), {}
    if is_export:
        return replace(read_export(source), target=target), {}  # its own may be of another host
    run = opened(source)
    found = result(source, run).comparison
    name = chosen(source, found, treatment)
    rows = [row for row in found.treatments if row.name == name]
    foretold = {row.workload: units.bracketed(row.effect, 2) for row in rows if row.effect}
    warn_unless_adopted(rows)
    return kept_of(source, run, found, rows, target), foretold


def _table(path: Path) -> dict[str, str]:
    """Return the settings of a TOML file: ``[mysqld]`` tables or full keys."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{path}: {error}; write TOML: [mysqld] and one setting a line") from error
    found: dict[str, str] = {}

    def walk(prefix: str, table: Mapping[str, object]) -> None:
        for key, value in table.items():
            name = f"{prefix}{key}"
            if isinstance(value, dict):
                walk(f"{name}.", value)
            elif isinstance(value, bool):
                found[name] = "ON" if value else "OFF"
            elif isinstance(value, str | int | float):
                found[name] = str(value)
            else:
                raise SpecError(f"{path}: {name}: a list or date is no setting; write text")

    walk("", table)
    if not found:
        raise SpecError(f"{path}: sets nothing; write [mysqld] and one setting a line")
    return found


def name_of(seen: ServerEvidence, host: Host) -> str:
    """Return the host's own name."""
    return section(seen.host, "system").get("name", host.name)


def _on(wanted: Kept, existing: Existing, seen: ServerEvidence) -> Kept:
    """Return a treatment for this host: its flavour, unit, disks, folder of option files."""
    given = wanted.target
    if given.fstab:
        raise SpecError("--target fstab=: apply edits the host's own table; leave it out")
    disk = given.disk or section(seen.host, "queue").get("disks", "")
    mount = given.mount or _mounted_at(existing)
    table = existing.host.run(Action(("cat", "/etc/fstab"))).stdout.decode(errors="replace")
    target = KeptOn(
        unit_of(seen),
        given.include or include_of(existing, seen),
        disk,
        table,
        mount,
        given.serial or ",".join(_serial(existing.host, one) for one in disk.split(",")),
    )
    return replace(wanted, flavour=existing.flavour, version=existing.version, target=target)


def _serial(host: Host, disk: str) -> str:
    """Return what udev knows a disk by in every boot, ``""`` where it knows nothing."""
    argv = ("udevadm", "info", "--query=property", f"--name=/dev/{disk}")
    return udev.serial(host.run(Action(argv)).stdout.decode(errors="replace")) if disk else ""


def _mounted_at(existing: Existing) -> str:
    argv = ("findmnt", "--noheadings", "--output", "TARGET", "--target", existing.data)
    return existing.host.run(Action(argv)).stdout.decode(errors="replace").strip()


def include_of(existing: Existing, seen: ServerEvidence) -> str:
    """Return the last folder of option files that the server reads, or the usual one.

    Raises `SpecError` where it reads none.
    """
    usual = flavours()[existing.flavour].usual.include
    folders_read = [
        str(PurePosixPath(one.path))
        for path, text in seen.files.items()
        for one in read(path, text, frozenset())
        if isinstance(one, Include) and one.folder
    ]
    if folders_read:
        return usual if usual in folders_read else folders_read[-1]
    raise SpecError(
        f"{existing.host.name}: the server reads no folder of option files; add `!includedir "
        f"{usual}` to its option file, or keep it with mydyno export"
    )


def _refuse_managed(plan: LeasePlan, seen: ServerEvidence) -> None:
    """Raise an error where a restart would meet a manager of the server."""
    found = managers(seen)
    if found and plan.restart:
        raise RefusedError(
            f"{seen.name}: {found[0]} manages the server, and this needs a restart; make the "
            "change there, from mydyno export"
        )
    for one in (*found, *managed_files(seen)):
        print_message(f"warning: {one}: what manages it may undo a change")


def _losses(plan: LeasePlan) -> str:
    """Return what a crash loses with it and not before, or ``""``."""
    changes = [
        Change(full_key(*row.key.split(".", 1)), row.before, row.wanted, Action(()))
        for row in plan.rows
    ]
    settings = split({change.key: change.after for change in changes})
    weaker = [
        change.key.rpartition(".")[2]
        for change in judged(changes, settings, {}, {})
        if change.durability is Durability.WEAKER
    ]
    table = tomllib.loads(files("mydyno.keep").joinpath("losses.toml").read_text("utf-8"))
    return "; ".join(dict.fromkeys(table.get(key, table["other"]) for key in weaker))


def _refuse_weaker(sentence: str, allowed: Sequence[str]) -> None:
    if sentence and not allows_weaker(allowed):
        raise RefusedError(f"{sentence}; leave that setting out, or add --allow {WEAKER}")


def _validate(existing: Existing, plan: LeasePlan) -> None:
    """Raise `SpecError` for an option that the server's program does not take.

    Some variables can be set while it runs and are no options, so that it would not start again.
    The server's user can choose which process is looked at, so the program runs with that user's
    rights, and only where nobody but root can replace it.
    """
    options = [
        f"--{row.key.removeprefix('mysqld.')}={row.wanted}"
        for row in plan.rows
        if row.key.startswith("mysqld.") and row.key != "mysqld.log_bin"
    ]
    host = existing.host
    if existing.process is None or not (options and is_root(host)):
        return
    process = identify(host, existing.process.pid)
    if process is None:
        return
    try:
        refuse_foreign(host, Path(process.program))
    except MydynoError as error:
        print_message(f"warning: options are not tried: {error}")
        return
    shown = host.run(Action(("sed", "-n", _IDS, f"/proc/{process.pid}/status"))).check().stdout
    user = Identity("the server's", *map(int, shown.split()))
    alone = (*user.drop(), "env", "-i", PATH, "LC_ALL=C")
    tries = quirks(existing.flavour, existing.version).tries
    argv = (*alone, process.program, *options, *tries)
    done = host.run(Action(argv), timeout_s=60)
    lines = [one for one in done.stderr.decode(errors="replace").splitlines() if "[ERROR]" in one]
    if lines:
        raise SpecError(f"the server does not take it: {lines[0].partition('[ERROR]')[2].strip()}")


def consent(name: str, yes_to: str, sentence: str, accept: str) -> None:
    """Ask for the host's name, and for the sentence about what is lost; raise unless given."""
    if not yes_to and not sys.stdin.isatty():
        raise SpecError(f"nobody can be asked here; add --yes-to {name} if that is the host")
    if sentence and accept != sentence:
        if accept or not sys.stdin.isatty():
            raise RefusedError(f"add --accept {sentence!r} if that is what you accept")
        if (
            _typed(f"this weakens durability; type what is lost to accept it:\n  {sentence}\n")
            != sentence
        ):
            raise RefusedError("that is not the sentence; nothing was changed")
    if (yes_to or _typed(f"type {name} to begin: ")) != name:
        raise RefusedError(f"the host's name is {name}; nothing was changed")


def _typed(question: str) -> str:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()
