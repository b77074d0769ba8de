"""Connections are made and refused, rather than used."""

from mydyno.diagnose.account import CPU, LATCH, NETWORK
from mydyno.diagnose.suspects import Limit, costing, quotient

# What a connection costs at most, in queries: without them MariaDB 10.11 did five times as many.
_COST = 10.0
_NEW = quotient("new connections per query", ("status.connections", "status.questions"), 0.02)

LIMIT = Limit(
    "connects",
    "new connections",
    (CPU, NETWORK, LATCH),
    signs=(_NEW,),
    most=costing(_COST, _NEW.value),
)
