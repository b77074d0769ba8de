"""The link is full: one direction runs at its speed."""

from mydyno.diagnose.account import CLIENT, NETWORK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _used(evidence: LoadEvidence) -> float | None:
    ways = [evidence.ratio(name, "net.capacity") for name in ("net.rx_bytes", "net.tx_bytes")]
    return max((way for way in ways if way is not None), default=None)


LIMIT = Limit(
    "link_rate",
    "the link's rate",
    (NETWORK,),
    signs=(
        Sign("bytes of the link of its speed", _used, 0.9, "ratio"),
        share(0.2, NETWORK, CLIENT),
    ),
    doses=("link.rate",),
)
