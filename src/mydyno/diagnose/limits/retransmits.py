"""Packets are lost and sent again."""

from mydyno.diagnose.account import CLIENT, NETWORK
from mydyno.diagnose.suspects import Limit, quotient, share

LIMIT = Limit(
    "retransmits",
    "losses of the network",
    (NETWORK, CLIENT),
    signs=(
        quotient("segments sent again", ("tcp.retransmits", "tcp.out_segments"), 0.001),
        share(0.1, NETWORK, CLIENT),
    ),
)
