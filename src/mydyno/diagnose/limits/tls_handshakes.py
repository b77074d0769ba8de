"""Each new connection costs both ends a TLS handshake, which is more work than a small query."""

from mydyno.diagnose.account import LOAD_CPU
from mydyno.diagnose.limits import connects
from mydyno.diagnose.suspects import Limit, quotient

LIMIT = Limit(
    "tls_handshakes",
    "TLS handshakes of new connections",
    (*connects.LIMIT.states, LOAD_CPU),
    signs=(
        *connects.LIMIT.signs,
        quotient("handshakes per connection", ("status.ssl_accepts", "status.connections"), 0.5),
    ),
    doses=("net.tls",),
)
