"""The errors a user can meet, each with the exit code of its kind.

MydynoError
├── SpecError       2  the request was wrong
├── HostError       3  a host or a load failed
│   ├── DriftError  3  a change was made, but the host does not show it
│   └── UnknownEndError  3  a command was begun, and how it ended is not known
├── CampaignError   3  the campaign cannot go on
├── JournalError    2  the run directory cannot be used
├── RefusedError    4  refused for safety
└── Interrupted   130  stopped by the user; run again to resume
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar


class MydynoError(Exception):
    """An error that a user can act on; its message has place, problem and next step."""

    exit_code: ClassVar[int] = 3


class SpecError(MydynoError, ValueError):
    """The request was wrong: a spec, a key, a value or an argument."""

    exit_code = 2


class HostError(MydynoError):
    """A host could not be reached, or a command on it failed."""


class DriftError(HostError):
    """A change was made, but the host does not show it."""


class UnknownEndError(HostError):
    """A host was lost while a command may have run there; it is not repeated."""


class CampaignError(MydynoError):
    """The campaign cannot be run as asked."""


class JournalError(MydynoError):
    """The run directory's record cannot be used."""

    exit_code = 2


class RefusedError(MydynoError):
    """Refused for safety, with the option that would allow it where there is one."""

    exit_code = 4


class Interrupted(MydynoError):  # noqa: N818 - it is a request of the user's, not an error
    """The user asked to stop; the journal is intact."""

    exit_code = 130


@contextmanager
def os_errors_as(kind: type[MydynoError], place: object, step: str) -> Iterator[None]:
    """Raise an `OSError` of the block as an error of this kind: place, reason, next step."""
    try:
        yield
    except OSError as error:
        raise kind(f"{place}: {error.strerror}; {step}") from error
