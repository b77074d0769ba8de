"""The bundled scripts of sysbench 1.0 and 1.1 and the options that a spec may give them."""

SCRIPTS = (
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
)

# Options that decide what `prepare` writes: tables with equal ones are the same data set.
SHAPE = frozenset(
    {
        "auto_inc",
        "create_secondary",
        "create_table_options",  # 1.1
        "mysql_storage_engine",
        "secondary",
    }
)
# `prepare` draws the secondary key's values by these, so that they shape the data as well.
RANDOM = frozenset(
    {
        "rand_pareto_h",
        "rand_spec_iter",
        "rand_spec_pct",
        "rand_spec_res",
        "rand_type",
        "rand_zipfian_exp",  # 1.1
    }
)
CLIENT = frozenset(
    {
        "db_ps_mode",
        "mysql_compression",
        "mysql_compression_algorithms",  # 1.1
        "mysql_ignore_errors",
        "mysql_ssl",
        "mysql_ssl_ca",  # 1.1
        "mysql_ssl_cert",  # 1.1
        "mysql_ssl_cipher",
        "mysql_ssl_key",  # 1.1
    }
)
GENERAL = frozenset(
    {
        "thread_init_timeout",  # 1.1
        "thread_stack_size",
        "validate",
    }
)
_TRANSACTION = frozenset(
    {
        "delete_inserts",
        "distinct_ranges",
        "index_updates",
        "non_index_updates",
        "order_ranges",
        "point_selects",
        "range_selects",
        "range_size",
        "reconnect",  # 1.1
        "simple_ranges",
        "skip_trx",
        "sum_ranges",
    }
)
_OWN = {
    "select_random_points": frozenset({"random_points"}),
    "select_random_ranges": frozenset({"number_of_ranges", "delta"}),
}
FILEIO = frozenset(
    {
        "file_async_backlog",
        "file_fsync_all",
        "file_fsync_end",
        "file_fsync_mode",
        "file_io_mode",
        "file_merged_requests",
        "file_rw_ratio",
    }
)


def known(script: str) -> frozenset[str]:
    """Return the options that a spec may give `script`, from ``sysbench SCRIPT help``."""
    everywhere = CLIENT | RANDOM | GENERAL
    if script == "bulk_insert":
        return everywhere
    return everywhere | SHAPE | _TRANSACTION | _OWN.get(script, frozenset())
