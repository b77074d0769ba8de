"""Packets are lost and sent again."""

from mydyno.diagnose.account import CLIENT, NETWORK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _lost(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("tcp.retransmits", "tcp.out_segments")


LIMIT = Limit(
    "retransmits",
    "losses of the network",
    (NETWORK,),
    signs=(
        Sign("segments sent again", _lost, 0.001, "ratio"),
        share(0.1, NETWORK, CLIENT),
    ),
)
