"""The table of `diagnose_real.py`: how often answers are right, beside those of simpler rules."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from decisions_table import share
from diagnose_cases import CLOSES, FAULTS, HELD_OUT, VALID
from mydyno.campaign.doses import TRY, factor, limit_of, shown
from mydyno.diagnose import LoadEvidence, account, suspects
from mydyno.diagnose.diagnosis import DOSED, Proof, main_limit
from mydyno.diagnose.elasticity import FIRST_LOOK, MOST_STALLED, Segment
from mydyno.model import Figures

RESULTS = Path(__file__).parent / "results"
LINES = {  # the limits that each line of an account would be blamed for
    "server_cpu": {"server_cpu"},
    "server_run_queue": {"server_cpu"},
    "disk_read": {"disk_ios", "disk_latency", "pool_size"},
    "disk_write": {"disk_ios", "flushing", "redo_size"},
    "log": {"flush_latency"},
    "latch": {"latches"},
    "row_lock": {"row_locks"},
    "table_lock": {"table_locks"},
    "think": {"load_idle"},
    "thread_pool": {"pool_threads"},
    "network": {"link_rate", "round_trips"},
}
RESOURCES = {"cpu": {"server_cpu"}, "disk": {"disk_ios", "pool_size"}, "net": {"link_rate"}}
USED = 0.7  # of a resource: the usual alarm of the USE method


def utilisations(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the used share of each resource whose capacity is known."""
    m = row["figures"]["means"]
    found = {"cpu": 1 - m.get("cpu.idle:all", 0.0) / 2}
    if cap := m.get("disk.cap_ios"):
        found["disk"] = (m.get("disk.reads", 0.0) + m.get("disk.writes", 0.0)) / cap
    if cap := m.get("net.capacity"):
        found["net"] = max(m.get("net.rx_bytes", 0.0), m.get("net.tx_bytes", 0.0)) / cap
    return found


def rivals(row: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return what simpler rules would blame, on the same figures."""
    used = utilisations(row)
    highest = max(used, key=lambda name: used[name])
    beyond = [name for name in ("cpu", "disk", "net") if used.get(name, 0.0) > USED]
    return {
        "largest line of the account": LINES.get(row["largest"], set()),
        "highest utilisation": RESOURCES[highest],
        "USE, first above 70 %": RESOURCES[beyond[0]] if beyond else set(),
        "always the CPU": {"server_cpu"},
    }


def again(row: dict[str, Any]) -> dict[str, Any]:
    """Return a case as the limits of this version judge its figures."""
    kept = row["figures"]
    seen = Figures(kept["means"], kept["spread"], kept["rise"])
    found = account(seen.means, float(round(sum(row["lines"].values()))))
    judged = suspects(LoadEvidence.of(seen, found))
    names = [suspect.limit for suspect in judged.suspects]
    largest = max(found.lines, key=lambda line: line.connections).state
    right = list(FAULTS[row["kind"]][0])
    kept = {
        "right": right,
        "largest": largest,
        "closes": abs(found.gap) / found.n,
        "unknown": abs(found.unknown) / found.n,
        "doubts": found.doubts,
    }
    return {**row, "suspects": names, "answer": judged.answer, **kept}


def advised(valid: Sequence[Mapping[str, Any]]) -> str:
    """Return how often the first, or one of the first three, of MySQLTuner's advice is right."""
    cases = {(r["kind"], r["server"]) for r in valid}
    rows = [r for r in kept_rows("tuner") if (r["kind"], r["server"]) in cases]
    if not rows:
        return "MySQLTuner: not run"
    return f"MySQLTuner: {tops(rows)}"


def kept_rows(what: str) -> list[dict[str, Any]]:
    """Return the rows of a mode's results that are no errors."""
    place = RESULTS / f"diagnose-{what}.jsonl"
    found = [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []
    return [row for row in found if "error" not in row]


def paired() -> list[str]:
    """Return how often both limits of a pair are named, by proof and by evidence."""
    rows = kept_rows("pair")
    valid = [r for r in rows if min(r["validated"]) >= VALID]
    lines = []
    for row in valid:
        verdicts = {name.partition(" ")[0]: verdict for name, verdict in row["verdicts"].items()}
        named = [dose for dose in row["doses"] if verdicts.get(dose) in {"the_limit", "a_limit"}]
        first = {dose for doses in row["expected"][:3] for dose in doses}
        behind = {dose for dose, states in DOSED.items() if (row.get("next") or [""])[0] in states}
        after = {*named} | (behind & {*row["doses"]})
        row |= {"named": len(named), "after": len(after)}
        row |= {"suspected": len(first & {*row["doses"]})}
        lines.append(
            f"| {row['kind']} | {', '.join(f'{v:.2f}' for v in row['validated'])} | "
            f"{'; '.join(f'{k} {e[0]} [{e[1]}..{e[2]}]' for k, e in row['proofs'].items())} | "
            f"{row['all']} | {row['named']} | {row['after']} | {row['suspected']} |"
        )
    both, after, first = (sum(r[k] == 2 for r in valid) for k in ("named", "after", "suspected"))
    one = sum(r["named"] >= 1 for r in valid)
    counts = {
        "both proven": both,
        "one": one,
        "both proven, or one and the other as the next limit": after,
        "both among the first three suspects": first,
    }
    shares = "; ".join(f"{words} {share(n, len(valid))}" for words, n in counts.items())
    found = f"{len(rows)} pairs, {len(valid)} validated; {shares}"
    return [found, *lines]


def kept_segments(row: Mapping[str, Any]) -> list[Segment]:
    """Return the segments of a row that slow, their rates outside of rare stalls."""
    base = [each[4] or 0.0 for each in row["segments"] if each[0] == "FAULT"]
    rare = 0 < sum(base) / len(base) <= MOST_STALLED
    rates = [  # mysqlslap counts queries: it has no transactions
        (name, block, steady if rare or tps is None else tps)
        for name, block, tps, steady, _ in row["segments"]
    ]
    return [
        Segment("", block, rate)
        if name == "FAULT"
        else Segment(limit_of(name), block, rate, factor(name))
        for name, block, rate in rates
        if rate is not None and (name == "FAULT" or (not name.startswith(TRY) and factor(name) < 1))
    ]


def judged(row: Mapping[str, Any]) -> list[tuple[Proof, Proof]] | None:
    """Return each dose's proof when the answer was known, and by the blocks after it.

    None where no block shows the limit.
    """
    every = kept_segments(row)
    last = max(s.block for s in every)
    for block in range(FIRST_LOOK, last - FIRST_LOOK):
        early = shown([s for s in every if s.block <= block], None)
        if main_limit(early):
            late = {p.limit: p for p in shown([s for s in every if s.block > block], None)}
            return [(proof, late[proof.limit]) for proof in early]
    return None


def truths() -> list[str]:
    """Return how far elasticities at the answer are from those of the blocks after it."""
    lines, errors, held = [], list[float](), list[bool]()
    for row in kept_rows("truth"):
        pairs = judged(row)
        lines.append(f"| {row['kind']} | {row['server']} | {'' if pairs else 'no answer'} |")
        for early, late in pairs or ():
            half = (late.high - late.low) / 2
            errors.append(abs(early.elasticity - late.elasticity))
            held.append(early.low <= late.elasticity <= early.high)
            lines.append(
                f"|   {early.title} | {early.segments} segments: {early.elasticity:.2f} "
                f"[{early.low:.2f}..{early.high:.2f}] | {late.segments}: {late.elasticity:.2f} "
                f"± {half:.2f} |"
            )
    if not errors:
        return ["elasticities against later blocks: not run"]
    error = f"median error {median(errors):.3f} of {len(errors)}"
    holds = f"intervals hold {share(sum(held), len(held))}"
    return [f"elasticities against later blocks: {error}; {holds}", *lines]


def controlled() -> str:
    """Return in how many controls a limit was proven, which is wrong."""
    rows = kept_rows("control")
    wrong = sum(bool(row["proven"]) for row in rows)
    return f"{len(rows)} controls, a limit proven in {share(wrong, len(rows))}"


def by_server(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return cases by their server."""
    return {
        name: [r for r in rows if r["server"] == name]
        for name in dict.fromkeys(r["server"] for r in rows)
    }


def tops(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how often the first, or one of the first three suspects is right."""
    first, three = (sum(bool({*r["suspects"][:n]} & {*r["right"]}) for r in rows) for n in (1, 3))
    return f"top-1 {share(first, len(rows))}, top-3 {share(three, len(rows))}"


def table() -> str:
    """Return the share of right answers, by evidence and by rivals, and the proofs."""
    rows = [again(r) for r in kept_rows("evidence")]
    valid = [r for r in rows if r["validated"] >= VALID]
    held = [r for r in valid if r["kind"] in HELD_OUT]
    closes = [r for r in rows if r["unknown"] <= CLOSES]
    agree = [r for r in rows if r["closes"] <= CLOSES]
    lines = [
        f"{len(rows)} cases, {len(valid)} validated (taking the fault away gives a tenth and more)",
        f"all: {tops(valid)}",
        f"kinds that no threshold was set on: {tops(held)}",
        *(f"{name}: {tops(some)}" for name, some in by_server(valid).items()),
        f"the known states add up to N within 3 %: {share(len(closes), len(rows))}",
        f"looks and the kernel's count of CPUs agree within 3 %: {share(len(agree), len(rows))}",
    ]
    for name in rivals(rows[0]):
        hits = sum(bool(rivals(r)[name] & {*r["right"]}) for r in valid)
        lines.append(f"{name}: {share(hits, len(valid))}")
    lines.append(advised(valid))
    lines += [
        f"| {r['kind']} | {r['server']} | {r['validated']:.2f} | "
        f"{', '.join(r['suspects'][:3]) or 'none'} | {r['answer']} | {r['unknown']:.1%} | "
        f"{r['closes']:.1%} |"
        for r in rows
    ]
    lines += [controlled(), *paired(), *truths()]
    for row in kept_rows("proof"):
        lines.append(json.dumps({k: v for k, v in row.items() if k != "segments"}))
    return "\n".join(lines)
