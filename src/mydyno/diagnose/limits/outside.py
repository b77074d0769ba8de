"""The server waits for its clients: they do something else, or the network is between."""

from mydyno.diagnose.account import CLIENT, pooled
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _outside(evidence: LoadEvidence) -> float | None:
    """Return the share that waits for its client; behind a pool it may wait for a thread of it."""
    return 0.0 if pooled(evidence.figures.means) else evidence.share(CLIENT)


LIMIT = Limit(
    "outside",
    "the client or the network",
    (CLIENT,),
    signs=(Sign(f"connections in {CLIENT}", _outside, 0.3, "ratio"),),
    against=(Sign("bytes of the link of its speed", LoadEvidence.link_used, 0.9, "ratio"),),
)
