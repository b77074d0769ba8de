"""Tables are opened again and again: the table cache is too small."""

from mydyno.diagnose.account import CPU, FAULT, LATCH
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _opened(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("status.opened_tables", "status.questions")


LIMIT = Limit(
    "table_cache",
    "the table cache",
    (LATCH, CPU, FAULT),
    signs=(Sign("tables opened per query", _opened, 0.05, "ratio"),),
    doses=("mysqld.table_open_cache",),
)
