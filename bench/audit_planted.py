"""Planted faults named by `mydyno audit`, MySQLTuner and pt-variable-advisor, on the same servers.

`python bench/audit_planted.py [--only SERVER]` starts a private server with many faults in its
option file and once more as it is by default, runs sysbench on it, and asks each tool.  A rival
names a fault where its advice has the variable's name.  `make bench-audit` runs it.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from decisions_table import share
from mydyno.host import Local
from mydyno.server import Instance, find, prepare
from probe_server import sysbench

HERE = Path(__file__).parent
MYDYNO = str(Path(sys.executable).with_name("mydyno"))
CACHE = Path("/var/cache/mydyno/servers")
SERVERS = {
    "mariadb-10.11": "auto",
    "mysql-8.0.33": str(CACHE / "mysql-8.0.33"),
    "mysql-5.6.14": str(CACHE / "mysql-5.6.14"),
    "mariadb-11.4.5": str(CACHE / "mariadb-11.4.5"),
}
WATCH_S, LOAD_S = 20, 60

# variable: its planted value, and the rules of which one must name it
Fault = tuple[str, tuple[str, ...]]
BOTH: Mapping[str, Fault] = {
    "innodb_doublewrite": ("0", ("doublewrite-off", "doublewrite-carried-over")),
    "innodb_flush_log_at_trx_commit": ("2", ("trx-commit-weak",)),
    "sync_binlog": ("0", ("sync-binlog-weak", "mariadb-binlog-unsynced")),
    "innodb_buffer_pool_size": ("64M", ("pool-default", "pool-small")),
    "innodb_log_file_size": ("8M", ("redo-below-default", "redo-small")),
    "innodb_io_capacity": ("20000", ("io-capacity-high",)),
    "innodb_max_dirty_pages_pct": ("5", ("dirty-pages-low",)),
    "sort_buffer_size": ("64M", ("sort-buffer-cliff", "sort-join-large")),
    "join_buffer_size": ("64M", ("sort-join-large",)),
    "read_rnd_buffer_size": ("16M", ("read-buffers-large",)),
    "max_connections": ("5000", ("connections-beyond-peak", "connections-promise")),
    "thread_cache_size": ("0", ("thread-cache-off", "thread-cache-small")),
    "table_open_cache": ("50", ("table-cache-below-default", "table-cache-small")),
    "back_log": ("10", ("back-log-small",)),
    "general_log": ("1", ("general-log-on",)),
    "long_query_time": ("0", ("slow-log-all",)),
    "log_output": ("TABLE", ("log-to-table",)),
    "innodb_stats_on_metadata": ("1", ("stats-on-metadata",)),
    "innodb_flush_neighbors": ("1", ("flush-neighbors",)),
    "key_buffer_size": ("512M", ("key-buffer-idle",)),
    "tmp_table_size": ("1G", ("tmp-table-large",)),
    "innodb_fast_shutdown": ("2", ("fast-shutdown-crash",)),
    "innodb_log_buffer_size": ("1M", ("log-buffer-below-default", "log-buffer-waits")),
    "open_files_limit": ("9000000", ("limit-below-wish", "setting-ignored")),
}
OLDER: Mapping[str, Fault] = {
    "query_cache_type": ("1", ("query-cache-on",)),
    "innodb_flush_method": ("nosync", ("flush-method-nosync",)),
}
PLANTED: Mapping[str, Mapping[str, Fault]] = {
    "mariadb-10.11": {**BOTH, **OLDER},
    "mysql-8.0.33": {
        **BOTH,
        "innodb_flush_method": ("O_DIRECT_NO_FSYNC", ("flush-method-no-fsync",)),
    },
    "mysql-5.6.14": {**BOTH, **OLDER},
    "mariadb-11.4.5": {**BOTH, "query_cache_type": ("1", ("query-cache-on",))},
}
# What goes with a planted value so that it can take effect.
COMPANIONS = (
    "slow_query_log = 1\nlog_bin = binlog\nserver_id = 7\nmax_heap_table_size = 1G\n"
    "loose_query_cache_size = 16M\n"
)
# Planted after the rules were frozen: the rows of a table of settings, in its order, each with the
# value that the table warns of.  Without a rule there is nothing that can name it: misses stay.
HELD: Mapping[str, Fault] = {
    "innodb_flush_log_at_timeout": ("2700", ("flush-timeout-long",)),
    "innodb_adaptive_flushing": ("0", ("adaptive-flushing-off",)),
    "innodb_lru_scan_depth": ("16384", ("lru-scan-deep",)),
    "innodb_purge_threads": ("1", ("purge-threads-one",)),
    "innodb_max_purge_lag": ("1", ("purge-lag-limited",)),
    "innodb_read_io_threads": ("1", ("io-threads-few",)),
    "innodb_use_native_aio": ("0", ("native-aio-off", "doublewrite-carried-over")),
    "innodb_autoinc_lock_mode": ("0", ("autoinc-lock-table",)),
    "innodb_file_per_table": ("0", ("file-per-table-off",)),
    "table_definition_cache": ("400", ("definition-cache-small",)),
    "binlog_format": ("STATEMENT", ("replication-row-image",)),
    "binlog_cache_size": ("4096", ("binlog-cache-below-default",)),
    "max_allowed_packet": ("4096", ("packet-below-default",)),
    "read_buffer_size": ("16M", ("read-buffers-large",)),
    "large_pages": ("1", ("huge-pages-missing",)),
    "innodb_stats_persistent": ("0", ("persistent-stats-off",)),
}
NEWER: Mapping[str, Fault] = {
    "innodb_flush_sync": ("0", ("flush-sync-off",)),
    "innodb_deadlock_detect": ("0", ("deadlock-detect-off",)),
}
HELD_OUT: Mapping[str, Mapping[str, Fault]] = {
    "mariadb-10.11": {
        **HELD,
        **NEWER,
        "innodb_adaptive_hash_index": ("1", ("adaptive-hash",)),
        "innodb_change_buffering": ("all", ("change-buffer",)),
        "aria_pagecache_buffer_size": ("1M", ("aria-cache-small",)),
    },
    "mysql-8.0.33": {
        **HELD,
        **NEWER,
        "innodb_page_cleaners": ("1", ("page-cleaners-few",)),
        "innodb_thread_concurrency": ("2", ("innodb-concurrency-limited",)),
        "innodb_checksum_algorithm": ("none", ("checksum-none",)),
        "binlog_group_commit_sync_delay": ("100000", ("group-commit-delay",)),
        "binlog_expire_logs_seconds": ("0", ("binlog-never-expires",)),
        "temptable_max_ram": ("2M", ("temptable-small",)),
        "performance_schema": ("0", ("performance-schema-off",)),
    },
    "mysql-5.6.14": {
        **HELD,
        "innodb_thread_concurrency": ("2", ("innodb-concurrency-limited",)),
        "innodb_checksum_algorithm": ("none", ("checksum-none",)),
    },
    "mariadb-11.4.5": {
        **HELD,
        **NEWER,
        "aria_pagecache_buffer_size": ("1M", ("aria-cache-small",)),
    },
}


@contextmanager
def running(server: str, options: str) -> Iterator[tuple[Instance, Path]]:
    """Yield a private server with these options and sysbench's tables, and its folder."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        host = Local()
        build = find(host, SERVERS[server])
        instance = prepare(host, build, places=(folder / "server", folder / "data"))
        instance.place.owned.write_text("[mysqld]\n")
        try:
            instance.initialise()
            instance.place.owned.write_text(f"[mysqld]\n{options}")
            instance.start()
            yield instance, folder
        finally:
            instance.close()


def load_command(instance: Instance, folder: Path, *words: str) -> list[str]:
    """Return the load of these benches on the instance."""
    tables = ("--tables=8", "--table_size=50000", "--threads=8")
    return sysbench(instance, folder, *tables, "oltp_read_write", *words)


def asked(server: str, options: str) -> dict[str, object]:
    """Return what each tool prints of a server under load."""
    with running(server, options) as (instance, folder):
        filled = load_command(instance, folder, "prepare")
        subprocess.run(filled, check=True, capture_output=True, timeout=600)
        before = variables(instance)
        load = subprocess.Popen(
            load_command(instance, folder, f"--time={LOAD_S}", "run"), stdout=subprocess.DEVNULL
        )
        try:
            defaults = str(instance.place.admin)
            argv = [MYDYNO, "audit", "--server-defaults", defaults, "--watch", f"{WATCH_S}s"]
            ours = subprocess.run([*argv, "--json"], capture_output=True, check=False)
            changed = [row for row in variables(instance) if row not in before]
            tuner = subprocess.run(
                ["mysqltuner", "--defaults-file", defaults, "--nocolor"],
                capture_output=True, check=False, timeout=300,
            )  # fmt: skip
            set_by_tuner = [row[0] for row in variables(instance) if row not in before]
            advisor = subprocess.run(
                ["pt-variable-advisor", f"F={defaults}"],
                capture_output=True,
                check=False,
                timeout=300,
            )
        finally:
            load.terminate()
            load.wait()
    if ours.returncode not in {0, 1}:
        raise RuntimeError(ours.stderr.decode())
    return {
        "audit": json.loads(ours.stdout),
        "changed": changed,
        "tuner": tuner.stdout.decode(errors="replace"),
        "set by tuner": set_by_tuner,
        "advisor": advisor.stdout.decode(errors="replace"),
    }


def variables(instance: Instance) -> list[tuple[str, ...]]:
    """Return all variables that do not move by themselves."""
    moving = "'%timestamp%' AND Variable_name NOT LIKE 'gtid%' AND Variable_name NOT LIKE 'last_%'"
    moving += " AND Variable_name <> 'innodb_thread_sleep_delay'"
    return instance.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE {moving}")


def tuner_names(text: str, variable: str) -> bool:
    """Return whether MySQLTuner's warnings or recommendations have the variable's name."""
    advice = [line for line in text.splitlines() if line.startswith("[!!]")]
    _, _, below = text.partition("Recommendations")
    return bool(re.search(rf"\b{variable}\b", "\n".join([*advice, below])))


def row(server: str, planted: Mapping[str, Fault]) -> dict[str, object]:
    """Return how many of the faults each tool names, and which it does not."""
    options = "".join(f"{name} = {value}\n" for name, (value, _) in planted.items()) + COMPANIONS
    found = asked(server, options)
    rules = {one["finding"]["rule"] for one in found["audit"]["findings"]}
    missed = [name for name, (_, right) in planted.items() if not rules & set(right)]
    tuner = [name for name in planted if tuner_names(found["tuner"], name)]
    advisor = [name for name in planted if re.search(rf"\b{name}\b", found["advisor"])]
    return {
        "server": server,
        "planted": len(planted),
        "missed": missed,
        "tuner": tuner,
        "advisor": advisor,
        "changed by audit": [line[0] for line in found["changed"]],
        "changed by tuner": found["set by tuner"],
        "unevaluated": [one["rule"] for one in found["audit"]["unevaluated"]],
        "memory": found["audit"]["memory"],
    }


def stock(server: str) -> dict[str, object]:
    """Return what each tool finds in a server as it is by default."""
    found = asked(server, "")
    kinds: dict[str, list[str]] = {}
    for one in found["audit"]["findings"]:
        kinds.setdefault(one["finding"]["kind"], []).append(one["finding"]["rule"])
    return {
        "server": server,
        "stock": kinds,
        "tuner": len(re.findall(r"^\[!!\]", found["tuner"], re.MULTILINE)),
        "advisor": len(re.findall(r"^# (?:WARN|NOTE|CRIT)", found["advisor"], re.MULTILINE)),
        "changed by audit": [line[0] for line in found["changed"]],
        "changed by tuner": found["set by tuner"],
    }


def main() -> None:
    """Ask all tools on each server; print rows and the table."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--only", default="")
    given.add_argument("--held-out", action="store_true", help="only what was planted later")
    chosen = given.parse_args()
    rows = []
    for server in chosen.only.split(",") if chosen.only else SERVERS:
        cases = HELD_OUT if chosen.held_out else PLANTED
        if planted := cases.get(server):
            rows.append(row(server, planted))
            print(json.dumps(rows[-1]), flush=True)
        if not chosen.held_out:
            print(json.dumps(stock(server)), flush=True)
    every = sum(r["planted"] for r in rows)
    ours = every - sum(len(r["missed"]) for r in rows)
    print(f"audit names {share(ours, every)} of {every} planted faults")
    for rival, name in (("tuner", "MySQLTuner"), ("advisor", "pt-variable-advisor")):
        print(f"{name} names {share(sum(len(r[rival]) for r in rows), every)}")


if __name__ == "__main__":
    main()
