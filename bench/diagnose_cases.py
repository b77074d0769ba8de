"""The cases of `diagnose_real.py`: planted faults, pairs of them, and loads that nothing limits."""

from collections.abc import Mapping, Sequence

_WINDOW = "[protocol]\nwarmup_s = 5\nwindow_s = 15\nblocks = 1\n"
_LAB = 'device = {{ lab = "loop", size = "3G"{device} }}'
SMALL, LARGE = "32M", "512M"
VALID, CLOSES = 1.1, 0.03

# name: (right limits, device, settings with the fault, settings without it, load)
Fault = tuple[tuple[str, ...], str, Mapping[str, str], Mapping[str, str] | str, str]
RW = """script = "oltp_read_write"
tables = 4
table_size = 150000
threads = [16]
options = { rand_type = "uniform" }"""
RO = RW.replace("read_write", "read_only")
POINT = RW.replace("oltp_read_write", "oltp_point_select")
UPDATE = RW.replace("oltp_read_write", "oltp_update_index").replace("[16]", "[4]")
CONNECT = """tool = "mysqlslap"
query = "SELECT 1"
threads = [16]
queries = 3200
options = { detach = 1 }"""
NAMED = """tool = "mysqlslap"
query = "DO GET_LOCK('one', 9); DO SLEEP(0.002); DO RELEASE_LOCK('one')"
threads = [16]
queries = 4800"""
TLS = {"net.transport": "tcp", "net.tls": "on"}
POOL = "innodb_buffer_pool_size"
IN_MEMORY = {POOL: LARGE}
LAZY = {"innodb_flush_log_at_trx_commit": "2"}
SHARED = {POOL: LARGE, "thread_handling": "pool-of-threads"}
HEAP = {"mysql >= 8: internal_tmp_mem_storage_engine": "MEMORY"}  # TempTable goes by MiB
TO_TABLE = {"long_query_time": "0", "log_output": "TABLE"}
FAULTS: dict[str, Fault] = {
    "io-cap": (("disk_ios", "pool_size"), ', class = "aws-gp3"', {POOL: SMALL}, {POOL: LARGE}, RW),
    "io-cap-weak": (
        ("disk_ios", "pool_size"),
        ', class = "aws-gp3"',
        {POOL: "128M"},
        {POOL: LARGE},
        RO,
    ),
    "read-latency": (
        ("disk_latency", "pool_size"),
        ", read_latency_us = 3000",
        {POOL: SMALL},
        {POOL: LARGE},
        RO,
    ),
    "flush-latency": (
        ("flush_latency",),
        ", flush_latency_us = 4000",
        {POOL: LARGE},
        {POOL: LARGE, "innodb_flush_log_at_trx_commit": "2"},
        UPDATE,
    ),
    "flush-latency-weak": (
        ("flush_latency",),
        ", flush_latency_us = 700",
        {POOL: LARGE},
        {POOL: LARGE, "innodb_flush_log_at_trx_commit": "2"},
        UPDATE,
    ),
    "cpu": (("server_cpu",), "", {POOL: LARGE}, "threads", RO),
    "one-connection": (
        ("one_thread", "server_cpu", "load_idle"),
        "",
        {POOL: LARGE},
        "threads up",
        RO.replace("[16]", "[1]"),
    ),
    "rate": (
        ("load_idle",),
        "",
        {POOL: LARGE},
        "rate",
        RO + "\nrate = 60",
    ),
    "link": (
        ("link_rate",),
        "",
        {POOL: LARGE, "link.rate": "30mbit"},
        {POOL: LARGE, "link.rate": "1gbit"},
        RO,
    ),
    "link-weak": (
        ("link_rate",),
        "",
        {POOL: LARGE, "link.rate": "80mbit"},
        {POOL: LARGE, "link.rate": "1gbit"},
        RO,
    ),
    "far": (
        ("round_trips",),
        "",
        {POOL: LARGE, "link.delay": "4ms"},
        {POOL: LARGE, "link.delay": "0us"},
        RO,
    ),
    "far-weak": (
        ("round_trips",),
        "",
        {POOL: LARGE, "link.delay": "1ms"},
        {POOL: LARGE, "link.delay": "0us"},
        RO,
    ),
    "hot-row": (
        ("row_locks",),
        ", flush_latency_us = 1000",
        {POOL: LARGE},
        "rows",
        UPDATE.replace("150000", "1").replace("tables = 4", "tables = 1").replace("[4]", "[16]"),
    ),
    "redo-size": (
        ("redo_size", "flushing", "disk_ios"),
        ', class = "aws-gp3"',
        {POOL: LARGE, "innodb_log_file_size": "8M"},
        {POOL: LARGE, "innodb_log_file_size": "512M"},
        UPDATE.replace("[4]", "[16]").replace("update_index", "update_non_index"),
    ),
    "table-cache": (
        ("table_cache",),
        "",
        {POOL: LARGE, "table_open_cache": "10"},
        {POOL: LARGE, "table_open_cache": "2000"},
        POINT.replace("tables = 4", "tables = 64").replace("150000", "2000"),
    ),
    "temporary": (
        ("temporary_tables",),
        "",
        {POOL: LARGE, **HEAP, "tmp_table_size": "1K", "max_heap_table_size": "16K"},
        {POOL: LARGE, **HEAP, "tmp_table_size": "64M", "max_heap_table_size": "64M"},
        RO,
    ),
    "sort-buffer": (
        ("sort_buffer",),
        "",
        {POOL: LARGE, "sort_buffer_size": "33M"},
        {POOL: LARGE, "sort_buffer_size": "256K"},
        RO,
    ),
}
_SET_ON = {*FAULTS} - {"far", "far-weak"}  # kinds that the limits' thresholds were set on
FAULTS |= {
    "pool": (("pool_size", "page_reads"), "", {POOL: SMALL}, {POOL: LARGE}, RO),
    "pool-weak": (("pool_size", "page_reads"), "", {POOL: "96M"}, {POOL: LARGE}, RO),
    "credits": (
        ("disk_credits", "disk_ios", "pool_size"),
        ', class = "azure-p10"',
        {POOL: SMALL, "disk.credits": "empty"},
        {POOL: SMALL, "disk.credits": "full"},
        RO,
    ),
    "credits-weak": (
        ("disk_credits", "disk_ios", "pool_size"),
        ', class = "azure-p20"',
        {POOL: SMALL, "disk.credits": "empty"},
        {POOL: SMALL, "disk.credits": "full"},
        RO,
    ),
    "io-capacity": (
        ("flushing", "pool_size"),
        "",
        {POOL: SMALL, "innodb_io_capacity": "100", "innodb_io_capacity_max": "100"},
        {POOL: SMALL, "innodb_io_capacity": "5000", "innodb_io_capacity_max": "10000"},
        UPDATE.replace("[4]", "[16]"),
    ),
    "binlog": (
        ("flush_latency",),
        ", flush_latency_us = 2000",
        {POOL: LARGE, **LAZY, "log_bin": "ON", "sync_binlog": "1"},
        {POOL: LARGE, **LAZY, "log_bin": "ON", "sync_binlog": "0"},
        UPDATE,
    ),
    "log-to-table": (
        ("latches", "server_cpu"),
        "",
        {POOL: LARGE, **TO_TABLE, "slow_query_log": "1"},
        {POOL: LARGE, **TO_TABLE, "slow_query_log": "0"},
        POINT,
    ),
    "query-cache": (
        ("latches",),
        "",
        {POOL: LARGE, "query_cache_type": "1", "query_cache_size": "64M"},
        {POOL: LARGE, "query_cache_type": "0", "query_cache_size": "0"},
        POINT,
    ),
    "thread-pool": (
        ("pool_threads",),
        ", flush_latency_us = 2000",
        {**SHARED, "thread_pool_size": "1"},
        {**SHARED, "thread_pool_size": "16"},
        UPDATE.replace("[4]", "[16]"),
    ),
    "thread-pool-weak": (
        ("pool_threads", "one_thread"),
        "",
        {**SHARED, "thread_pool_size": "1"},
        {**SHARED, "thread_pool_size": "16"},
        RO,
    ),
    "read-latency-weak": (
        ("disk_latency", "pool_size"),
        ", read_latency_us = 600",
        {POOL: "64M"},
        {POOL: LARGE},
        RO,
    ),
    "one-connection-weak": (
        ("one_thread", "server_cpu", "load_idle", "round_trips"),
        "",
        {POOL: LARGE, "link.delay": "1ms"},
        "threads up",
        RO.replace("[16]", "[1]"),
    ),
    "rate-weak": (("load_idle",), "", {POOL: LARGE}, "rate", RO + "\nrate = 150"),
    "redo-size-weak": (
        ("redo_size", "flushing", "disk_ios"),
        ', class = "aws-gp3"',
        {POOL: LARGE, "innodb_log_file_size": "24M"},
        {POOL: LARGE, "innodb_log_file_size": "512M"},
        UPDATE.replace("[4]", "[16]").replace("update_index", "update_non_index"),
    ),
    "table-cache-weak": (
        ("table_cache",),
        "",
        {POOL: LARGE, "table_open_cache": "40"},
        {POOL: LARGE, "table_open_cache": "2000"},
        POINT.replace("tables = 4", "tables = 64").replace("150000", "2000"),
    ),
    "server-quota": (("cpu_quota",), "", {POOL: LARGE, "cgroup.cpu": "50%"}, IN_MEMORY, RO),
    "server-quota-weak": (("cpu_quota",), "", {POOL: LARGE, "cgroup.cpu": "100%"}, IN_MEMORY, RO),
    "load-quota": (("load_quota",), "", {POOL: LARGE}, "quota 15%", POINT),
    "load-quota-weak": (("load_quota",), "", {POOL: LARGE}, "quota 30%", POINT),
    "connect": (("connects",), "", {POOL: LARGE}, "reconnect", CONNECT),
    "connect-weak": (
        ("connects",),
        "",
        {POOL: LARGE},
        "reconnect",
        CONNECT.replace("= 1 ", "= 10 "),
    ),
    "tls-connect": (
        ("tls_handshakes",),
        "",
        {POOL: LARGE, **TLS},
        {POOL: LARGE, **TLS, "net.tls": "off"},
        CONNECT,
    ),
    "tls-connect-weak": (
        ("tls_handshakes",),
        "",
        {POOL: LARGE, **TLS},
        {POOL: LARGE, **TLS, "net.tls": "off"},
        CONNECT.replace("= 1 ", "= 10 "),
    ),
    "named-lock": (("table_locks",), "", {POOL: LARGE}, "names", NAMED),
    "named-lock-weak": (
        ("table_locks",),
        "",
        {POOL: LARGE},
        "names",
        NAMED.replace("'one'", "CONCAT('l', CONNECTION_ID() % 4)"),
    ),
    "other-work": (("other_work", "server_cpu"), "", {POOL: LARGE}, "other work", RO),
    "compressed-protocol": (
        ("server_cpu", "load_cpu"),
        "",
        {POOL: LARGE},
        "compression",
        RO.replace("{ rand_type", '{ mysql_compression = "on", rand_type'),
    ),
}
# limits or the account were changed after these
_MENDED = {"pool", "load-quota", "connect", "thread-pool", "tls-connect"}
HELD_OUT = {name for name in {*FAULTS} - _SET_ON if name.removesuffix("-weak") not in _MENDED}
FAR, WIDE = {"link.delay": "0us"}, {"link.rate": "1gbit"}
# name: (the doses of both limits, device, settings with both, what takes each away, load)
Pair = tuple[tuple[str, str], str, Mapping[str, str], Sequence[Mapping[str, str]], str]
READS, FLUSHES, IOS = ", read_latency_us = {}", ", flush_latency_us = {}", ', class = "aws-gp3"'


def _far_and_flush(delay: str, flush_us: int) -> Pair:
    settings = {POOL: LARGE, "link.delay": delay}
    doses = ("link.delay", "disk.flush_latency")
    return doses, FLUSHES.format(flush_us), settings, (FAR, LAZY), UPDATE


def _far_and_read(delay: str, read_us: int) -> Pair:
    settings = {POOL: SMALL, "link.delay": delay}
    doses = ("link.delay", "disk.read_latency")
    return doses, READS.format(read_us), settings, (FAR, IN_MEMORY), RO.replace("[16]", "[4]")


def _rate_and_far(rate: str, delay: str) -> Pair:
    settings = {POOL: LARGE, "link.rate": rate, "link.delay": delay}
    return ("link.rate", "link.delay"), "", settings, (WIDE, FAR), RO


def _rate_and_read(rate: str, read_us: int) -> Pair:
    settings = {POOL: SMALL, "link.rate": rate}
    doses = ("link.rate", "disk.read_latency")
    return doses, READS.format(read_us), settings, (WIDE, IN_MEMORY), RO


def _read_and_flush(read_us: int, flush_us: int) -> Pair:
    device = READS.format(read_us) + FLUSHES.format(flush_us)
    doses = ("disk.read_latency", "disk.flush_latency")
    return doses, device, {POOL: SMALL}, (IN_MEMORY, LAZY), UPDATE


def _disk_and_far(delay: str) -> Pair:
    settings = {POOL: SMALL, "link.delay": delay}
    return ("disk.rate", "link.delay"), IOS, settings, (IN_MEMORY, FAR), RO


def _disk_and_rate(rate: str) -> Pair:
    settings = {POOL: SMALL, "link.rate": rate}
    return ("disk.rate", "link.rate"), IOS, settings, (IN_MEMORY, WIDE), RO


PAIRS: dict[str, Pair] = {
    "far+flush 1:1": _far_and_flush("4ms", 4000),
    "far+flush 3:1": _far_and_flush("4ms", 1300),
    "far+flush 1:3": _far_and_flush("1.3ms", 4000),
    "far+read 1:1": _far_and_read("2ms", 2000),
    "far+read 3:1": _far_and_read("4ms", 1300),
    "far+read 1:3": _far_and_read("1ms", 3000),
    "rate+far 1:1": _rate_and_far("80mbit", "4ms"),
    "rate+far 3:1": _rate_and_far("60mbit", "4ms"),
    "rate+far 1:3": _rate_and_far("80mbit", "6ms"),
    "rate+read 1:1": _rate_and_read("80mbit", 3000),
    "rate+read 3:1": _rate_and_read("60mbit", 3000),
    "rate+read 1:3": _rate_and_read("80mbit", 4500),
    "read+flush 1:1": _read_and_flush(3000, 4000),
    "read+flush 3:1": _read_and_flush(3000, 1300),
    "read+flush 1:3": _read_and_flush(1300, 5000),
    "disk+far 1:1": _disk_and_far("4ms"),
    "disk+far 3:1": _disk_and_far("2.5ms"),
    "disk+far 1:3": _disk_and_far("6ms"),
    "disk+rate 1:1": _disk_and_rate("80mbit"),
    "disk+rate 3:1": _disk_and_rate("120mbit"),
}
RATES = {  # transactions a second, far below what two cores do: nothing of the host limits them
    "healthy": (RO, (20, 35, 50, 70, 90)),
    "points": (POINT, (200, 500, 1000, 2000, 3000)),
    "writes": (RW, (5, 10, 20, 30, 40)),
    "updates": (UPDATE, (20, 50, 100, 200, 300)),
}
CONTROLS: dict[str, tuple[str, Mapping[str, str], str]] = {
    f"{name}-{rate}": ("", {POOL: LARGE}, f"{load}\nrate = {rate}")
    for name, (load, rates) in RATES.items()
    for rate in rates
}


_CUT = {"rate": "\nrate", "reconnect": "options"}  # where the fault of a load begins
_WITHOUT: Mapping[str, Sequence[tuple[str, str]]] = {
    "rows": [("table_size = 1\n", "table_size = 150000\n")],
    "compression": [('mysql_compression = "on", ', "")],
    "threads up": [("[1]", "[16]")],
    "names": [("'one'", "CONCAT('l', CONNECTION_ID())"), ("() % 4", "()")],
}


def spec(server: str, device: str, arms: Mapping[str, Mapping[str, str]], load: str) -> str:
    """Return a spec of these treatments."""
    made = ["[stack]", f'server = "{server}"', _LAB.format(device=device)]
    for name, settings in arms.items():
        made.append(f"[treatments.{name}]")
        if "5.6" not in server:
            made.append('"mysqld.innodb_flush_method" = "O_DIRECT"')
        if any(key.startswith("link.") for key in settings):
            made += ['"net.address" = "lab"', '"net.transport" = "tcp"']
        for setting, value in settings.items():
            condition, _, key = setting.rpartition(": ")
            when = f'when."{condition}".' if condition else ""
            made.append(f'{when}"{key if "." in key else f"mysqld.{key}"}" = "{value}"')
    tool = [] if load.startswith("tool") else ['tool = "sysbench-oltp"']
    made += ["[workloads.w]", *tool, load]
    return "\n".join(made) + f'\n[design]\nkind = "blocks"\n{_WINDOW}[decide]\nbaseline = "FAULT"\n'


def calm(relief: str, load: str) -> str:
    """Return the load without its own fault; one that is not the load's stays."""
    if cut := _CUT.get(relief):
        return load.partition(cut)[0]
    for fault, without in _WITHOUT.get(relief, ()):
        load = load.replace(fault, without)
    return load
