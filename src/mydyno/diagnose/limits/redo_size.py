"""The redo log is small: pages must be flushed before more may be logged."""

from mydyno.diagnose.account import LATCH, LOG, SLEEP, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share, summed

# Of MySQL's capacity, where connections begin to wait: two of its 32 files stay free, and a
# twentieth is the log writer's own (log0files_capacity.cc).
_SOFT = 30 / 32 * 0.95
_CAPACITY = "status.innodb_redo_log_capacity_resized"


def _age(evidence: LoadEvidence) -> float | None:
    """Return the checkpoint age of the most that may be; MySQL has its capacity from 8.0.30 on."""
    known = evidence.ratio("status.innodb_checkpoint_age", "status.innodb_checkpoint_max_age")
    if known is not None:
        return known
    age = evidence.ratio("redo.age", _CAPACITY)
    return None if age is None else age / _SOFT


def _setting(evidence: LoadEvidence) -> tuple[str]:
    """Return the setting of the log's size; of the entire log in MySQL from 8.0.30 on."""
    known = evidence.get(_CAPACITY) is not None
    return ("mysqld.innodb_redo_log_capacity" if known else "mysqld.innodb_log_file_size",)


LIMIT = Limit(
    "redo_size",
    "the size of the redo log",
    (WRITE, LATCH, LOG, SLEEP),
    signs=(
        Sign("checkpoint age of its maximum", _age, 0.75, "ratio"),
        share(0.1, WRITE, LATCH, LOG, SLEEP),
    ),
    against=(summed("redo written", ["status.innodb_os_log_written"], 1e5, "B/s", below=True),),
    doses=_setting,
)
