"""The server refuses connections that the load needs."""

from mydyno.diagnose.account import NETWORK, THINK, UNKNOWN
from mydyno.diagnose.suspects import Limit, figure

LIMIT = Limit(
    "max_connections",
    "the number of connections allowed",
    (NETWORK, THINK, UNKNOWN),
    signs=(figure("status.connection_errors_max_connections", 0.1, "/s"),),
    doses=("mysqld.max_connections",),
)
