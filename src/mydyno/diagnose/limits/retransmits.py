"""Packets are lost and sent again."""

from mydyno.diagnose.account import CLIENT, NETWORK
from mydyno.diagnose.suspects import Limit, lasting, quotient, share

_LONGEST_S = 0.2  # until Linux sends a segment again: its least timeout

LIMIT = Limit(
    "retransmits",
    "losses of the network",
    (NETWORK, CLIENT),
    signs=(
        quotient("segments sent again", ("tcp.retransmits", "tcp.out_segments"), 0.001),
        share(0.1, NETWORK, CLIENT),
    ),
    most=lasting(_LONGEST_S, "tcp.retransmits"),
)
