"""What else manages a server: it would take a restart for a failure, or undo a change."""

import re

from mydyno.audit.facts import ServerEvidence

# a process of the host, and what it is
_PROCESSES = {
    "pacemakerd": "Pacemaker",
    "corosync": "Corosync",
    "orchestrator": "Orchestrator",
    "replication-man": "replication-manager",  # comm is cut at 15 characters
    "mysqlrouter": "MySQL Router",
    "kubepods": "an operator of Kubernetes",
}
_HEADER = re.compile(
    r"(?:ansible|puppet|chef|salt)[- ]?managed|managed by (?:ansible|puppet|chef|salt)",
    re.IGNORECASE,
)


def managers(seen: ServerEvidence) -> list[str]:
    """Return what would act on a restart of the server, by name."""
    found = []
    if seen.variables.get("wsrep_on", "OFF") == "ON":
        found.append("Galera")
    if seen.variables.get("group_replication_group_name"):
        found.append("group replication")
    there = seen.host.get("managers", "").split()
    found += [name for process, name in _PROCESSES.items() if process in there]
    return found


def managed_files(seen: ServerEvidence) -> list[str]:
    """Return the option files that a tool writes, by its own comment in them."""
    return [path for path, text in seen.files.items() if _HEADER.search(text)]
