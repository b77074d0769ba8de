"""The append-only journal of a campaign, and functions over its events."""

from mydyno.journal.events import (
    Changing,
    Event,
    Finished,
    Interruption,
    MeasuredValue,
    Opened,
    Prepared,
    RolledBack,
    Started,
    first_values,
    lost_s,
    measured,
    open_trial,
    outcomes,
    spent_s,
)
from mydyno.journal.file import Contents, FileJournal, Journal, MemoryJournal, held, read

__all__ = [
    "Changing",
    "Contents",
    "Event",
    "FileJournal",
    "Finished",
    "Interruption",
    "Journal",
    "MeasuredValue",
    "MemoryJournal",
    "Opened",
    "Prepared",
    "RolledBack",
    "Started",
    "first_values",
    "held",
    "lost_s",
    "measured",
    "open_trial",
    "outcomes",
    "read",
    "spent_s",
]
