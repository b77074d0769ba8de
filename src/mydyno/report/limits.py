"""Limits: where the connections of each treatment are, what is suspected and what is proven."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.diagnose import Diagnosis, Proof, Seen, Suspect
from mydyno.diagnose.account import STATES
from mydyno.diagnose.diagnosis import A_LIMIT, LIVE, THE_LIMIT, TIMES, UNDECIDED, Gain
from mydyno.diagnose.elasticity import MOST_STALLED, blocks_to_decide
from mydyno.diagnose.suspects import IDLE, TOGETHER
from mydyno.report import units
from mydyno.report.charts import Axis, AxisTick, Table
from mydyno.report.units import wrapped

_BAR = 24  # characters of a full bar
_HELPS = 1.1  # least gain of a setting that is worth the headline, by its lower end
_LEAST = 0.005  # share below which a line is left out
_IN_STALLS = 0.05  # share of a state in stalls, from which on it is named
_SUSPECTS = 3
_SETTINGS = ("mysqld.", "net.")  # what begins so is a setting; the others are doses
_KEYS = {  # the setting that has more of what a dose has less of
    "link.rate": "link.rate",
    "link.delay": "link.delay",
    "cgroup.cpu": "cgroup.cpu",
    "disk.rate": "disk.class",  # latencies are a lab's own, which no class has
}
_MOST_BLOCKS = 60  # that are worth advising: half an hour and more
_ENDLESS = 10_000  # characters of a line that a browser breaks
_AXIS = Axis(-0.25, 1.25, log=False, ticks=(0.0, 0.5, 1.0))

_AT_MOST = (
    "For CPUs this is an upper bound: a thread that is preempted may hold a latch that others "
    "wait for."
)
DOUBTS = {
    "coarse": "the load reports too seldom for segments of seven seconds, so no dose was given",
    "disturbed": "no trial of it is valid, see `mydyno compare`",
    "looks": "the looks at threads and the kernel's count of their CPU time differ",
    "unlisted": "the server listed fewer connections than the load has threads",
    "over": "more connections were seen than the load has",
    "little": "throughput times mean latency is not the number of connections (Little's law)",
    "pool": "connections share a pool of threads; the time spent waiting for one is computed as "
    "the rest",
    "shared": "the server lists too few of the threads that serve connections, so its background "
    "threads are counted with them",
}
FIGURES = {  # what is shown beside the account: its words, and its unit
    "cpu_per_query_s": ("CPU per query", "s"),
    "server_cpu_cores": ("CPU of the server", "cores"),
    "server_run_queue": ("its threads waiting for a CPU", ""),
    "server_minor_faults": ("its page faults", "/s"),
    "server_major_faults": ("its major page faults", "/s"),
    "server_rss_bytes": ("its memory (RSS)", "B"),
    "server_throttled": ("withheld by its CPU quota", "s/s"),
    "log_waits": ("waits for the log buffer", "/s"),
    "busy_time": ("Busy_time", "s/s"),
    "idle_connections": ("idle connections, left out", ""),
}


def render_limits(found: Sequence[Diagnosis], width: int) -> str:
    """Return the diagnoses as text of at most `width` columns, ending in a newline."""
    return "\n\n".join("\n".join(_one(one, width)) for one in found) + "\n"


def sentence(one: Diagnosis) -> str:
    """Return the answer in one sentence."""
    about = f"{one.treatment}, {one.workload}"
    titles = {s.limit: s.title for s in one.suspects}
    titles |= {p.limit: p.title for p in one.proofs}
    if one.proven:
        return f"{about}: the limit is the {titles.get(one.answer, one.answer)}, proven by doses."
    if one.answer == IDLE:
        given = "; no dose was given" if one.dosed and not one.proofs else ""
        more = "it asks for no more; give it more threads, or a higher rate"
        return f"{about}: the load itself is the limit, as {more}{given}."
    if one.answer == "unknown":
        return f"{about}: {_unknown(one)}."
    return f"{about}: the limit is probably {titles[one.answer]}; this is not proven."


def _unknown(one: Diagnosis) -> str:
    """Return what is known where no main limit is: other limits, or a setting that helps."""
    partly = sorted((p for p in one.proofs if p.verdict == A_LIMIT), key=lambda p: -p.elasticity)
    names = " and the ".join(f"{p.title} ({p.elasticity:.2f})" for p in partly)
    helps = [_times(gain) for gain in one.reliefs if gain.low > _HELPS]
    if len(partly) > 1:
        return f"several limits, none the main one: the {names}, proven by doses"
    if partly:
        return f"a limit is the {names}, proven by doses; the main one is unknown"
    if helps:
        return f"no dose has proven a limit, but {' and '.join(helps)}"
    return f"the limit is unknown{'; no dose has proven one' if one.dosed else ''}"


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
    named = [(*FIGURES[name], value) for name, value in one.shown.items()]
    return [(words, units.quantity(value, unit)) for words, unit, value in named]


def interval(proof: Proof) -> str:
    """Return an elasticity with its interval."""
    return f"{proof.elasticity:.2f} [{proof.low:.2f}..{proof.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Piece:
    """One state in a bar: its class in the style sheet, where it begins and how long it is."""

    css: str
    at: float
    length: float
    label: str


@dataclass(frozen=True, slots=True)
class AccountBar:
    """One treatment: its account as a bar, its answer, its suspects and doubts in words."""

    name: str
    total: str
    pieces: tuple[Piece, ...]
    answer: str
    because: tuple[tuple[str, str], ...]
    doubts: tuple[str, ...]
    shown: tuple[tuple[str, str], ...]
    unseen: str


@dataclass(frozen=True, slots=True)
class ElasticityMark:
    """One elasticity: its words, its interval in text and in per cent of the axis."""

    title: str
    estimate: str
    interval: str
    verdict: str
    at: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class LimitsView:
    """The account of each treatment under one workload, and elasticities where doses were given."""

    workload: str
    bars: tuple[AccountBar, ...]
    legend: tuple[tuple[str, str], ...]
    table: Table
    whiskers: tuple[ElasticityMark, ...]
    ticks: tuple[AxisTick, ...]
    unexplained: str
    notes: tuple[str, ...]

    @property
    def proven(self) -> ElasticityMark | None:
        """Return the mark of the limit, if one is proven."""
        return next((one for one in self.whiskers if one.verdict == "the limit"), None)


def views(found: Sequence[Diagnosis]) -> tuple[LimitsView, ...]:
    """Return what the page shows, a view for each workload that has an account."""
    known = [one for one in found if one.lines or one.proofs]
    return tuple(
        _view(name, [one for one in known if one.workload == name])
        for name in dict.fromkeys(one.workload for one in known)
    )


def _view(workload: str, found: Sequence[Diagnosis]) -> LimitsView:
    every = [line.state for one in found for line in one.lines if line.share >= _LEAST]
    states = [state for state in STATES if state in every]
    table = Table(
        ("Treatment", *(STATES[state] for state in states)),
        [(one.treatment, *(_cell(one, state) for state in states)) for one in found],
    )
    proven = next((one for one in found if one.proofs), None)
    whiskers = _whiskers(proven) if proven else ()
    ticks = tuple(AxisTick(_AXIS.at(value), f"{value:g}") for value in _AXIS.ticks)
    return LimitsView(
        workload,
        tuple(map(_bar, found)),
        tuple((state, STATES[state]) for state in states),
        table,
        whiskers,
        ticks,
        _unexplained(proven) if proven else "",
        tuple(filter(None, _notes(proven, _ENDLESS))) if proven else (),
    )


def _cell(one: Diagnosis, state: str) -> str:
    value = next((line.connections for line in one.lines if line.state == state), 0.0)
    return f"{value:.2f}"


def _bar(one: Diagnosis) -> AccountBar:
    pieces, at = [], 0.0
    total = sum(max(line.share, 0.0) for line in one.lines) or 1.0
    for line in one.lines:
        length = 100 * max(line.share, 0.0) / total
        label = f"{STATES[line.state]}: {line.connections:.2f} connections, {line.share:.0%}"
        if length > 0:
            pieces.append(Piece(f"state-{line.state}", round(at, 2), round(length, 2), label))
        at += length
    because = tuple((s.title, _because(s)) for s in one.suspects[:_SUSPECTS])
    count = "not sampled" if one.n is None else f"{one.n:g} connections"
    total_words = f"{count}, {units.measurement(one.throughput, one.unit)}{_when(one)}"
    answer = sentence(one).partition(": ")[2]
    return AccountBar(
        name=one.treatment,
        total=total_words,
        pieces=tuple(pieces),
        answer=answer[:1].upper() + answer[1:],
        because=because,
        doubts=tuple(doubts(one)),
        shown=tuple(shown(one)),
        unseen=_missing(one),
    )


def _whiskers(one: Diagnosis) -> tuple[ElasticityMark, ...]:
    return tuple(
        ElasticityMark(
            proof.title,
            f"{proof.elasticity:.2f}",
            f"{proof.low:.2f}..{proof.high:.2f}",
            _verdict(proof),
            _AXIS.at(proof.elasticity),
            _AXIS.at(proof.low),
            _AXIS.at(proof.high),
        )
        for proof in _every(one)
    )


def _verdict(proof: Proof) -> str:
    return proof.verdict.replace("_", " ")


def _every(one: Diagnosis) -> list[Proof]:
    """Return the proofs of single doses, and that of all at once, last."""
    return [*one.proofs, *([one.explained] if one.explained else [])]


def _unexplained(one: Diagnosis) -> str:
    if one.explained is None:
        return ""
    low, high = (max(0.0, 1 - bound) for bound in (one.explained.high, one.explained.low))
    return f"{low:.2f} to {high:.2f}"


def _one(one: Diagnosis, width: int) -> list[str]:
    made = wrapped(sentence(one), width)
    shown_by_doses = ["", *_proofs(one, width)] if one.proofs else _relieved(one, width)
    if one.n is None:
        none = "What threads do was not sampled: there is no account."
        return [*made, *wrapped(none, width), *shown_by_doses]
    rate = units.measurement(one.throughput, one.unit)
    trials = units.counted(one.trials, "trial")
    made += ["", f"Where {one.n:g} connections are, on average ({rate}, {trials}{_when(one)}):"]
    made += _account(one, width)
    if one.doubts:
        made += wrapped(f"! Doubtful: {'; '.join(doubts(one))}.", width)
    made += ["", *_suspects(one, width)] if one.suspects else []
    made += shown_by_doses
    if one.unseen:
        made += ["", *wrapped(f"Could not be seen: {_missing(one)}.", width)]
    if one.shown:
        made += ["", *wrapped("; ".join(f"{n} {v}" for n, v in shown(one)) + ".", width)]
    return made


def _missing(one: Diagnosis) -> str:
    """Return the limits that could not be judged, each with the figures that are missing."""
    return "; ".join(f"{u.title} ({', '.join(u.missing)})" for u in one.unseen)


def _when(one: Diagnosis) -> str:
    """Return the time that the account and all evidence are of, in seconds of a trial."""
    start_s, end_s = one.window
    return f", seconds {start_s:.0f} to {end_s:.0f}" if end_s > start_s else ""


def _account(one: Diagnosis, width: int) -> list[str]:
    rows = lines(one)
    name = max(len(words) for words, _, _ in rows)
    drawn = width - name - 22 >= _BAR
    return [
        (
            f"  {words:<{name}}  {n:6.2f}  {share:4.0%}"
            + (f"  {'▇' * round(max(share, 0.0) * _BAR)}" if drawn else "")
        ).rstrip()
        for words, n, share in rows
    ]


def _suspects(one: Diagnosis, width: int) -> list[str]:
    made = ["Suspects, by the elasticity to expect:"]
    for suspect in one.suspects[:_SUSPECTS]:
        made += wrapped(f"  {suspect.expected:.2f}  {suspect.title}", width, "        ")
        made += wrapped(f"        {_because(suspect)}", width, "        ")
        for key in (key for key in suspect.doses if key.startswith(_SETTINGS)):
            made.append(f"        {_compare(one, key)}")
    if rest := one.suspects[_SUSPECTS:]:
        made += wrapped(f"        also: {', '.join(s.title for s in rest)}", width, "        ")
    return made


def _compare(one: Diagnosis, key: str) -> str:
    """Return the command that compares a setting with what it is now."""
    of = "" if one.workload == LIVE else f" -t {shlex.quote(one.treatment)}"
    both = " ".join(f"--try {one}=VALUE" for one in dict.fromkeys((key, TOGETHER.get(key, key))))
    return f"compare it: mydyno run SPEC{of} {both}"


def _because(suspect: Suspect) -> str:
    signs = "; ".join(seen(each) for each in suspect.evidence)
    against = "; ".join(seen(each) for each in suspect.against)
    return f"{signs}; against it: {against}" if against else signs


def _proofs(one: Diagnosis, width: int) -> list[str]:
    made = ["Proof: what throughput loses when one speed is lowered (elasticity, 95 % intervals):"]
    every = _every(one)
    name = max(len(proof.title) for proof in every)
    made += [f"  {p.title:<{name}}  {interval(p)}  {_verdict(p)}".rstrip() for p in every]
    if one.explained:
        made += wrapped(f"  Not explained by any of them: {_unexplained(one)}.", width)
    return made + _notes(one, width)


def _notes(one: Diagnosis, width: int) -> list[str]:
    """Return what holds of CPUs, stalls, what more of the limit and settings give, what is open."""
    of_cpus = any(proof.limit.startswith("slow.") for proof in one.proofs)
    made = wrapped(f"  {_AT_MOST}", width, "  ") if of_cpus else []
    found = (_stalls, _relaxed, _relieved, _undecided)
    return made + [line for each in found for line in each(one, width)]


def _undecided(one: Diagnosis, width: int) -> list[str]:
    """Return how many blocks would decide what these did not."""
    left = [p for p in one.proofs if p.verdict == UNDECIDED and p.segments]
    if not left:
        return []
    names = ", ".join(f"the {proof.title}" for proof in left)
    blocks = max(map(blocks_to_decide, left))
    decided = (
        f"about {blocks} blocks would decide: run it with --blocks {blocks}."
        if blocks <= _MOST_BLOCKS
        else f"more than {_MOST_BLOCKS} blocks would decide: look for what makes this host uneven."
    )
    return ["", *wrapped(f"Undecided: {names}. At the spread seen, {decided}", width)]


def _stalls(one: Diagnosis, width: int) -> list[str]:
    """Return how much of the time the load stood still, if it is worth a line."""
    if one.stalls.share < _LEAST:
        return []
    often = one.stalls.share > MOST_STALLED
    rest = "these are too many to leave out" if often else "the proof leaves these out"
    line = (
        f"The load stalled for {one.stalls.share:.0%} of the time (seconds below half of its usual "
        f"rate); {rest}."
    )
    known = sorted(one.stalls.lines, key=lambda each: -each.share)
    there = [each for each in known if each.share >= _IN_STALLS]
    if there and one.n:
        where = "; ".join(f"{each.connections:.1f} {STATES[each.state]}" for each in there)
        line += f" Where the {one.n:g} connections are then: {where}."
    return ["", *wrapped(line, width)]


def _relieved(one: Diagnosis, width: int) -> list[str]:
    """Return what settings give that take a suspected limit away."""
    made = [line for g in one.reliefs for line in wrapped(f"  {_times(g)}", width, "    ")]
    return ["", "Settings tried in the same segments, not kept:", *made] if made else []


def _times(of: Gain) -> str:
    ratio = f"{of.ratio:.2f} [{of.low:.2f}..{of.high:.2f}]"
    return f"{of.setting}{',' if ',' in of.setting else ''} gives {ratio} times the throughput"


def _relaxed(one: Diagnosis, width: int) -> list[str]:
    """Return what more of the limit gives, and until which limit is next."""
    made: list[str] = []
    for proof in one.relaxed:
        low, middle, high = (proof.dose**e - 1 for e in (proof.low, proof.elasticity, proof.high))
        less = 1 - 1 / proof.dose
        what = f"{less:.0%} less" if proof.limit in TIMES else f"{proof.dose - 1:.0%} more"
        line = (
            f"{what} of it gives {middle:+.0%} [{low:+.0%}..{high:+.0%}] "
            f"of throughput (elasticity {interval(proof)})."
        )
        made += wrapped(line, width)
    if one.next_limit:
        state, times = one.next_limit
        at = f"{1 / times:.2f} of it" if one.answer in TIMES else f"{times:.1f} times as much"
        line = f"By the account, the next limit comes at about {at}: {STATES[state]}."
        made += wrapped(line, width)
    limits = (p.limit for p in one.proofs if p.verdict in {THE_LIMIT, A_LIMIT})
    made += [_compare(one, key) for key in dict.fromkeys(map(_KEYS.get, limits)) if key]
    return ["", *made] if made else []
