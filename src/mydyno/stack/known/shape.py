"""The settings that shape the data files, so that each set of them needs data of its own."""

from mydyno.model import Settings
from mydyno.stack.known.values import normalise

_SHAPING = frozenset(
    (
        "character_set_server",
        "collation_server",
        "default_storage_engine",
        "default_table_encryption",
        "innodb_checksum_algorithm",
        "innodb_compression_algorithm",
        "innodb_compression_default",
        "innodb_compression_level",
        "innodb_data_file_path",
        "innodb_data_home_dir",
        "innodb_default_row_format",
        "innodb_encrypt_tables",
        "innodb_file_format",
        "innodb_file_per_table",
        "innodb_log_group_home_dir",
        "innodb_page_size",
        "innodb_undo_directory",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
    )
)


def data_shape(settings: Settings) -> Settings:
    """Return the part of bare `mysqld` settings that must hold when the data are made."""
    return {key: normalise(value) for key, value in sorted(settings.items()) if key in _SHAPING}
