"""go-tpc beside our TPC-C: on the same server, in a schema of its own.

The account it logs in by has no password and may use only the bench's own schemas of a private
server.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from mydyno.server import Instance
from probe_process import Fault
from tpcc_ours import HOURS_S, TABLES

SCHEMA, VIEWS, USER = "gotpc", "gotpc_views", "gotpc"
_HOME = Path("/var/cache/mydyno" if os.geteuid() == 0 else "~/.cache/mydyno").expanduser()
BINARY = Path(os.environ.get("MYDYNO_CACHE") or _HOME) / "tools" / "go-tpc"
_SUMMARY = re.compile(r"^\[Summary\] (\w+) *- Takes\(s\): ([\d.]+), Count: (\d+),", re.MULTILINE)


def found() -> bool:
    """Return whether go-tpc was fetched."""
    return shutil.which(str(BINARY)) is not None


def admit(instance: Instance) -> None:
    """Make its account, its schema, and views that give each tool's tables the other's names."""
    views = [_view(f"{VIEWS}.{table}", f"sbtest.{table}1") for table in TABLES]
    instance.query(";".join([
        f"CREATE DATABASE {SCHEMA}", f"CREATE DATABASE {VIEWS}",
        f"CREATE USER {USER}@'127.0.0.1'", f"CREATE USER {USER}@localhost",
        *(f"GRANT ALL ON {schema}.* TO {USER}@{host}"
          for schema in (SCHEMA, VIEWS) for host in ("'127.0.0.1'", "localhost")),
        *views,
    ]))  # fmt: skip


def mirror(instance: Instance, database: str) -> None:
    """Give its tables our names in `database`, so that our checks can read them."""
    instance.query(";".join([
        f"CREATE DATABASE {database}", f"GRANT ALL ON {database}.* TO mydyno@'%'",
        *(_view(f"{database}.{table}1", f"{SCHEMA}.{table}") for table in TABLES),
    ]))  # fmt: skip


def _view(name: str, of: str) -> str:
    return f"CREATE VIEW {name} AS SELECT * FROM {of}"  # noqa: S608 - names of our own


def tpcc(
    instance: Instance, command: str, schema: str, *more: str, patience_s: float = HOURS_S
) -> str:
    """Run one of its commands to the end and return what it printed."""
    end = instance.endpoint
    argv = (str(BINARY), "tpcc", command, "-d", "mysql", "-H", end.tcp_host, "-P",
            str(end.tcp_port), "-U", USER, "-D", schema, *more)  # fmt: skip
    done = subprocess.run(argv, capture_output=True, check=False, timeout=patience_s, text=True)
    if done.returncode:
        raise Fault(f"go-tpc {command}: {(done.stderr or done.stdout)[:800]}")
    return done.stdout


def rates(output: str) -> tuple[float, float]:
    """Return New-Orders and all transactions per second, from what a run printed."""
    kinds = {kind: int(count) / float(s) for kind, s, count in _SUMMARY.findall(output)}
    if "NEW_ORDER" not in kinds:
        raise Fault(f"go-tpc run printed no summary of NEW_ORDER: {output[-400:]}")
    done = {kind: rate for kind, rate in kinds.items() if not kind.endswith("_ERR")}
    return kinds["NEW_ORDER"], sum(done.values())
