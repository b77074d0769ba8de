"""Connections are made and refused, rather than used."""

from mydyno.diagnose.account import CPU, LATCH, NETWORK
from mydyno.diagnose.suspects import Limit, quotient

LIMIT = Limit(
    "connects",
    "new connections",
    (CPU, NETWORK, LATCH),
    signs=(
        quotient("new connections per query", ("status.connections", "status.questions"), 0.02),
    ),
)
