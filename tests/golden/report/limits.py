"""Diagnoses for a page: accounts of the golden evidence, proofs with intervals of all kinds."""

import json
from pathlib import Path

from mydyno.diagnose import Diagnosis, Proof, Subject, diagnosis, with_proofs
from mydyno.model import Figures

LIMITS = Path(__file__).parents[1] / "limits"
_KINDS = ("disk_ios", "flush_latency", "server_cpu", "link_rate", "table_locks")


def _one(name: str, workload: str, limit: str) -> Diagnosis:
    case = json.loads((LIMITS / limit / "evidence.json").read_text())
    figures = Figures(case["means"], case["spread"], case["rise"])
    return diagnosis(Subject(name, workload, 6, 1234.5, "/s", case["n"], 11.0), figures)


def diagnosed(treatments: list[str], workload: str) -> list[Diagnosis]:
    """Return the diagnosis of each treatment; the first one has doses."""
    found = [_one(name, workload, _KINDS[i % len(_KINDS)]) for i, name in enumerate(treatments)]
    worse = [
        Proof("disk.rate", "rate of the disk", 0.8, 1.03, 0.9, 1.16, "the_limit", 6),
        Proof("slow.host", "CPUs of this host", 0.8, 0.07, -0.06, 0.21, "not_it", 6),
        Proof("disk.flush_latency", "latency of its flushes", 0.8, 0.3, -2.5, 3.1, "undecided"),
        Proof("all", "all of these at once", 0.8, 1.01, 0.96, 1.06, "", 6),
    ]
    better = [Proof("disk.rate", "rate of the disk", 1.25, 0.98, 0.9, 1.06, "the_limit", 4)]
    relief = [Proof("try x", "mysqld.sort_buffer_size = 256K", 2.7, 0.3, 0.2, 0.4, "", 6)]
    return [with_proofs(found[0], worse, better, relief), *found[1:]]
