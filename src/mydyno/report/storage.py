"""Size of the data on disk after the trials, as one sentence for each workload."""

from mydyno.analyse.result import Comparison, Row
from mydyno.report import units, verdicts


def sentence(compared: Comparison, workload: str) -> str:
    """Return the treatments' sizes on disk, and what was compressed; ``""`` if none is known.

    Treatments with the same size are listed together.
    """
    same: dict[str, list[str]] = {}
    for row in verdicts.rows(compared, workload):
        if "storage_bytes" in row.plain:
            same.setdefault(_size(row), []).append(row.name)
    if len(same) == 1:
        return f"On disk after a trial: {next(iter(same))}."
    sizes = "; ".join(f"{units.listed(names)} {size}" for size, names in same.items())
    return f"On disk after a trial: {sizes}." if sizes else ""


def _size(row: Row) -> str:
    size = units.quantity(row.plain["storage_bytes"].estimate, "B")
    ratio = row.plain.get("compression_ratio")
    saved = f", compressed {units.times(ratio.estimate)}" if ratio else ""
    return f"{size}{saved}"
