"""Finding a spec: a file, a shipped recipe, or the copy in a run directory."""

import difflib
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import msgspec

from mydyno.campaign.importing import FILES
from mydyno.campaign.plan import Campaign, plan
from mydyno.campaign.spec import Spec, decode, scaled
from mydyno.campaign.treatments import Environment
from mydyno.journal import Contents, Finished, outcomes, read
from mydyno.journal.register import RunDir
from mydyno.model import JournalError, SpecError, os_errors_as


@dataclass(frozen=True, slots=True)
class SpecSource:
    """A spec's text, where it came from, and what the command line changed in it."""

    text: str
    place: str
    overrides: Mapping[str, str]

    def decode(self) -> Spec:
        """Return the spec, overrides included."""
        return decode(self.text, self.place, self.overrides)

    def plan(self, ground: Environment, *, stored: bool = False) -> Campaign:
        """Return the campaign for this environment; `stored`: from a run directory."""
        return plan(self.decode(), self.text, self.place, ground, stored=stored)


class RunFacts(msgspec.Struct, frozen=True):
    """What a run directory stores besides the spec, so that it can be read on any host."""

    place: str
    overrides: dict[str, str]
    ground: Environment
    command: str
    build: str = ""


def recipes() -> dict[str, str]:
    """Return the shipped recipes' texts by name."""
    entries = {e.name.removesuffix(".toml"): e for e in resources.files("mydyno.recipes").iterdir()}
    return {name: e.read_text() for name, e in sorted(entries.items()) if e.name != name}


def overrides(given: list[str] | None, budget: str | None) -> dict[str, str]:
    """Return ``--set`` and ``--budget`` as dotted paths of the spec and their TOML values."""
    found: dict[str, str] = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise SpecError(f"--set {item}: write KEY=VALUE, such as design.blocks=5")
        found[key.strip()] = value.strip()
    if budget:
        found["design.budget"] = f'"{budget}"'
    return found


def find(name: str, overrides: Mapping[str, str], scale: str | None = None) -> SpecSource:
    """Return the spec of a file or a recipe, at a size; raise `SpecError`.

    `overrides` take precedence over the size.
    """
    text, place = _text(name)
    size = scaled(text, place, scale) if scale else {}
    return SpecSource(text, place, {**size, **overrides})


def _text(name: str) -> tuple[str, str]:
    """Return a spec's text and its place; the error names the nearest recipe."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        try:
            return path.read_text(encoding="utf-8"), str(path)
        except OSError as error:
            raise SpecError(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise SpecError(f"{path}: not a text file: {error.reason}") from error
    shipped = recipes()
    if name in shipped:
        return shipped[name], f"{name}.toml"
    near = difflib.get_close_matches(name, shipped, 1)
    hint = f"did you mean {near[0]}?" if near else f"recipes: {', '.join(shipped)}"
    raise SpecError(f"{name}: no such file or recipe; {hint}")


def save(files: RunDir, source: SpecSource, run_facts: RunFacts) -> None:
    """Save the spec and its run facts into a run directory, once."""
    with os_errors_as(JournalError, files.path, "choose another with -o"):
        files.facts.mkdir(parents=True, exist_ok=True)
        if not files.spec.exists():
            files.spec.write_text(source.text, encoding="utf-8")
            (files.facts / "campaign.json").write_bytes(msgspec.json.encode(run_facts))


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
    except OSError as error:
        raise JournalError(
            f"{path}: not a run directory: {error.strerror}; name the directory of a run"
        ) from error
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
                f"{RunDir(path).journal}: trial {trial.id} is of {trial.treatment} under "
                f"{trial.workload}, which the campaign does not have; it is left out"
            )
            contents.events = [e for e in contents.events if e != Finished(outcome)]
    return contents, warnings
