"""What the data took on disk after the trials, as one sentence for each workload."""

from mydyno.analyse.result import Comparison, Row
from mydyno.report import units, verdicts


def sentence(compared: Comparison, workload: str) -> str:
    """Return the treatments' sizes on disk, and what was compressed; ``""`` if none is known.

    Where all show the same it is said once.
    """
    rows = [row for row in verdicts.rows(compared, workload) if "storage_bytes" in row.plain]
    sizes = [_told(row) for row in rows]
    if len(set(sizes)) > 1:
        sizes = [f"{row.name} {size}" for row, size in zip(rows, sizes, strict=True)]
    told = units.listed(list(dict.fromkeys(sizes)))
    return f"On disk after a trial: {told}." if told else ""


def _told(row: Row) -> str:
    size = units.quantity(row.plain["storage_bytes"].estimate, "B")
    ratio = row.plain.get("compression_ratio")
    saved = f", compressed {units.times(ratio.estimate)}" if ratio else ""
    return f"{size}{saved}"
