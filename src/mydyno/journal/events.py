"""The events of a campaign in its journal."""

from collections.abc import Iterable

import msgspec

from mydyno.model import Outcome, Settings, Trial


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The campaign this journal belongs to; a journal resumes no other."""

    digest: str
    name: str
    build: str = ""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The snapshot of a data set is complete: its restore method, and the seconds it took."""

    key: str
    method: str
    cost_s: float


class MeasuredValue(msgspec.Struct, frozen=True, tag="measured"):
    """A measurement used to set up later trials, in base units: once for a campaign."""

    name: str
    value: float


class Changing(msgspec.Struct, frozen=True, tag="changing"):
    """A setting is about to be changed: written before the change.

    `owned` settings belong to things that mydyno made and end with them; others are restored.
    """

    key: str
    before: str
    after: str
    owned: bool
    trial: int


class Started(msgspec.Struct, frozen=True, tag="started"):
    """A trial is about to run."""

    trial: Trial


class Interruption(msgspec.Struct, frozen=True, tag="interrupted"):
    """A trial was interrupted; its machine time counts, its measurements do not."""

    trial: Trial
    machine_time_s: float


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """A trial has ended; its raw output is in ``trials/NNNN``."""

    outcome: Outcome


class RolledBack(msgspec.Struct, frozen=True, tag="rolled-back"):
    """Every setting changed so far has its first recorded value again, as observed."""

    keys: tuple[str, ...]


Event = (
    Opened | Prepared | MeasuredValue | Changing | Started | Interruption | Finished | RolledBack
)


def outcomes(events: Iterable[Event]) -> tuple[Outcome, ...]:
    """Return the finished trials, in the order they finished."""
    return tuple(e.outcome for e in events if isinstance(e, Finished))


def open_trial(events: Iterable[Event]) -> Trial | None:
    """Return the trial that was started and neither finished nor interrupted."""
    running: Trial | None = None
    for event in events:
        match event:
            case Started(trial):
                running = trial
            case Finished() | Interruption():
                running = None
    return running


def lost_s(events: Iterable[Event], trial: Trial) -> float:
    """Return the machine time of the interrupted attempts at `trial`, in seconds."""
    return sum(
        e.machine_time_s for e in events if isinstance(e, Interruption) and e.trial.id == trial.id
    )


def spent_s(events: Iterable[Event]) -> float:
    """Return the machine time used so far, interrupted attempts included, in seconds."""
    finished: dict[int, float] = {}
    lost: dict[int, float] = {}
    for event in events:
        match event:
            case Finished(outcome):  # an outcome's time already holds that of its lost attempts
                finished[outcome.trial.id] = outcome.machine_time_s
            case Interruption(trial, seconds):
                lost[trial.id] = lost.get(trial.id, 0.0) + seconds
    return sum(finished.values()) + sum(s for i, s in lost.items() if i not in finished)


def measured(events: Iterable[Event]) -> dict[str, float]:
    """Return the measured values for the setup of trials, by name, in base units."""
    return {e.name: e.value for e in events if isinstance(e, MeasuredValue)}


def first_values(events: Iterable[Event], *, owned: bool = False) -> Settings:
    """Return the first recorded value of each setting moved since the last rollback.

    Settings of things that mydyno made are left out unless `owned` asks for them too.
    """
    first: dict[str, str] = {}
    for event in events:
        match event:
            case Changing(key=key, before=before, owned=ours):
                if owned or not ours:
                    first.setdefault(key, before)
            case RolledBack():
                first.clear()
    return first
