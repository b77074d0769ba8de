"""Each new connection costs both ends a TLS handshake, which is more work than a small query."""

from mydyno.diagnose.account import CPU, LATCH, LOAD_CPU, NETWORK
from mydyno.diagnose.suspects import Limit, quotient

LIMIT = Limit(
    "tls_handshakes",
    "TLS handshakes of new connections",
    (CPU, LOAD_CPU, NETWORK, LATCH),
    signs=(
        quotient("new connections per query", ("status.connections", "status.questions"), 0.02),
        quotient("handshakes per connection", ("status.ssl_accepts", "status.connections"), 0.5),
    ),
    doses=("net.tls",),
)
