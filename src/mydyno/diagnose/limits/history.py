"""Old row versions pile up: purge is behind, or a transaction holds an old view."""

from mydyno.diagnose.account import CPU, LATCH, READ
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _length(evidence: LoadEvidence) -> float | None:
    known = evidence.get("status.innodb_history_list_length")
    return known if known is not None else evidence.get("innodb.trx_rseg_history_len")


LIMIT = Limit(
    "history",
    "the history of old row versions",
    (CPU, READ, LATCH),
    signs=(Sign("length of the history list", _length, 1e6, ""),),
    doses=("mysqld.innodb_purge_threads",),
)
