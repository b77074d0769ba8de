"""Statements wait for the round trips of a link that is not full."""

from mydyno.diagnose.account import NETWORK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share

LIMIT = Limit(
    "round_trips",
    "the link's round trips",
    (NETWORK,),
    signs=(
        share(0.3, NETWORK),
        figure("net.tx_packets", 1.0, "/s"),
    ),
    against=(Sign("bytes of the link of its speed", LoadEvidence.link_used, 0.5, "ratio"),),
    doses=("link.delay",),
)
