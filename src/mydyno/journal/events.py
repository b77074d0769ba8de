"""What happens in a campaign, as it is written down."""

import msgspec

from mydyno.model import Outcome, Trial


class Opened(msgspec.Struct, frozen=True, tag="opened"):
    """The campaign this journal belongs to; a journal resumes no other."""

    digest: str
    name: str
    build: str = ""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """A golden copy of a data set is complete: how it is put back, and what making it took."""

    key: str
    method: str
    cost_s: float


class MeasuredValue(msgspec.Struct, frozen=True, tag="measured"):
    """Something that later trials are set up by, in base units: once for the whole campaign."""

    name: str
    value: float


class Changing(msgspec.Struct, frozen=True, tag="changing"):
    """A setting is about to move: written before anything is touched.

    `owned` settings live in things mydyno made and end with them; the others are put back.
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
    """A trial was cut short; its machine time counts, its numbers do not."""

    trial: Trial
    machine_time_s: float


class Finished(msgspec.Struct, frozen=True, tag="finished"):
    """A trial has ended; its raw output is in ``trials/NNNN``."""

    outcome: Outcome


class RolledBack(msgspec.Struct, frozen=True, tag="rolled-back"):
    """Every setting moved so far stands at its first recorded value again, observed."""

    keys: tuple[str, ...]


Event = (
    Opened | Prepared | MeasuredValue | Changing | Started | Interruption | Finished | RolledBack
)
