"""`mydyno digest`: statements of slow logs grouped into classes, by mydyno-probe.

The classes can be written into the tables that pt-query-digest keeps for review and history.
"""

import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from typer.core import CompletionItem, TyperCommand  # type: ignore[attr-defined] # no other name

from mydyno.cli.terminal import print_message
from mydyno.model import HostError, SpecError, os_errors_as
from mydyno.sample import NOT_BUILT, probe_binary

if TYPE_CHECKING:
    from mydyno.report.digestpage import Class, ClassMetric, Digest

DATABASE = "percona_schema"
REVIEW, HISTORY = "query_review", "query_history"
_SUFFIX = re.compile(r"(.+)_(pct_95|pct|avg|cnt|sum|min|max|stddev|median|rank)")
_FULL = ("sum", "min", "max", "pct_95", "stddev", "median")
_NUMBERS = {  # the columns that pt-query-digest's table has for each attribute
    **dict.fromkeys(("Query_time", "Lock_time", "Rows_sent", "Rows_examined"), _FULL),
    **dict.fromkeys(("Rows_affected", "Rows_read", "Merge_passes"), _FULL),
    **dict.fromkeys(("InnoDB_IO_r_ops", "InnoDB_IO_r_bytes", "InnoDB_IO_r_wait"), _FULL[1:]),
    **dict.fromkeys(("InnoDB_rec_lock_wait", "InnoDB_queue_wait"), _FULL[1:]),
    "InnoDB_pages_distinct": _FULL[1:],
    **dict.fromkeys(("QC_Hit", "Full_scan", "Full_join", "Tmp_table"), ("cnt", "sum")),
    **dict.fromkeys(("Tmp_table_on_disk", "Filesort", "Filesort_on_disk"), ("cnt", "sum")),
}
_CHECKSUM = "checksum CHAR(32) NOT NULL"
_REVIEW_COLUMNS = (
    f"{_CHECKSUM} PRIMARY KEY, fingerprint LONGTEXT NOT NULL, sample LONGTEXT NOT NULL, "
    "first_seen DATETIME, last_seen DATETIME, reviewed_by VARCHAR(20), reviewed_on DATETIME, "
    "comments TEXT"
)
_HISTORY_COLUMNS = ", ".join(
    (
        _CHECKSUM,
        "sample LONGTEXT NOT NULL, ts_min DATETIME, ts_max DATETIME, ts_cnt FLOAT",
        *(f"{name}_{one} FLOAT" for name, figures in _NUMBERS.items() for one in figures),
        "PRIMARY KEY (checksum, ts_min, ts_max)",
    )
)


@dataclass(frozen=True, slots=True)
class ReviewTable:
    """A table by its database and name."""

    database: str
    name: str

    def __str__(self) -> str:
        return f"{_ticked(self.database)}.{_ticked(self.name)}"


def table_of(dsn: str, option: str, default: str) -> ReviewTable:
    """Return the table of a DSN such as ``D=percona_schema,t=query_review``; both have defaults."""
    parts = dict(part.partition("=")[::2] for part in dsn.split(",") if part)
    wrong = [name for name in parts if name not in ("D", "t")]
    if wrong or not all(parts.values()):
        raise SpecError(
            f"{option}: only D=DATABASE,t=TABLE can be given; host, user and password belong into "
            "the option file of --server-defaults"
        )
    return ReviewTable(parts.get("D", DATABASE), parts.get("t", default))


class TableWriter:
    """Writes a digest's classes by the server's client program, logged in by an option file."""

    def __init__(self, options: Path, *, create: bool) -> None:
        client = shutil.which("mariadb") or shutil.which("mysql")
        if not client:
            raise HostError("no client program: install mariadb-client or mysql-client")
        self._argv = [client, f"--defaults-file={options}", "--batch", "--skip-column-names"]
        self._create = create

    def write_review(self, table: ReviewTable, digest: "Digest") -> int:
        """Add the classes that are new, widen the times of the others; return how many."""
        types = self._columns(table, _REVIEW_COLUMNS)
        needed = ("checksum", "fingerprint", "sample", "first_seen", "last_seen")
        _check(table, types, needed)
        self._ask([_review(table, types, found) for found in digest.classes])
        return len(digest.classes)

    def write_history(self, table: ReviewTable, digest: "Digest") -> int:
        """Write a row for each class, in place of one with the same key; return how many."""
        types = self._columns(table, _HISTORY_COLUMNS)
        _check(table, types, ("checksum", "sample"))
        flags = {name for found in digest.classes for name in found.flags}
        rows = (_history(table, types, found, digest, flags) for found in digest.classes)
        self._ask(rows)
        return len(digest.classes)

    def _columns(self, table: ReviewTable, definition: str) -> dict[str, str]:
        """Return the type of each column, of a table that is made first if that was asked for."""
        made = (
            f"CREATE DATABASE IF NOT EXISTS {_ticked(table.database)}",
            f"CREATE TABLE IF NOT EXISTS {table} ({definition}) DEFAULT CHARSET=utf8mb4",
        )
        look = (
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS "  # noqa: S608 - names are ticked, texts are hexadecimal
            f"WHERE TABLE_SCHEMA = {_literal(table.database)} "
            f"AND TABLE_NAME = {_literal(table.name)} "
            "ORDER BY ORDINAL_POSITION"
        )
        lines = self._ask([*(made if self._create else ()), look]).splitlines()
        types = dict(line.split("\t")[:2] for line in lines if "\t" in line)
        if not types:
            raise SpecError(f"{table}: no such table; --create-tables makes it")
        return types

    def _ask(self, statements: Iterable[str]) -> str:
        # a table of others may be too narrow for a statement, in length or in characters
        first = ("SET NAMES utf8mb4", "SET SESSION sql_mode = ''", "START TRANSACTION")
        text = ";\n".join((*first, *statements, "COMMIT", ""))
        done = subprocess.run(
            self._argv, input=text.encode(), capture_output=True, check=False, timeout=600
        )
        if done.returncode:
            raise HostError(f"server: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")


def _check(table: ReviewTable, types: Mapping[str, str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in types]
    if missing:
        raise SpecError(f"{table}: no column {', '.join(missing)}; name another table")


def _review(table: ReviewTable, types: Mapping[str, str], found: "Class") -> str:
    sample = _literal(found.example.query if found.example else "")
    first, last = (f"COALESCE({_time(at)}, NOW())" for at in (found.first_seen, found.last_seen))
    return (
        f"INSERT INTO {table} "  # noqa: S608 - names are ticked, texts are hexadecimal
        "(checksum, fingerprint, sample, first_seen, last_seen) VALUES "
        f"({_checksum(types, found)}, {_literal(found.fingerprint)}, {sample}, {first}, {last}) "
        f"ON DUPLICATE KEY UPDATE first_seen = LEAST(COALESCE(first_seen, {first}), {first}), "
        f"last_seen = GREATEST(COALESCE(last_seen, {last}), {last})"
    )


def _history(
    table: ReviewTable,
    types: Mapping[str, str],
    found: "Class",
    digest: "Digest",
    flags: set[str],
) -> str:
    values = {"checksum": _checksum(types, found)}
    values["sample"] = _literal(found.example.query if found.example else "")
    for column in types:
        if named := _SUFFIX.fullmatch(column):
            attribute, figure = named.groups()
            values[column] = _figure(found, attribute.lower(), figure, digest, flags)
    columns = ", ".join(_ticked(name) for name in values)
    row = ", ".join(values.values())
    return f"REPLACE INTO {table} ({columns}) VALUES ({row})"  # noqa: S608 - names are ticked, texts are hexadecimal


def _figure(found: "Class", attribute: str, figure: str, digest: "Digest", flags: set[str]) -> str:
    if attribute == "ts":
        known = {"min": found.first_seen, "max": found.last_seen}
        if figure in known:
            return f"COALESCE({_time(known[figure])}, NOW())"
        return str(found.events) if figure == "cnt" else "NULL"
    if attribute in flags:
        seen = {"cnt": found.events, "sum": found.flags.get(attribute, 0)}
        return str(seen.get(figure, "NULL"))
    metric = found.metrics.get(f"{attribute}_s") or found.metrics.get(attribute)
    if metric is None:
        return "NULL"
    of = {
        "sum": metric.sum,
        "min": metric.min,
        "max": metric.max,
        "avg": metric.mean,
        "cnt": metric.count,
        "median": metric.p50,
        "pct_95": metric.p95,
        "stddev": _deviation(metric),
        "pct": metric.count / max(digest.summary.events, 1),
    }
    return repr(of[figure]) if figure in of else "NULL"


def _deviation(metric: "ClassMetric") -> float:
    """Return the sample's standard deviation, from the middles of the histogram's buckets."""
    if metric.count < 2:  # noqa: PLR2004 - one value does not deviate
        return 0.0
    squares = sum(n * ((low + high) / 2 - metric.mean) ** 2 for low, high, n in metric.histogram)
    return math.sqrt(squares / (metric.count - 1))


def _checksum(types: Mapping[str, str], found: "Class") -> str:
    """Return the id as the table has it: 32 digits, or a number in those of old versions."""
    if "int" in types["checksum"].lower():
        return str(int(found.id, 16))
    return f"'{found.id32}'"


def _time(at: str | None) -> str:
    return f"'{at.rstrip('Z').replace('T', ' ')}'" if at else "NULL"


def _literal(text: str) -> str:
    """Return the text so that no mode of the server reads it as anything else."""
    return f"CONVERT(X'{text.encode('utf-8', 'replace').hex()}' USING utf8mb4)"


def _ticked(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# all options except those below are passed to mydyno-probe, --help too
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
_OPTION = re.compile(r"^ +(?:-\w, )?(--[a-z-]+)", re.MULTILINE)


class CommandClass(TyperCommand):
    """A command whose other options, those of mydyno-probe, are completed by a shell too."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401 - typer's own
        """Return what the word can become: options of either; files are the shell's own work."""
        found = super().shell_complete(ctx, incomplete)
        program = probe_binary() if incomplete.startswith("-") else None
        if not program:
            return found
        argv = [program, "digest", "--help"]
        text = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
        names = (name for name in _OPTION.findall(text) if name.startswith(incomplete))
        return [*found, *(CompletionItem(name) for name in names)]


Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page.")]
Review = Annotated[
    str | None,
    typer.Option("--review", metavar="D=DB,t=TABLE", help="Add the classes to this table."),
]
History = Annotated[
    str | None,
    typer.Option("--history", metavar="D=DB,t=TABLE", help="Write their figures to this table."),
]
Defaults = Annotated[
    Path | None,
    typer.Option("--server-defaults", metavar="FILE", help="Option file to log in with."),
]
Create = Annotated[bool, typer.Option("--create-tables", help="Make tables that are not there.")]

OURS = """mydyno adds:
  --html FILE             write an HTML page that needs no network; together with --json if wanted
  --review D=DB,t=TABLE   add the classes (as many as --limit shows) to a table as
                          pt-query-digest keeps it
  --history D=DB,t=TABLE  write a row of figures for each class; both imply --compat pt
  --server-defaults FILE  the option file ([client]) to log in with
  --create-tables         make the tables that are not there

"""


def digest(
    context: typer.Context,
    *,
    html: Html = None,
    review: Review = None,
    history: History = None,
    server_defaults: Defaults = None,
    create_tables: Create = False,
) -> None:
    """Group the statements of slow logs into classes, with exact counts and times.

    FILE... or - for standard input; all other options are those of mydyno-probe digest.
    """
    program = probe_binary()
    if not program:
        raise HostError(NOT_BUILT)
    given = list(context.args)
    if {"-h", "--help"} & {*given}:
        sys.stdout.write(OURS)
    elif (server_defaults or create_tables) and review is None and history is None:
        raise SpecError("--server-defaults, --create-tables: need --review or --history; add one")
    elif html or review is not None or history is not None:
        tables = _tables(review, history, server_defaults)
        found = _digested(program, ["--compat=pt"] * bool(tables) + given)
        if html:
            print_message(f"page: {_write(found, html)}")
        if server_defaults:
            _store(found, tables, server_defaults, create=create_tables)
        if "--json" in given:
            sys.stdout.buffer.write(found)
        return
    sys.stdout.flush()
    os.execv(program, ["mydyno", "digest", *given])  # noqa: S606 - its exit code is ours


def _digested(program: str, given: list[str]) -> bytes:
    if any(word.split("=")[0] == "--every" for word in given):
        raise SpecError("--every: not with --html, --review or --history; leave it out")
    words = [word for word in given if word != "--json"]
    argv = [program, "digest", "--json", *words]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)  # it has printed the error
    return done.stdout


def _write(found: bytes, path: Path) -> Path:
    """Write the page of a digest and return its path."""
    from mydyno.report.digestpage import render_digest  # noqa: PLC0415 - not needed to pass options on

    page = render_digest(msgspec.json.decode(found, type=dict[str, object]))
    with os_errors_as(SpecError, path, "choose another file with --html"):
        path.write_text(page, encoding="utf-8")
    return path


def _tables(
    review: str | None, history: str | None, options: Path | None
) -> dict[str, ReviewTable]:
    given = (("review", review, REVIEW), ("history", history, HISTORY))
    tables = {
        kind: table_of(dsn, f"--{kind}", default) for kind, dsn, default in given if dsn is not None
    }
    if tables and not options:
        raise SpecError("--review, --history: name an option file with --server-defaults")
    return tables


def _store(found: bytes, tables: dict[str, ReviewTable], options: Path, *, create: bool) -> None:
    """Write the classes into the tables, each in one transaction."""
    from mydyno.report.digestpage import read  # noqa: PLC0415 - as above

    digest = read(msgspec.json.decode(found, type=dict[str, object]))
    writer = TableWriter(options, create=create)
    for kind, table in tables.items():
        write = writer.write_review if kind == "review" else writer.write_history
        rows = write(table, digest)
        print_message(f"{kind}: {rows} classes written to {table}")
