"""Connections are made and refused, rather than used."""

from mydyno.diagnose.account import CPU, LATCH, NETWORK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _share(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("status.connections", "status.questions")


LIMIT = Limit(
    "connects",
    "new connections",
    (CPU, NETWORK, LATCH),
    signs=(Sign("new connections per query", _share, 0.02, "ratio"),),
)
