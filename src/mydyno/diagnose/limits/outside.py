"""The server waits for its clients: they do something else, or the network is between."""

from mydyno.diagnose.account import CLIENT
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share

LIMIT = Limit(
    "outside",
    "what is outside of the server, the load or the network",
    (CLIENT,),
    signs=(share(0.3, CLIENT),),
    against=(Sign("bytes of the link of its speed", LoadEvidence.link_used, 0.9, "ratio"),),
)
