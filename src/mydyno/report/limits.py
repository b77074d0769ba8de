"""Limits: where the connections of each treatment are, what is suspected and what is proven."""

import textwrap
from collections.abc import Sequence

from mydyno.diagnose import Diagnosis, Proof, Seen, Suspect
from mydyno.diagnose.account import STATES
from mydyno.diagnose.diagnosis import SHOWN
from mydyno.report import units

_BAR = 24  # characters of a full bar
_LEAST = 0.005  # share below which a line is left out
_SUSPECTS = 3

VERDICTS = {
    "the_limit": "the limit",
    "a_limit": "a limit",
    "not_it": "not it",
    "undecided": "undecided",
}
DOUBTS = {
    "over": "the states add up to more than all connections",
    "unlisted": "the server listed fewer connections than the load has threads",
    "little": "throughput times mean latency is not the number of connections (Little's law)",
    "shared": "the server does not list the threads of connections, so its background threads are "
    "counted with them",
}
FIGURES = {
    "cpu_per_query_s": "CPU per query",
    "server_cpu_cores": "CPU of the server",
    "server_run_queue": "its threads waiting for a CPU",
    "server_minor_faults": "its page faults",
    "server_major_faults": "its major page faults",
    "server_rss_bytes": "its memory (RSS)",
    "server_throttled": "withheld by its CPU quota",
    "log_waits": "waits for the log buffer",
    "busy_time": "Busy_time",
}


def render_limits(found: Sequence[Diagnosis], width: int) -> str:
    """Return the diagnoses as text of at most `width` columns, ending in a newline."""
    return "\n\n".join("\n".join(_one(one, width)) for one in found) + "\n"


def sentence(one: Diagnosis) -> str:
    """Return the answer in one sentence."""
    about = f"{one.treatment}, {one.workload}"
    titles = {s.limit: s.title for s in one.suspects} | {p.limit: p.title for p in one.proofs}
    if one.proven:
        return f"{about}: the limit is {titles.get(one.answer, one.answer)}, proven by doses."
    if one.answer == "unknown":
        return f"{about}: what limits it is unknown."
    return f"{about}: suspected is {titles[one.answer]}; not proven."


def lines(one: Diagnosis) -> list[tuple[str, float, float]]:
    """Return the states of an account that are worth showing: words, connections, share."""
    return [
        (STATES[line.state], line.connections, line.share)
        for line in one.lines
        if abs(line.share) >= _LEAST or line.state == "unknown"
    ]


def seen(one: Seen) -> str:
    """Return a figure with its threshold."""
    value, threshold = (units.quantity(v, one.unit) for v in (one.value, one.threshold))
    return f"{one.counter}: {value} (threshold {threshold})"


def doubts(one: Diagnosis) -> list[str]:
    """Return in words which checks of the account do not hold."""
    return [DOUBTS[code] for code in one.doubts]


def shown(one: Diagnosis) -> list[tuple[str, str]]:
    """Return the figures beside the account."""
    return [
        (FIGURES[name], units.quantity(value, SHOWN[name])) for name, value in one.shown.items()
    ]


def interval(proof: Proof) -> str:
    """Return an elasticity with its interval."""
    return f"{proof.elasticity:.2f} [{proof.low:.2f}..{proof.high:.2f}]"


def _one(one: Diagnosis, width: int) -> list[str]:
    made = _wrapped(sentence(one), width)
    if one.n is None:
        return [
            *made,
            *_wrapped("What threads do was not sampled: there is no account.", width),
        ]
    rate = units.measurement(one.throughput, one.unit)
    trials = units.counted(one.trials, "trial")
    made += ["", f"Where {one.n:g} connections are, on average ({rate}, {trials}):"]
    made += _account(one, width)
    if one.doubts:
        made += _wrapped(f"! Doubtful: {'; '.join(doubts(one))}.", width)
    made += ["", *_suspects(one, width)] if one.suspects else []
    made += ["", *_proofs(one, width)] if one.proofs else []
    if one.unseen:
        missing = "; ".join(f"{u.title} ({', '.join(u.missing)})" for u in one.unseen)
        made += ["", *_wrapped(f"Could not be seen: {missing}.", width)]
    if one.shown:
        made += ["", *_wrapped("; ".join(f"{n} {v}" for n, v in shown(one)) + ".", width)]
    return made


def _account(one: Diagnosis, width: int) -> list[str]:
    rows = lines(one)
    name = max(len(words) for words, _, _ in rows)
    drawn = width - name - 22 >= _BAR
    return [
        f"  {words:<{name}}  {n:6.2f}  {share:4.0%}"
        + (f"  {'▇' * round(max(share, 0.0) * _BAR)}" if drawn else "")
        for words, n, share in rows
    ]


def _suspects(one: Diagnosis, width: int) -> list[str]:
    made = ["Suspects, by the elasticity to expect:"]
    for suspect in one.suspects[:_SUSPECTS]:
        made += _wrapped(f"  {suspect.expected:.2f}  {suspect.title}", width, "        ")
        made += _wrapped(f"        {_because(suspect)}", width, "        ")
    if rest := one.suspects[_SUSPECTS:]:
        made += _wrapped(f"        also: {', '.join(s.title for s in rest)}", width, "        ")
    return made


def _because(suspect: Suspect) -> str:
    said = "; ".join(seen(each) for each in suspect.evidence)
    against = "; ".join(seen(each) for each in suspect.against)
    return f"{said}; against it: {against}" if against else said


def _proofs(one: Diagnosis, width: int) -> list[str]:
    made = ["Proof, by slowing one thing down (elasticity, 95 % simultaneous):"]
    every = [*one.proofs, *([one.explained] if one.explained else [])]
    name = max(len(proof.title) for proof in every)
    for proof in every:
        verdict = VERDICTS.get(proof.verdict, "")
        made.append(f"  {proof.title:<{name}}  {interval(proof)}  {verdict}".rstrip())
    if one.explained:
        left = [1 - one.explained.high, 1 - one.explained.low]
        made += _wrapped(f"  Not explained by all of them: {left[0]:.2f} to {left[1]:.2f}.", width)
    return made


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
