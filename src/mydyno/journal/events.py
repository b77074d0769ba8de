"""The events of a campaign in its journal."""

import msgspec

from mydyno.model import Outcome, Trial


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
