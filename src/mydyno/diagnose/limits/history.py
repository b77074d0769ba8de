"""Old row versions pile up: purge is behind, or a transaction holds an old view."""

from collections.abc import Mapping

from mydyno.diagnose.account import CPU, LATCH, READ
from mydyno.diagnose.suspects import Limit, Sign

_NAMES = ("status.innodb_history_list_length", "innodb.trx_rseg_history_len")


def _known(of: Mapping[str, float]) -> float | None:
    """Return the list's figure, by the server's status or by its engine's metric."""
    return next((of[name] for name in _NAMES if name in of), None)


LIMIT = Limit(
    "history",
    "the history of old row versions",
    (CPU, READ, LATCH),
    signs=(
        Sign("length of the history list", lambda seen: _known(seen.figures.means), 1e6, ""),
        Sign("its rise within the window", lambda seen: _known(seen.figures.rise), 0.001, "ratio"),
    ),
    doses=("mysqld.innodb_purge_threads",),
)
