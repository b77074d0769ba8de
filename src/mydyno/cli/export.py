"""`mydyno export`: a treatment as files of other people's tools, each with its inverse."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.run_directory import OpenRun, opened, result
from mydyno.cli.terminal import Dir, Json, print_message, print_result
from mydyno.host import Local
from mydyno.host.files import problem_for_root
from mydyno.journal import Changing
from mydyno.journal.register import RunDir
from mydyno.keep.kept import KEPT, Bundle, Kept, KeptOn, bundle, form_of, forms
from mydyno.model import RefusedError, SpecError, unknown_value
from mydyno.report import units
from mydyno.stack.protocol import full_key, spec_key
from mydyno.stats.result import Comparison, Row

WEAKER = "weaker-durability"
_WRITE, _INVERSE, _README = "apply", "revert", "README.txt"

Name = Annotated[str | None, typer.Argument(help="A treatment; else the winner.")]
Format = Annotated[
    str,
    typer.Option(
        "--format", "-f", help="One of the formats below.", autocompletion=lambda: [*forms()]
    ),
]
Out = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A new folder.")]
On = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="KEY=VALUE",
        help="Of the host that keeps it: disk=sdc (of an array sdc,sdd), unit=mysqld.service, "
        "include=/etc/my.cnf.d, fstab=FILE, mount=/var/lib/mysql, serial=ID_WWN=0x5000c500 as "
        "udevadm info has it.",
    ),
]
Allow = Annotated[
    list[str] | None,
    typer.Option(metavar="WHAT", help=f"{WEAKER}: also what loses more in a crash."),
]


class Exported(msgspec.Struct, frozen=True):
    """What `export` wrote: files below `folder`, the keys that the format carries, and the others.

    `use` is the command that applies it.
    """

    treatment: str
    format: str
    folder: str
    files: list[str]
    carried: list[str]
    left_out: list[str]
    use: str


def export(  # noqa: PLR0913 - one parameter an option
    directory: Dir,
    treatment: Name = None,
    *,
    form: Format = "native",
    output: Out,
    target: On = None,
    allow: Allow = None,
    json: Json = False,
) -> None:
    """Write a treatment as files of other tools, each with its inverse."""
    wanted = form_of(form)
    _refuse_folder(output)
    run = opened(directory)
    found = result(directory, run).comparison
    name = chosen(directory, found, treatment)
    rows = [row for row in found.treatments if row.name == name]
    _refuse_weaker(rows, allow or [])
    kept = kept_of(directory, run, found, rows, target_of(target or []))
    made = bundle(kept, wanted)
    files = _written(output, kept, made)
    warn_unless_adopted(rows)
    if made.left_out:
        print_message(f"warning: not carried by {form}: {', '.join(made.left_out)}")
    carried, left_out = list(made.carried), list(made.left_out)
    shown = Exported(name, form, str(output), files, carried, left_out, wanted.use)
    text = "".join(f"{output}/{file}\n" for file in files) + f"next: {wanted.use}\n"
    print_result(shown, lambda: text, json=json)


def _refuse_folder(output: Path) -> None:
    """Raise an error for a folder that holds something, or, as root, that others can change."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise SpecError(f"{output}: is not empty; name a new folder with -o")
    if problem := problem_for_root(Local(), output):
        raise RefusedError(f"{output}: not safe for root: {problem}; choose another folder with -o")


def chosen(directory: Path, found: Comparison, named: str | None) -> str:
    """Return a treatment's name, that of the winner where none is named; raise `SpecError`."""
    names = [row.name for row in found.treatments]
    if named is not None and named not in names:
        raise SpecError(unknown_value(named, names, "treatment"))
    name = named or found.winner
    if name is None:
        raise SpecError(
            f"{directory}: no treatment won; name one after {directory}, or see `mydyno compare "
            f"{directory}`"
        )
    if name == found.baseline:
        raise SpecError(f"{name}: is the baseline, what the host has already; name another")
    return name


def _refuse_weaker(rows: Sequence[Row], allowed: Sequence[str]) -> None:
    if not allows_weaker(allowed) and any(row.durability == "weaker" for row in rows):
        raise RefusedError(
            f"{rows[0].name}: loses more in a crash than the baseline; add --allow {WEAKER} if "
            "that is what you want"
        )


def allows_weaker(allowed: Sequence[str]) -> bool:
    """Return whether ``--allow`` consents to less durability; raise `SpecError` for others."""
    for what in allowed:
        if what != WEAKER:
            raise SpecError(f"--allow {unknown_value(what, [WEAKER], 'consent')}")
    return bool(allowed)


def warn_unless_adopted(rows: Sequence[Row]) -> None:
    """Print a warning for each load under which the verdict on a treatment is another."""
    for row in rows:
        if row.verdict != "adopt":
            print_message(f"warning: {row.name} under {row.workload}: the verdict is {row.verdict}")


def read_export(directory: Path) -> Kept:
    """Return what `export` wrote for later; raise `SpecError` where it cannot be read."""
    path = directory / KEPT
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except OSError as error:
        raise SpecError(
            f"{path}: {error.strerror}; name a folder that mydyno export wrote"
        ) from error
    except msgspec.DecodeError as error:
        raise SpecError(f"{path}: cannot be read: {error}; export it again") from error


def target_of(pairs: Sequence[str]) -> KeptOn:
    """Return what ``--target`` gives; raise `SpecError` for an unknown key."""
    given: dict[str, str] = {}
    for pair in pairs:
        key, mark, value = pair.partition("=")
        if key not in KeptOn.__slots__:
            raise SpecError(f"--target {pair}: {unknown_value(key, KeptOn.__slots__, 'key')}")
        if not mark or not value:
            raise SpecError(f"--target {pair}: write {key}=VALUE")
        given[key] = _text(value) if key == "fstab" else value
    return KeptOn(**given)


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"--target fstab={path}: cannot be read: {error}") from error


def kept_of(
    directory: Path, run: OpenRun, found: Comparison, rows: Sequence[Row], target: KeptOn
) -> Kept:
    """Return the settings by which a treatment differs from the baseline, and the evidence."""
    treatments = run.campaign.treatments
    base = treatments[found.baseline]
    every = treatments[rows[0].name]
    settings = {k: v for k, v in every.items() if base.get(k) != v}
    tunables, library = (full_key("alloc", name) for name in ("tunables", "library"))
    if tunables in settings and library in every:  # whose variable has the tunables
        settings[library] = every[library]
    first: dict[str, str] = {}
    for event in run.contents.events:
        if isinstance(event, Changing) and not event.owned:
            first.setdefault(spec_key(event.key), event.before)
    ground = run.facts.ground
    when = datetime.fromtimestamp(RunDir(directory).journal.stat().st_mtime, UTC)
    size = units.quantity(float(ground.memory_bytes), "B")
    version = ".".join(map(str, ground.version))
    evidence = [
        f"mydyno: {rows[0].name} of the campaign {found.campaign}, {when:%Y-%m-%d}",
        *(_effect(row, found.baseline) for row in rows),
        f"measured with {ground.flavour} {version}, {ground.cores} CPUs, {size}",
        "measure again when the server, the host or the data differ",
    ]
    return Kept(
        {spec_key(key): value for key, value in settings.items()},
        evidence,
        first,
        ground.flavour or "mariadb",
        tuple(ground.version),
        target,
    )


def _effect(row: Row, baseline: str) -> str:
    ratio = units.bracketed(row.effect, 3) if row.effect else "no effect"
    return (
        f"{row.workload}: {ratio} of {baseline}; verdict {row.verdict}, durability {row.durability}"
    )


def _written(output: Path, kept: Kept, made: Bundle) -> list[str]:
    """Write all files; return their paths below the folder."""
    found = []
    for folder, files in ((_WRITE, made.write), (_INVERSE, made.inverse)):
        for file in files:
            name = f"{folder}/{file.path.lstrip('/')}"
            path = output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _new(path, file.text)
            found.append(name)
    _new(output / _README, _readme(made))
    _new(output / KEPT, msgspec.json.encode(kept.only(made.carried)).decode())
    return [*found, _README, KEPT]


def _new(path: Path, text: str) -> None:
    """Write a new file; never through a link that lies there."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def _readme(made: Bundle) -> str:
    lines = [
        f"{_WRITE}/ is {made.form.title}, {_INVERSE}/ its inverse.",
        f"To apply it: {made.form.use}.",
        *(f"After a change of {f.path}: {' '.join(f.reload)}" for f in made.write if f.reload),
        "It carries: " + ", ".join(made.carried) + ".",
    ]
    if made.left_out:
        lines.append("It does not carry: " + ", ".join(made.left_out) + ".")
    return "\n".join(lines) + "\n"
