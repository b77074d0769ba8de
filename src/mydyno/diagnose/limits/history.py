"""Old row versions pile up: purge is behind, or a transaction holds an old view."""

from mydyno.diagnose.account import CPU, LATCH, READ
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _length(evidence: LoadEvidence) -> float | None:
    known = evidence.get("status.innodb_history_list_length")
    return known if known is not None else evidence.get("innodb.trx_rseg_history_len")


def _rise(evidence: LoadEvidence) -> float | None:
    """Return how much longer it is in the later half of the window, as a share of its mean."""
    rise = evidence.figures.rise
    known = rise.get("status.innodb_history_list_length")
    return known if known is not None else rise.get("innodb.trx_rseg_history_len")


LIMIT = Limit(
    "history",
    "the history of old row versions",
    (CPU, READ, LATCH),
    signs=(
        Sign("length of the history list", _length, 1e6, ""),
        Sign("its rise within the window", _rise, 0.001, "ratio"),
    ),
    doses=("mysqld.innodb_purge_threads",),
)
