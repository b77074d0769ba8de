"""The table of the decisions' bench: shares with Wilson intervals, goals beside them."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median

Figures = Mapping[str, float]
Cells = Mapping[str, Sequence[Figures]]
_Z = 1.96


def wilson(hits: float, of: float) -> tuple[float, float, float]:
    """Return a share with its 95 % interval (Wilson, 1927)."""
    if of == 0:
        return math.nan, math.nan, math.nan
    p = hits / of
    middle = (p + _Z**2 / (2 * of)) / (1 + _Z**2 / of)
    half = _Z / (1 + _Z**2 / of) * math.sqrt(p * (1 - p) / of + _Z**2 / (4 * of**2))
    return p, middle - half, middle + half


def share(hits: float, of: float) -> str:
    """Return a share with its interval, in per cent."""
    if of == 0:
        return "-"
    p, low, high = wilson(hits, of)
    return f"{p * 100:.1f} [{max(0, low) * 100:.1f}..{high * 100:.1f}]"


def _sum(rows: Sequence[Figures], name: str) -> float:
    return sum(row.get(name, 0.0) for row in rows)


def _mean(rows: Sequence[Figures], name: str) -> float:
    found = [row[name] for row in rows if name in row]
    return sum(found) / len(found) if found else math.nan


def _line(kind: str, world: str, rows: Sequence[Figures], hours: float) -> list[str]:
    """Return the line of campaigns of many treatments."""
    return [
        kind,
        world,
        str(len(rows)),
        share(sum(row.get("adopted", 0) > 0 for row in rows), _sum(rows, "arms") and len(rows)),
        share(_sum(rows, "wrong"), _sum(rows, "arms")),
        share(_sum(rows, "covered"), _sum(rows, "intervals")),
        share(_sum(rows, "p99_covered"), _sum(rows, "p99_intervals")),
        share(_sum(rows, "far_undecided"), _sum(rows, "far")),
        _points(_sum(rows, "overstated"), _sum(rows, "adopted") if "overstated" in rows[0] else 0),
        _rms(rows),
        f"{median(r['width'] for r in rows if 'width' in r) * 100:.1f}"
        if "width" in rows[0]
        else "-",
        f"{_mean(rows, 'hours') / hours * 100:.1f}" if "hours" in rows[0] else "-",
    ]


def _rms(rows: Sequence[Figures]) -> str:
    """Return the root of the estimates' mean squared error, in per cent."""
    count = _sum(rows, "estimates")
    return f"{math.sqrt(_sum(rows, 'squares') / count) * 100:.2f}" if count else "-"


def _points(total: float, of: float) -> str:
    return f"{total / of * 100:+.2f}" if of else "-"


_HEAD = [
    "campaign",
    "world",
    "n",
    "any adoption, %",
    "wrong, %",
    "covered, %",
    "p99 covered, %",
    "far undecided, %",
    "overstated, points",
    "rms error, %",
    "half width, %",
    "time, % of hour grid",
]
_CHOICE = [
    "campaign",
    "world",
    "n",
    "within 3 % of the best, %",
    "off by over 5 %, %",
    "mean regret, %",
    "no better than stock, %",
    "overstated, points",
    "time, %",
]


def _choice(kind: str, world: str, rows: Sequence[Figures]) -> list[str]:
    return [
        kind,
        world,
        str(len(rows)),
        share(_sum(rows, "near"), len(rows)),
        share(_sum(rows, "off" if "off" in rows[0] else "far"), len(rows)),
        f"{_mean(rows, 'regret') * 100:.2f}",
        share(_sum(rows, "worse"), len(rows)),
        _points(_sum(rows, "overstated"), _sum(rows, "claims")),
        f"{_mean(rows, 'hours') / (13 if kind == 'race-12' else 60) * 100:.1f}",
    ]


_PAIR = [
    "one treatment",
    "world",
    "n",
    "adopted, %",
    "wrong, %",
    "covered, %",
    "half width, %",
    "seconds, median",
    "90 % within",
    "as planned, %",
]


def _pair(kind: str, world: str, rows: Sequence[Figures]) -> list[str]:
    seconds = sorted(row["spent_s"] for row in rows)
    return [
        kind.removeprefix("pair-") + " %",
        world,
        str(len(rows)),
        share(_sum(rows, "adopted"), len(rows)),
        share(_sum(rows, "wrong"), len(rows)),
        share(_sum(rows, "covered"), _sum(rows, "intervals")),
        f"{median(r['width'] for r in rows if not math.isnan(r['width'])) * 100:.1f}",
        f"{median(seconds):.0f}",
        f"{seconds[int(0.9 * (len(seconds) - 1))]:.0f}",
        share(_sum(rows, "within"), len(rows)),
    ]


def _ablation(world: str, rows: Sequence[Figures]) -> list[list[str]]:
    parts = dict.fromkeys(name.split("/")[0] for name in rows[0] if "/" in name)
    return [_line(f"  {part}", world, [_part(row, part) for row in rows], 61.0) for part in parts]


def _part(row: Figures, part: str) -> Figures:
    return {k.split("/", 1)[1]: v for k, v in row.items() if k.startswith(f"{part}/")}


def _other(kind: str, world: str, rows: Sequence[Figures]) -> str:
    sentences: dict[str, Callable[[], str]] = {
        "screen": lambda: (
            f"all three strong settings of 19 are the first three of the ranking: "
            f"{share(_sum(rows, 'found'), len(rows))} %; intervals cover "
            f"{share(_sum(rows, 'covered'), _sum(rows, 'intervals'))} %; "
            f"{_mean(rows, 'runs'):.0f} runs, {_mean(rows, 'hours'):.1f} h"
        ),
        "never": lambda: (
            f"never steady found {share(_sum(rows, 'found'), _sum(rows, 'never'))} %, unstable "
            f"{share(_sum(rows, 'unstable'), _sum(rows, 'never'))} %, rejected "
            f"{share(_sum(rows, 'rejected'), _sum(rows, 'never'))} %, adopted "
            f"{share(_sum(rows, 'adopted'), _sum(rows, 'never'))} %; steady ones called so "
            f"{share(_sum(rows, 'wrongly'), _sum(rows, 'settling'))} %"
        ),
        "credits": lambda: (
            f"end of a burst flagged {share(_sum(rows, 'flagged'), _sum(rows, 'campaigns'))} %, "
            f"compared across {share(_sum(rows, 'crossed'), _sum(rows, 'campaigns'))} %; flagged "
            f"where there was none {share(_sum(rows, 'wrongly'), _sum(rows, 'campaigns'))} %"
        ),
        "forecast": lambda: "; ".join(
            f"{words}: within 20 % of the price {share(_sum(rows, f'{name}_price'), len(rows))} %, "
            f"of the detectable effect {share(_sum(rows, f'{name}_shown'), len(rows))} % "
            f"(median {math.exp(median(r[f'{name}_log'] for r in rows)):.2f} times)"
            for name, words in (
                ("new", "as assumed"),
                ("again", "after an earlier campaign"),
                ("checked", "after the check trials"),
            )
        ),
        "warm-up": lambda: (
            f"bias within 0.5 %: {share(_sum(rows, 'near'), _sum(rows, 'trials'))} % of "
            f"treatments (mean {_mean(rows, 'bias') * 100:.2f} %), "
            f"{_mean(rows, 'seconds'):.0f} s a trial; dropping 600 s of 720: "
            f"{share(_sum(rows, 'near_dropped'), _sum(rows, 'trials'))} %"
        ),
        "next": lambda: (
            f"Design.next {_mean(rows, 'median_ms'):.2f} ms after {_mean(rows, 'trials'):.0f} "
            f"trials (median); between blocks {_mean(rows, 'block_ms'):.0f} ms"
        ),
    }
    plain = kind.removesuffix("-bias").removesuffix("-preloaded")
    return f"{kind}, {world}, n = {len(rows)}: {sentences[plain]()}"


def text(cells: Cells) -> str:
    """Return all that was found, as text."""
    lines, choices, pairs, others = [_HEAD], [_CHOICE], [_PAIR], list[str]()
    for name, rows in cells.items():
        kind, world = name.split("@")
        if not rows or "absent" in rows[0]:
            continue
        if kind.startswith("pair-"):
            pairs.append(_pair(kind, world, rows))
        elif kind == "ablation":
            lines += _ablation(world, rows)
        elif "regret" in rows[0]:
            choices.append(_choice(kind, world, rows))
            if kind == "race-12":
                lines.append(_line(kind, world, rows, 13.0))
        elif "adopted" in rows[0] and "arms" in rows[0]:
            lines.append(_line(kind, world, rows, 13.0 if kind == "aa-12" else 61.0))
        else:
            others.append(_other(kind, world, rows))
    cost = [
        f"{name}: {_mean(rows, 'cpu_s'):.2f} CPU-s a campaign"
        for name, rows in cells.items()
        if rows and name.split("@")[0] in {"aa", "race"}
    ]
    return (
        "\n\n".join(
            [columns(lines), columns(choices), columns(pairs), "\n".join(others), "\n".join(cost)]
        )
        + "\n"
    )


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text in columns, nothing for a head alone."""
    if len(rows) == 1:
        return ""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
