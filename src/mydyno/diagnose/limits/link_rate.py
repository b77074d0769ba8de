"""The link is full: one direction runs at its speed."""

from mydyno.diagnose.account import CLIENT, NETWORK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share

LIMIT = Limit(
    "link_rate",
    "the link's rate",
    (NETWORK, CLIENT),
    signs=(
        Sign("bytes of the link of its speed", LoadEvidence.link_used, 0.9, "ratio"),
        share(0.2, NETWORK, CLIENT),
    ),
    doses=("link.rate",),
)
