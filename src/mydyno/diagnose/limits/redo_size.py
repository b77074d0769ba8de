"""The redo log is small: pages must be flushed before more may be logged."""

from mydyno.diagnose.account import LATCH, LOG, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _age(evidence: LoadEvidence) -> float | None:
    """Return the checkpoint age of the most that may be; MySQL names it from 8.0.30 on."""
    known = evidence.ratio("status.innodb_checkpoint_age", "status.innodb_checkpoint_max_age")
    if known is not None:
        return known
    return evidence.ratio("redo.age", "status.innodb_redo_log_capacity_resized")


def _redo(evidence: LoadEvidence) -> float | None:
    return evidence.get("status.innodb_os_log_written")


LIMIT = Limit(
    "redo_size",
    "the size of the redo log",
    (WRITE, LATCH, LOG),
    signs=(
        Sign("checkpoint age of its maximum", _age, 0.75, "ratio"),
        share(0.1, WRITE, LATCH, LOG),
    ),
    against=(Sign("redo written", _redo, 1e5, "B/s", below=True),),
    doses=("mysqld.innodb_log_file_size",),
)
