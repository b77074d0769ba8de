"""The report for a terminal: the verdict, a table that fits the width, warnings, where to look."""

import csv
import html
import io
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from msgspec import structs

from mydyno.report import units, verdicts
from mydyno.report.names import legend, short_names
from mydyno.report.verdicts import warned
from mydyno.stats.result import Comparison, Ratio, Result, Row

_GUARD = "latency_p99_s"
_GAP = "  "
_NARROWEST = 40  # below this a table cannot be read; lines are then left to the terminal


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table: its heading, what it shows of a row, and on which side it aligns."""

    heading: str
    cell: Callable[[Row], str]
    right: bool = False


def render_text(result: Result, width: int) -> str:
    """Return the result as plain text of at most `width` columns, ending in a newline."""
    width = max(width, _NARROWEST)
    compared = result.comparison
    blocks = [_wrapped(compared.sentence, width)]
    if result.lab:
        blocks.append(_wrapped(f"This was a lab: {result.lab}", width))
    names = [row.name for row in compared.treatments]
    blocks += [
        _table(_shortened(compared), width),
        "\n".join(_wrapped(line, width, "   ") for line in legend(names)),
        _main_effects(compared, width),
        _wrapped(_prose(result), width),
    ]
    blocks += ["\n".join(_wrapped(s, width, "  ") for s in verdicts.ceiling_sentences(compared))]
    blocks += [_notes(compared, workload, width) for workload in verdicts.workloads(compared)]
    blocks += [_wrapped(f"! {message}", width, "  ") for message in _warnings(compared)]
    return "\n\n".join(part for part in blocks if part) + "\n"


def _table(compared: Comparison, width: int) -> str:
    """Return one table if it fits, or else one for each workload."""
    flat = _lines(_rows(compared), _COLUMNS)
    if max(map(len, flat)) <= width:
        return "\n".join(flat)
    return "\n\n".join(
        f"Workload {_clean(workload)}\n{_grouped(verdicts.rows(compared, workload), width)}"
        for workload in verdicts.workloads(compared)
    )


def _shortened(compared: Comparison) -> Comparison:
    """Return the comparison with short names of a grid's cells, for its table."""
    short = short_names(row.name for row in compared.treatments)
    rows = [structs.replace(row, name=short[row.name]) for row in compared.treatments]
    baseline = short.get(compared.baseline, compared.baseline)
    return structs.replace(compared, treatments=rows, baseline=baseline)


def _warnings(compared: Comparison) -> list[str]:
    return [f"{who}: {text}" if who else text for who, text in warned(compared)]


def _rows(compared: Comparison) -> list[Row]:
    return [r for w in verdicts.workloads(compared) for r in verdicts.rows(compared, w)]


def _main_effects(compared: Comparison, width: int) -> str:
    """Return the main effects and the interactions."""
    if not compared.parts:
        return ""
    effects = [
        (f"{part.factor} = {part.level}", f"not {part.against}", part)
        for part in verdicts.ordered(compared.parts)
    ]
    several = len({part.workload for part in compared.parts}) > 1
    lines = []
    for changed, against, part in effects:
        where = f", {part.workload}" if several else ""
        lines.append(f"{_bracketed(part.effect)}  {changed}, {against}{where}")
    pairs = compared.together
    lines += [f"{_bracketed(p.effect)}  {verdicts.together(p)}, interaction" for p in pairs]
    head = "Main effect of each change (mean over the levels of the others):"
    return "\n".join([head, *(_wrapped(line, width, "    ") for line in lines)])


def _grouped(rows: Sequence[Row], width: int) -> str:
    """Return a table whose names take the room there is; a longer name gets its own line."""
    numbers = _lines(rows, _NUMBERS)
    names = ["Treatment", *(_clean(row.name) for row in rows)]
    room = width - max(map(len, numbers)) - len(_GAP)
    wide = max((len(name) for name in names if len(name) <= room), default=0)
    lines: list[str] = []
    for name, line in zip(names, numbers, strict=True):
        if len(name) > wide:
            lines += [name, " " * wide + _GAP + line]
        else:
            lines.append(name.ljust(wide) + _GAP + line)
    return "\n".join(lines)


def _lines(rows: Sequence[Row], columns: Sequence[_Column]) -> list[str]:
    cells = [[column.heading for column in columns]]
    cells += [[column.cell(row) for column in columns] for row in rows]
    return aligned(cells, {i for i, column in enumerate(columns) if column.right})


def aligned(rows: Sequence[Sequence[str]], right: Container[int]) -> list[str]:
    """Return rows of cells as lines; the columns with an index in `right` align there."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        _GAP.join(
            cell.rjust(wide) if i in right else cell.ljust(wide)
            for i, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _value(row: Row) -> str:
    return units.measurement(row.value.estimate, row.value.unit) if row.value else "-"


def _effect(row: Row) -> str:
    if row.effect is None:
        return "1 (baseline)" if row.verdict == "baseline" else "-"
    return _bracketed(row.effect)


def _bracketed(ratio: Ratio) -> str:
    estimate, low, high = units.interval(ratio)
    return f"{estimate} [{low}..{high}]"


def _tail(row: Row) -> str:
    guard = row.guards.get(_GUARD)
    return units.interval(guard)[0] if guard else "-"


def _durability(row: Row) -> str:
    return row.durability.upper() if row.durability == "weaker" else row.durability


_NUMBERS = (
    _Column("Value", _value, right=True),
    _Column("Ratio [low..high]", _effect),
    _Column("Verdict", lambda row: row.verdict),
    _Column("p99", _tail, right=True),
    _Column("Durability", _durability),
    _Column("Trials", lambda row: units.measured(row.trials, row.ends), right=True),
)
_COLUMNS = (
    _Column("Treatment", lambda row: _clean(row.name)),
    _Column("Workload", lambda row: _clean(row.workload)),
    *_NUMBERS,
)


def render_markdown(result: Result) -> str:
    """Return the verdict and its table as Markdown, for a pull request, ending in a newline."""
    compared = result.comparison
    lines = [[column.heading for column in _COLUMNS]]
    lines += [["---:" if column.right else "---" for column in _COLUMNS]]
    lines += [[_marked(column.cell(row)) for column in _COLUMNS] for row in _rows(compared)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    listed = "\n".join(f"- {_marked(line)}" for line in _warnings(compared))
    blocks = (_marked(compared.sentence), table, _marked(_prose(result)), listed)
    return "\n\n".join(filter(None, blocks)) + "\n"


def _marked(text: str) -> str:
    """Return text of a spec or a log as Markdown that shows it: no tag, no end of a cell."""
    return html.escape(_clean(text), quote=False).replace("|", "\\|")


def render_csv(compared: Comparison) -> str:
    """Return a line for each treatment and workload, in base units, empty where not measured."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_CSV)
    for row in compared.treatments:
        value, effect, tail = row.value, row.effect, row.guards.get(_GUARD)
        writer.writerow(
            (
                *(row.name, row.workload, row.verdict, row.durability, row.trials, row.ends.lost),
                *((_cell(value.estimate), value.unit) if value else ("", "")),
                *_cells(effect),
                *_cells(tail),
            )
        )
    return out.getvalue()


def _cells(ratio: Ratio | None) -> Sequence[str]:
    return [_cell(x) for x in (ratio.ratio, ratio.low, ratio.high)] if ratio else ("", "", "")


def _cell(value: float) -> str:
    """Return a number without the last digits, in which processors differ."""
    return f"{value:.10g}"


_CSV = (
    *("treatment", "workload", "verdict", "durability", "trials", "not_measured"),
    *("value", "unit", "ratio", "low", "high", "p99_ratio", "p99_low", "p99_high"),
)


def _prose(result: Result) -> str:
    """Return what the table's columns mean, and what was spent."""
    compared = result.comparison
    bad = sum(trial.status != "ok" for trial in result.trials)
    footing = (
        f"Value: {units.names(compared.response)}, the geometric mean of its valid trials. "
        f"Ratios are to {compared.baseline}, "
        f"with 95 % intervals; p99: the ratio of p99 latencies. "
        f"{units.counted(len(result.trials), 'trial')} in {units.counted(result.blocks, 'block')}"
        f"{f', {bad} of them not valid' if bad else ''}, "
        f"{units.duration(compared.machine_time_s)} of machine time."
    )
    weaker = list(dict.fromkeys(r.name for r in compared.treatments if r.durability == "weaker"))
    if weaker:
        names = units.listed(weaker)
        footing += f" WEAKER: a crash may lose transactions that {names} reported as committed."
    return footing


def _notes(compared: Comparison, workload: str, width: int) -> str:
    sentences = (
        verdicts.error_sentence,
        verdicts.storage_sentence,
        verdicts.replica_sentence,
        verdicts.preparation_sentence,
    )
    notes = " ".join(filter(None, (sentence(compared, workload) for sentence in sentences)))
    several = f"{workload}: " if len(verdicts.workloads(compared)) > 1 else ""
    lines = [f"{several}{notes}"] if notes else []
    lines += verdicts.plateau_sentences(compared, workload)
    return "\n".join(_wrapped(line, width, "  ") for line in lines)


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return "\n".join(units.wrapped(_clean(text), width, indent))


def _clean(text: str) -> str:
    """Return `text` on one line, without anything that would move a terminal's cursor."""
    return units.legible(text).replace("\n", " ").strip()
