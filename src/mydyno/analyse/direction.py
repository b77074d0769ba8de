"""The better direction of a metric: known by its name, or declared in the spec."""

from collections.abc import Collection

HIGHER, LOWER = "higher", "lower"
DIRECTIONS = (HIGHER, LOWER)
THROUGHPUTS = ("tps", "qps", "iops")  # 0 means that the load did no work

_HIGHER = frozenset(
    {
        *THROUGHPUTS,
        "compression_ratio",
        "deliveries",
        "eps",
        "fsyncs",
        "new_orders",
        "order_statuses",
        "other",
        "payments",
        "read_bytes",
        "reads",
        "runs",
        "stock_levels",
        "trims",
        "write_bytes",
        "writes",
    }
)
_LOWER = frozenset({"errors", "queue_length", "reconnects"})


def known(metric: str) -> str | None:
    """Return ``"higher"`` or ``"lower"``, whichever is better, or None for an unknown metric."""
    if metric in _HIGHER:
        return HIGHER
    if metric in _LOWER or metric.startswith(("latency_", "storage_")) or metric.endswith("_logsd"):
        return LOWER
    return None


def is_lower(metric: str, declared: Collection[str] = ()) -> bool:
    """Return whether less of `metric` is better; `declared` are metrics of the spec.

    For a metric that is neither known nor declared, more is better: run directories of versions
    without declarations need that.
    """
    return metric in declared or known(metric) == LOWER


def always_works(metric: str, declared: Collection[str] = ()) -> bool:
    """Return whether 0 of `metric` means that no work was done, not that no error occurred."""
    return not is_lower(metric, declared) or metric.startswith("latency_")
