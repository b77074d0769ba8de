"""A diagnosis as a design: one treatment, and the same with one resource slowed by a known factor.

The first trial is long: it settles the server and gives the account.  Then follow blocks of short
segments of the running server: the treatment twice, each chosen dose once, and all doses at once.
"""

import math
import random
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from mydyno.campaign.designs import (
    DesignKind,
    Fixed,
    PlanInput,
    Stop,
    TrialForecast,
    exhausted,
    spent,
)
from mydyno.campaign.spec import DeviceTable
from mydyno.campaign.switchback import Settled
from mydyno.campaign.treatments import credits_of, disk_class_of
from mydyno.diagnose.diagnosis import ALL, TIMES, UNDECIDED, Proof, main_limit
from mydyno.diagnose.elasticity import (
    FIRST_LOOK,
    MOST_STALLED,
    NOTABLE,
    BlockLooks,
    Segment,
    all_refuted,
    proofs,
)
from mydyno.diagnose.suspects import TOGETHER
from mydyno.lab import bursts
from mydyno.model import (
    Durability,
    Outcome,
    Reset,
    Settings,
    SpecError,
    Trial,
    TrialStatus,
    unknown_value,
)
from mydyno.stack.cpus import apart
from mydyno.stack.doses import CREDITS, LATENCIES, ratio
from mydyno.stack.known import normalise
from mydyno.stack.layers import kind_of
from mydyno.stack.link import (
    DELAY,
    NO_DELAY,
    RATE,
    UNLIMITED,
    bytes_per_s,
    delay_us,
    normal,
    share,
    text,
    uses_lab_link,
)
from mydyno.stack.protocol import StackSettings, full_key, split
from mydyno.stats import Estimator, Method, Rule
from mydyno.stats.effects import Size
from mydyno.stats.rule import is_lower

EXPECTED = "expected "  # the first trial's metrics of the elasticity to expect, by dose
OWN = "own "  # and of the seconds that a request takes, by bare key
PACED = "paced"  # that of a load which asks for less than it could have
COARSE = "coarse"  # and of one that reports too seldom: the seconds between two reports
STEADY, STALLED = "steady", "stalled"  # a segment's rate outside of stalls, the share of stalls
BUDGET_S = 360.0
WASHOUT_S, SEGMENT_S, _EACH_S = 2.0, 7.0, 8.0  # the last with the switch to it
SETTLED_S = (30.0, 45.0, 60.0)  # a look at the first trial's end
# What a speed or a time is set to; the second where the first leaves too wide an interval.
STRENGTHS = (("80%", "125%"), ("70%", "143%"))
_VAGUE = 0.5  # half of an interval that could not prove a limit of one
_TITLES = {
    "disk.rate": "rate of the disk",
    "disk.read_latency": "latency of its reads",
    "disk.flush_latency": "latency of its flushes",
    "link.rate": "rate of the link",
    "link.delay": "round trip of the link",
    "slow.host": "CPUs of this host",
    "slow.server": "CPUs of the server",
    "slow.load": "CPUs of the load",
    "cgroup.cpu": "CPU quota of the server",
    ALL: "all of these at once",
}
_COMMIT, _SORT = "mysqld.innodb_flush_log_at_trx_commit", "mysqld.sort_buffer_size"
_SYNC = "mysqld.sync_binlog"
TRY = "try "  # how the treatments that take a suspected limit away are named
# Settings that show their entire effect at once, by what they relieve; never kept.  All but the
# buffer for sorts relieve by a larger value; a log that is never flushed gains nothing from 2.
RELIEFS = {
    _COMMIT: "2",
    _SYNC: "0",
    _SORT: "256K",
    "mysqld.tmp_table_size": "64M",
}
_POOLED = ("db/mysqld.thread_handling", "pool-of-threads")
_OF_POOL = {"mysqld.thread_pool_size": "64"}  # no other server knows the variable
_MOST = 4  # doses that are tried at first
_PROMISING = 0.05  # expected elasticity
_UNTOLD = 0.25  # elasticity of all at once that the doses tried alone do not show: the others do
_FOR_BLOCKS = 0.8  # share of the budget that is left for blocks
_RELAXED = 4  # segments of the dose that relaxes the limit


def title(dose: str) -> str:
    """Return the words for a dose, of a relief the setting and what it costs."""
    if dose.startswith(TRY):
        key, _, value = dose.removeprefix(TRY).partition("=")
        kind, bare = kind_of(key)
        weaker = kind.durability(bare, "", value, split({})) is Durability.WEAKER
        both = f" and {TOGETHER[key]}" if key in TOGETHER else ""
        return f"{key}{both} = {value}{', which weakens durability' if weaker else ''}"
    return _TITLES.get(dose, dose)


def limit_of(dose: str) -> str:
    """Return what a dose slows, of ``disk.rate 80%`` the disk's rate; a relief is itself."""
    return dose if dose.startswith(TRY) else dose.partition(" ")[0]


def factor(dose: str) -> float:
    """Return the speed under a dose such as ``disk.rate 80%``, relative to that without it.

    A relief is no speed: e, so that its elasticity is the logarithm of its gain.
    """
    if dose.startswith(TRY):
        return math.e
    key, _, value = dose.partition(" ")
    times = ratio(value or STRENGTHS[0][0])  # "all" of recorded diagnoses had one strength
    return 1 / times if key in TIMES else times


def segments(history: Sequence[Outcome], baseline: str, response: str) -> list[Segment]:
    """Return the segments of a diagnosis that were measured; the first trial is none.

    Their rates are those outside of stalls, where these are rare: under a dose alone, too, where
    they would be taken for its effect.
    """
    stalls = any(m.value for o in _measured(history) for m in o.metrics if m.name == STALLED)
    response = STEADY if stalls and stalled(history, baseline) <= MOST_STALLED else response
    found = []
    for outcome in _measured(history):
        if values := [m.value for m in outcome.metrics if m.name == response]:
            name, block = outcome.trial.treatment, outcome.trial.block
            own = ("", 1.0) if name == baseline else (limit_of(name), factor(name))
            found.append(Segment(own[0], block, values[0], own[1]))
    return found


def stalled(history: Sequence[Outcome], baseline: str) -> float:
    """Return the share of stalls in a diagnosis's segments without a dose."""
    own = [o for o in _measured(history) if o.trial.treatment == baseline]
    shares = [m.value for o in own for m in o.metrics if m.name == STALLED]
    return sum(shares) / len(shares) if shares else 0.0


def _measured(history: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in history[1:] if outcome.status is TrialStatus.OK]


@dataclass(frozen=True, slots=True)
class Proven:
    """What segments have shown: doses that slow, doses that relax, settings that relieve.

    `stalled` is the share of stalls, which they leave out up to `MOST_STALLED`.
    """

    worse: list[Proof]
    better: list[Proof]
    reliefs: list[Proof]
    stalled: float = 0.0


def proven(
    history: Sequence[Outcome], baseline: str, response: str, budget_s: float | None
) -> Proven:
    """Return what the segments of a diagnosis have shown so far."""
    every = segments(history, baseline, response)
    worse, better, reliefs = (shown(every, budget_s, kind) for kind in _KINDS)
    return Proven(worse, better, reliefs, stalled(history, baseline))


_KINDS = ("worse", "better", "relief")


def _kind(of: Segment) -> str:
    return "relief" if of.dose.startswith(TRY) else "worse" if of.speed < 1 else "better"


def shown(every: Sequence[Segment], budget_s: float | None, kind: str = "worse") -> list[Proof]:
    """Return what the segments show of one kind of doses: `worse`, `better`, or `relief`."""
    blocks = {s.block for s in every if s.dose and _kind(s) == kind}
    chosen = [s for s in every if s.block in blocks and (not s.dose or _kind(s) == kind)]
    arms = len({s.dose for s in chosen if s.dose}) + 2
    planned = max(FIRST_LOOK + 1, int((budget_s or BUDGET_S) * _FOR_BLOCKS / (arms * _EACH_S)))
    return proofs(chosen, BlockLooks(planned), title)


@dataclass(frozen=True)
class Doses:
    """Blocks of doses that the account makes likely, until one is proven or all are refuted.

    Before `least` blocks no answer ends it.  The doses are as many as the budget has time for in
    these; the `FIRST_LOOK` blocks that an interval takes may use it up twice, as after a kill the
    load settles again on a new server.
    """

    baseline: str
    workload: str
    doses: tuple[str, ...]
    response: str
    budget_s: float | None
    seed: int
    least: int = FIRST_LOOK
    blocks = None
    total = None
    size: Size | None = field(default=None, repr=False)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next segment, or None where the answer is known or the budget is used up."""
        if not history:
            return self._trial(0, self.baseline, 0)
        if history[0].status is not TrialStatus.OK or exhausted(self._most_s, history):
            return None
        begun, block = 1, 1
        while order := self._order(history[:begun], block):
            if len(history) < begun + len(order):
                return self._trial(len(history), order[len(history) - begun], block)
            begun, block = begun + len(order), block + 1
        return None

    @property
    def _most_s(self) -> float | None:
        return self.budget_s and 2 * self.budget_s

    def _trial(self, number: int, treatment: str, block: int) -> Trial:
        return Trial(number, treatment, self.workload, block, self.seed + number, Reset.NONE)

    def _order(self, before: Sequence[Outcome], block: int) -> Sequence[str]:
        """Return the segments of a block, none where the diagnosis is over."""
        arms = self._arms(before, block)
        cost_s = len(arms) * _EACH_S
        most_s = self.budget_s or (math.inf if block <= self.least else BUDGET_S)
        if not arms or spent(before) + cost_s > most_s * (2 if block <= FIRST_LOOK else 1):
            return ()
        return random.Random(f"{self.seed}/{block}").sample(arms, len(arms))

    def _arms(self, before: Sequence[Outcome], block: int) -> list[str]:
        first = before[0]
        if any(m.name in {PACED, COARSE} for m in first.metrics):
            return []  # slower or not, it is as fast as it asks to be; or no segment has a report
        seen = proven(before, self.baseline, self.response, self.budget_s)
        worse, own = seen.worse, [self.baseline, self.baseline]
        now = [dose for dose in self.doses if dose.partition(" ")[2] in _values(before, worse)]
        slowing = [d for d in now if limit_of(d) != ALL and factor(d) < 1 and _possible(first, d)]
        together = [dose for dose in now if limit_of(dose) == ALL]
        tries = [d for d in self.doses if d.startswith(TRY) and _worth(first, d) >= _PROMISING]
        if block <= self.least:
            left_s = (self.budget_s or sys.maxsize) - first.machine_time_s
            most = max(3, int(left_s / (self.least * _EACH_S)))
            return [*own, *self._chosen(first, slowing), *together, *tries][:most]
        rest = [dose for dose in slowing if limit_of(dose) not in {p.limit for p in worse}]
        untold = rest if _unexplained(worse) > _UNTOLD else []
        open_ = [p.limit for p in seen.reliefs if p.low < 0 < p.high]
        if limit := main_limit(worse):
            relaxing = [d for d in now if limit_of(d) == limit.limit and factor(d) > 1]
            if relaxing and not any(p.segments >= _RELAXED for p in seen.better):
                return [*own, *relaxing, *relaxing]
            near = {p.limit for p in worse if p.verdict == UNDECIDED and p.elasticity > NOTABLE}
            more = [*open_, *(d for d in slowing if limit_of(d) in near), *untold]
            return [*own, *more, *more] if more else []
        if all_refuted(worse):
            return [*own, *rest, *together, *tries] if rest else []
        left = {p.limit for p in worse if p.verdict != "not_it"}
        return [*own, *(d for d in [*slowing, *together] if limit_of(d) in left), *untold, *open_]

    def _chosen(self, first: Outcome, slowing: Sequence[str]) -> list[str]:
        """Return the doses that the first trial's account makes likely, the likeliest first."""
        likely = sorted(slowing, key=lambda dose: -_worth(first, dose))
        return ([d for d in likely if _worth(first, d) >= _PROMISING] or likely)[:_MOST]


def _values(before: Sequence[Outcome], worse: Sequence[Proof]) -> Sequence[str]:
    """Return what doses are set to: more once the first ones leave intervals too wide to prove."""
    mild, strong = STRENGTHS
    begun = any(outcome.trial.treatment.partition(" ")[2] in strong for outcome in before)
    widths = [proof.high - proof.low for proof in worse if proof.segments >= FIRST_LOOK]
    return strong if begun or min(widths, default=0.0) > 2 * _VAGUE else mild


def _unexplained(worse: Sequence[Proof]) -> float:
    """Return what all doses at once show at least, beyond the sum of those tried alone."""
    together = next((proof.low for proof in worse if proof.limit == ALL), 0.0)
    return together - sum(max(0.0, proof.elasticity) for proof in worse if proof.limit != ALL)


def _possible(first: Outcome, dose: str) -> bool:
    """Return whether a dose has a size: a latency is lengthened by a share of the measured one."""
    key = limit_of(dose).removeprefix("disk.")
    return key not in LATENCIES or any(m.name == f"{OWN}{key}" for m in first.metrics)


def _worth(first: Outcome, dose: str) -> float:
    """Return the elasticity to expect of a dose or relief, as the first trial's metrics have it."""
    key = dose.removeprefix(TRY).partition("=")[0].partition(" ")[0]
    return next((m.value for m in first.metrics if m.name == f"{EXPECTED}{key}"), 0.0)


@dataclass(frozen=True, slots=True)
class DoseStops:
    """A long trial first, then segments of the same short length."""

    responses: Mapping[str, str]
    lower: Collection[str] = ()
    label = "a first trial of at least half a minute, then segments of seven seconds"

    def method(self, method: Method) -> Method:
        """Return one of these segments."""
        return replace(method, segment_s=SEGMENT_S)

    def forecast(self, overhead_s: float = 20.0) -> TrialForecast:
        """Return a segment; the first trial is longer."""
        one_s = _EACH_S
        return TrialForecast(
            one_s, checked=False, least_s=one_s, most_s=one_s, first_s=SETTLED_S[0] + overhead_s
        )

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`."""
        if history and history[-1].status is TrialStatus.OK:
            return Fixed(WASHOUT_S, SEGMENT_S - WASHOUT_S)
        return Settled(self.responses[trial.workload], self.lower, 20.0, SETTLED_S)


def doses_of(inputs: PlanInput) -> dict[str, Settings]:
    """Return the treatment under each dose that this campaign's lab, link and host allow."""
    own = split(inputs.treatments[inputs.baseline])
    found: dict[str, dict[str, str]] = {}
    for worse, better in STRENGTHS:
        of_lab = _of_disk(inputs, worse, better) | _of_link(own, worse, better)
        some = _only(inputs, of_lab | _of_cpus(inputs, worse) | _of_quota(own, worse, better))
        slowing = [settings for name, settings in some.items() if factor(name) < 1]
        together = {key: value for one in slowing for key, value in one.items()}
        found |= some | ({f"{ALL} {worse}": together} if len(slowing) > 1 else {})
    if inputs.spec.design.doses is msgspec.UNSET:
        found |= _reliefs(own) | _credits(inputs, own)
    return {name: {**own, **settings} for name, settings in found.items()}


def _of_disk(inputs: PlanInput, worse: str, better: str) -> dict[str, dict[str, str]]:
    device, own = inputs.spec.stack.device, split(inputs.treatments[inputs.baseline])
    if not isinstance(device, DeviceTable) or device.machine:
        return {}
    added, capped = own.of("disk"), disk_class_of(device, own) or device.vm
    rate, key = ratio(added.get("rate", "100%")), full_key("disk", "rate")
    rates = {by: f"{round(100 * rate * ratio(by), 2):g}%" for by in (worse, better) if capped}
    found = {f"disk.rate {by}": {key: value} for by, value in rates.items()}
    for key in ("read_latency", "flush_latency"):
        longer = f"{added[key]}+{better}" if key in added else better
        found[f"disk.{key} {better}"] = {full_key("disk", key): longer}
    return found


def _of_link(own: StackSettings, worse: str, better: str) -> dict[str, dict[str, str]]:
    if not uses_lab_link(own):
        return {}
    found = {}
    if (rate := own.of("link").get("rate", UNLIMITED)) != UNLIMITED:
        for change in (worse, better):
            found[f"link.rate {change}"] = {RATE: _scaled(rate, ratio(change))}
    if us := delay_us(own.of("link").get("delay", NO_DELAY)):
        for change in (better, worse):
            found[f"link.delay {change}"] = {DELAY: f"{us * ratio(change):g}us"}
    return found


def _of_cpus(inputs: PlanInput, worse: str) -> dict[str, dict[str, str]]:
    stack = inputs.spec.stack
    here = stack.host == "local" and stack.load in {"", "local"}
    who = apart(split(inputs.treatments[inputs.baseline])) or ("host",)
    return {f"slow.{one} {worse}": {full_key("slow", one): worse} for one in who if here}


def _of_quota(own: StackSettings, worse: str, better: str) -> dict[str, dict[str, str]]:
    """Return a larger and a smaller quota, where a treatment gives the server one."""
    quota, key = share(own.of("cgroup").get("cpu", "")), full_key("cgroup", "cpu")
    if quota is None:
        return {}
    shares = {by: round(100 * quota * ratio(by), 2) for by in (worse, better)}
    return {f"cgroup.cpu {by}": {key: f"{share:g}%"} for by, share in shares.items()}


def _scaled(rate: str, by: float) -> str:
    """Return a link's rate times a factor; one that is a share of the traffic stays one."""
    if (of_traffic := share(rate)) is not None:
        return f"{100 * of_traffic * by:g}%"
    return text(bytes_per_s(normal(rate)) * 8 * by)


def _reliefs(own: Settings) -> dict[str, dict[str, str]]:
    """Return the settings that take a suspected limit away at once, where they differ.

    None where the link's rate is a share of the traffic, which such a setting changes.
    """
    if "%" in own.get(full_key("link", "rate"), ""):
        return {}
    pool = _OF_POOL if _POOLED in own.items() else {}
    found = {}
    for key, value in (RELIEFS | pool).items():
        both = sorted({f"db/{one}" for one in (key, TOGETHER.get(key, key))})
        if differs := [one for one in both if _relieves(key, own.get(one), value)]:
            found[f"{TRY}{key}={value}"] = dict.fromkeys(differs, value)
    return found


def _relieves(key: str, own: str | None, value: str) -> bool:
    """Return whether a value relieves beside the treatment's own, None for a default."""
    present = normalise(own or "")
    if key == _SYNC:  # its default depends on the server
        return own is not None and present != "0"
    if not present.isdigit():
        return own is None
    if key == _COMMIT:
        return present in {"1", "3"}
    less, wanted = key == _SORT, int(normalise(value))
    return wanted < int(present) if less else wanted > int(present)


def _credits(inputs: PlanInput, own: StackSettings) -> dict[str, dict[str, str]]:
    """Return full burst credits as a relief, where a lab disk has some and begins with none."""
    device = inputs.spec.stack.device
    if credits_of(device, own) > 0 or not bursts(disk_class_of(device, own)):
        return {}
    return {f"{TRY}disk.{CREDITS}=full": {full_key("disk", CREDITS): "full"}}


def _only(inputs: PlanInput, found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return the doses that the spec asks for, or all; raise `SpecError` for others."""
    asked = inputs.spec.design.doses
    if not isinstance(asked, list):
        return found
    known = dict.fromkeys(map(limit_of, found))
    for key in asked:
        if key not in known:
            raise SpecError(f"{inputs.place}: {unknown_value(key, known, 'dose here')}")
    return {name: settings for name, settings in found.items() if limit_of(name) in asked}


def _make(inputs: PlanInput, rule: Rule) -> Doses:
    doses = tuple(doses_of(inputs))
    if len(inputs.workloads) != 1:
        raise SpecError(
            f"{inputs.place}: a diagnosis is of one workload; choose one of "
            f"{', '.join(inputs.workloads)} with --workload"
        )
    if all(factor(dose) >= 1 for dose in doses):
        raise SpecError(
            f"{inputs.place}: nothing can be slowed here: server and load are on other hosts and "
            "there is no lab disk or link; `mydyno why` gives the account of a run"
        )
    name = next(iter(inputs.workloads))
    if is_lower(inputs.responses[name], inputs.lower):
        raise SpecError(
            f"{inputs.place}: workloads.{name}: a diagnosis measures what slowing costs of "
            f"throughput, and the response is {inputs.responses[name]}; name a throughput"
        )
    design = inputs.spec.design
    about = (rule.baseline, name, doses, inputs.responses[name], inputs.budget_s, design.seed)
    return Doses(*about, max(FIRST_LOOK, design.blocks or 0))


DIAGNOSE = DesignKind(
    "a diagnosis: one treatment, and the same with one resource slowed by a known factor, in "
    "randomised segments of seven seconds",
    _make,
    lambda inputs: DoseStops(inputs.responses, inputs.lower),
    Method(Estimator.WINDOWS, segment_s=SEGMENT_S),
    more=doses_of,
    alone=True,
)
