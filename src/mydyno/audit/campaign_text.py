"""The campaign that tests an audit's advice at the server's own shape, as a spec.

Its baseline has the settings as found; each proposal is a treatment that differs from it in its own
keys only.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from mydyno.audit.expression import Values
from mydyno.audit.facts import ServerEvidence, ServerFacts
from mydyno.audit.findings import Audit, Proposal, RuleFinding
from mydyno.audit.option_files import written

FOUND = "FOUND"
_ROW = 240.0  # bytes of a row of sysbench's tables with its index
_TABLES = 8
_LEAST, _MOST = 64 * 2.0**20, 512 * 2.0**30  # bytes of data
_SPARE = 3 * 2**30  # bytes of the lab disk beside the data: redo log, temporary files

# What is of one place and not of a configuration, or is mydyno's to set on a private server.
_LEFT_OUT = re.compile(
    r"(port|socket|datadir|basedir|tmpdir|pid_file|bind_address|user|server_id|hostname|"
    r"skip_networking|secure_file_priv|plugin.*|init_.*|ssl.*|tls.*|report_.*|.*_file|.*_dir|"
    r".*_path|log_error.*|log_bin.*|log_basename|relay_log.*|replicate.*|gtid.*|read_only|"
    r"super_read_only|wsrep.*|event_scheduler|skip_slave_start|skip_replica_start|admin_.*|"
    r"mysqlx.*|character_set.*|collation.*|lower_case.*|sql_mode|default_.*|innodb_buffer_pool_load"
    r"_at_startup|innodb_buffer_pool_dump_at_shutdown|performance_schema.*|require_secure.*|"
    r"foreign_key_checks|unique_checks|autocommit|sql_.*|pseudo_.*|profiling.*|timestamp|rand_seed.*|"
    r"innodb_page_size|innodb_data_.*|innodb_undo_.*|authentication.*|validate_.*)"
)
_PLAIN = re.compile(r"[\w.+-]+")
_ORIGINS = {"file", "command_line", "dynamic", "persisted"}
_UNLIKELY = 0.98  # share of reads from which a load has no writes worth running


def as_found(seen: ServerEvidence, known: ServerFacts) -> dict[str, str]:
    """Return the settings that are not the server's defaults, as keys of a spec."""
    set_there = {option.name for option in known.options}
    set_there |= {name for name, (origin, _) in seen.origins.items() if origin in _ORIGINS}
    found = {}
    for name in sorted(set_there & seen.variables.keys()):
        value = seen.variables[name]
        if not _LEFT_OUT.fullmatch(name) and _PLAIN.fullmatch(value):
            number = re.fullmatch(r"\d+(\.\d+)?", value)
            found[f"mysqld.{name}"] = written(float(value)) if number else value
    if known.values.get("process.allocator", "glibc") != "glibc":
        found["alloc.library"] = str(known.values["process.allocator"])
    return found


def campaign_text(seen: ServerEvidence, known: ServerFacts, found: Audit) -> str:
    """Return the spec: the shape observed, and one treatment for each proposal."""
    base = as_found(seen, known)
    proposals = _distinct(found)
    data = _data(known.values)
    lines = [
        f"# What an audit of {_comment(seen.name)} ({_comment(seen.text)}) found worth testing.",
        "# The baseline has the settings as found; data and load have the shape that was observed.",
        "# First: mydyno plan, with --budget and with --set to leave treatments out.",
        *_consent(proposal.settings for _, proposal in proposals.values()),
        "[campaign]",
        f"name = {json.dumps(f'audit-{_name(seen.name)}')}",
        'question = "Which of these settings are better for this server?"',
        "",
        "[stack]",
        f"server = {json.dumps(_program(seen))}   # on another machine: the folder of this release",
        f'device = {{ lab = "loop", size = "{_size(data)}" }}   # or the class of its disk',
        "",
        f"[bundles.{FOUND}]   # {len(base)} settings that are not the server's defaults",
        *_table(base),
    ]
    for name, (one, proposal) in proposals.items():
        lines += ["", f'[bundles."{name}"]   # {one.rule}: {", ".join(one.source)}']
        lines += _table(proposal.settings)
    rungs = [FOUND, *(f"{FOUND}+{name}" for name in proposals)]
    return "\n".join([*lines, "", *_load(known.values, data), "", *_design(rungs)]) + "\n"


def _distinct(found: Audit) -> dict[str, tuple[RuleFinding, Proposal]]:
    """Return the proposals by name; two rules may propose the same setting."""
    made: dict[str, tuple[RuleFinding, Proposal]] = {}
    for one in found.findings:
        for proposal in one.proposals if one.kind == "test" else ():
            taken = made.get(proposal.name)
            if taken and taken[1].settings != proposal.settings:
                made[f"{proposal.name}-{one.rule}"] = one, proposal
            elif not taken:
                made[proposal.name] = one, proposal
    return made


def _design(rungs: Sequence[str]) -> list[str]:
    return [
        "[design]",
        'kind = "race"',
        "rungs = [",
        *(f'  "{rung}",' for rung in rungs),
        "]",
        "",
        "[decide]",
        f'baseline = "{FOUND}"',
    ]


def _program(seen: ServerEvidence) -> str:
    """Return the folder of the server's program, where it runs here and is not the system's."""
    folder = seen.variables.get("basedir", "").rstrip("/")
    return folder if seen.host and folder not in {"", "/usr", "/"} else "auto"


def _consent(settings: Iterable[Mapping[str, str]]) -> list[str]:
    keys = {key for table in settings for key in table}
    if any(key.startswith("kernel.") for key in keys):
        return [
            "# Settings of the kernel are tried on the machine itself: run it with --allow host."
        ]
    return []


def _table(settings: Mapping[str, str]) -> list[str]:
    return [f'"{key}" = {json.dumps(value)}' for key, value in settings.items()]


def _data(values: Values) -> float:
    data = values.get("fact.data", 2.0**30)
    return min(max(data if isinstance(data, float) else 2.0**30, _LEAST), _MOST)


def _size(data: float) -> str:
    return f"{-int(-(2 * data + _SPARE) // 2**30)}G"


def _load(values: Values, data: float) -> list[str]:
    share, busy = values.get("fact.read_share", 0.7), values.get("fact.running_peak", 8.0)
    reads = share if isinstance(share, float) else 0.7
    script = "oltp_read_only" if reads >= _UNLIKELY else "oltp_read_write"
    threads = max(4, round(busy)) if isinstance(busy, float) else 8
    return [
        "[workloads.observed]",
        f"# {100 * reads:.0f} % of the statements were reads; {threads} connections at work",
        'tool = "sysbench-oltp"',
        f'script = "{script}"',
        f"tables = {_TABLES}",
        f"table_size = {round(data / _TABLES / _ROW)}",
        f"threads = [{threads}]",
    ]


def _name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9-]+", "-", text).strip("-") or "server"


def _comment(text: str) -> str:
    return re.sub(r"[^\x20-\x7e]", "?", text)[:80]
