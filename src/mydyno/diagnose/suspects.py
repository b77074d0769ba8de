"""Suspects: which limits fit a load's account and figures; ranked, never convicted.

A limit is one file in `mydyno.diagnose.limits`, or a plug-in: the states of the account where it
shows, the signs that all must hold, and those that speak against it.  A sign whose figure the
sample does not have is missing, and a limit that misses one could not be seen.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import msgspec

from mydyno.diagnose.account import POOL, SERVED, UNKNOWN, Account, expected
from mydyno.model import Figures
from mydyno.model.plugins import with_plugins

SUSPECTED = 0.3  # least expected elasticity of an answer: a judgement
IDLE = "load_idle"  # the limit that a load is itself
_SHARE = "connections in "
_BLIND = 0.35  # share of the connections that may be unknown under any answer


@dataclass(frozen=True, slots=True)
class LoadEvidence:
    """What is known of a load: the figures of its sample, its account, and what follows of it.

    `expected` is each state's elasticity in a product-form network.
    """

    figures: Figures
    account: Account
    expected: Mapping[str, float]

    @classmethod
    def of(cls, figures: Figures, found: Account) -> "LoadEvidence":
        """Return the evidence of a load."""
        return cls(figures, found, expected(found))

    def get(self, name: str) -> float | None:
        """Return a mean, None where it was not sampled."""
        return self.figures.means.get(name)

    def ratio(self, part: str, *others: str) -> float | None:
        """Return a mean over the sum of others, None where one is missing or that is 0.

        0 of 0 is 0.
        """
        value, divisor = self.get(part), self.total(*others)
        if value is None or divisor is None or (value and not divisor):
            return None
        return value / divisor if value else 0.0

    def total(self, *names: str) -> float | None:
        """Return the sum of means, None where one is missing."""
        return total(self.figures.means, *names)

    def share(self, *states: str) -> float | None:
        """Return the share of the connections in some states, None if the account hides them.

        Of states that a thread serves, the share of those that do not wait for one of a pool.
        """
        if {*states} <= self.account.hidden:
            return None
        found, n = self.account.of(*states), self.account.n
        if {*states} <= {*SERVED}:
            n -= self.account.of(POOL)
        return found / n if n > 0 else 0.0

    def ios_of_base(self) -> float | None:
        """Return the disk's I/Os a second over the rate that it keeps, None where not known."""
        return _over(self.total("disk.reads", "disk.writes"), self.get("disk.cap_ios"))

    def ios_of_cap(self) -> float | None:
        """Return the disk's I/Os a second over its cap, that of a burst where it has credits.

        0 for a disk without a cap, None where that is not known.
        """
        return self._of_cap("ios", self.total("disk.reads", "disk.writes"))

    def bytes_of_cap(self) -> float | None:
        """Return the disk's bytes a second over their cap, as `ios_of_cap`."""
        return self._of_cap("bytes", self.total("disk.read_bytes", "disk.write_bytes"))

    def _of_cap(self, unit: str, done: float | None) -> float | None:
        if self.get("disk.uncapped"):
            return 0.0
        base = _over(done, self.get(f"disk.cap_{unit}"))
        burst = self.ratio(f"disk.burst_{unit}", f"disk.cap_{unit}")
        return base / burst if base and burst and base > BURSTS else base

    def link_used(self) -> float | None:
        """Return the busier direction's bytes over the link's speed, None where that is unknown."""
        ways = [self.ratio(name, "net.capacity") for name in ("net.rx_bytes", "net.tx_bytes")]
        return max((way for way in ways if way is not None), default=None)


def total(means: Mapping[str, float], *names: str) -> float | None:
    """Return the sum of some means, None where one is missing."""
    return sum(means[name] for name in names) if means.keys() >= {*names} else None


def _over(done: float | None, cap: float | None) -> float | None:
    return done / cap if done is not None and cap else None


BURSTS = 1.15  # of the base rate: what is more is from credits

Value = Callable[[LoadEvidence], float | None]
# All servers but MySQL from 8.0 on use the smaller of the two.
TOGETHER = {"mysqld.tmp_table_size": "mysqld.max_heap_table_size"}


@dataclass(frozen=True, slots=True)
class Sign:
    """A figure with a threshold: `counter` names it as a reader can look it up.

    It holds at `threshold` or above, with `below` at it or below.
    """

    counter: str
    value: Value
    threshold: float
    unit: str = ""
    below: bool = False

    def holds(self, value: float) -> bool:
        """Return whether a value is on the sign's side of the threshold."""
        return value <= self.threshold if self.below else value >= self.threshold


def figure(name: str, threshold: float, unit: str = "") -> Sign:
    """Return the sign of one mean of the sample."""
    return Sign(name, lambda evidence: evidence.get(name), threshold, unit)


def summed(
    counter: str, names: Sequence[str], threshold: float, unit: str, *, below: bool = False
) -> Sign:
    """Return the sign of a sum of means."""
    return Sign(counter, lambda evidence: evidence.total(*names), threshold, unit, below)


def quotient(counter: str, of: Sequence[str], threshold: float, unit: str = "ratio") -> Sign:
    """Return the sign of the first mean over the sum of the others."""
    return Sign(counter, lambda evidence: evidence.ratio(*of), threshold, unit)


def share(threshold: float, *states: str, below: bool = False) -> Sign:
    """Return the sign that a share of the connections is in some states."""
    counter = f"{_SHARE}{'+'.join(states)}"
    return Sign(counter, lambda evidence: evidence.share(*states), threshold, "ratio", below)


def lasting(longest_s: float, *names: str) -> Value:
    """Return the most that a limit is worth whose waits, counted a second, each last so long."""
    return lambda evidence: longest_s * (evidence.total(*names) or 0.0) / evidence.account.n


def costing(most: float, value: Value) -> Value:
    """Return the most that a limit is worth whose events, a share of all, cost so much each."""
    return lambda evidence: most * (value(evidence) or 0.0)


@dataclass(frozen=True, slots=True)
class Limit:
    """What may limit a load: its name, its words, the states of the account where it shows.

    All `signs` must hold; each of `against` that holds speaks against it.  `doses` are the keys
    whose experiment proves it, the best first; a function of the evidence where servers name them
    differently.  `most` bounds the elasticity to expect, where a counter shows how little of these
    states is this limit's.
    """

    name: str
    title: str
    states: Sequence[str]
    signs: Sequence[Sign]
    against: Sequence[Sign] = ()
    doses: Sequence[str] | Callable[[LoadEvidence], Sequence[str]] = ()
    most: Value | None = None


class Seen(msgspec.Struct, frozen=True):
    """One figure that was looked at: its value, and the threshold that it reached."""

    counter: str
    value: float
    threshold: float
    unit: str = ""


class Suspect(msgspec.Struct, frozen=True):
    """A limit whose signs all hold, and the elasticity to expect of it."""

    limit: str
    title: str
    expected: float
    evidence: list[Seen]
    against: list[Seen] = []
    doses: list[str] = []


class Unseen(msgspec.Struct, frozen=True):
    """A limit that could not be judged: these figures were not sampled."""

    limit: str
    title: str
    missing: list[str]


class Suspicion(msgspec.Struct, frozen=True):
    """The suspects by rank, what could not be seen, and the limit that is the answer, if any."""

    suspects: list[Suspect]
    unseen: list[Unseen]
    answer: str = "unknown"


@cache
def known_limits() -> Mapping[str, Limit]:
    """Return every limit by its name: ours, in the order of their names, and plug-ins."""
    from mydyno.diagnose import limits as here  # noqa: PLC0415 - its files import this one

    names = sorted(module.name for module in iter_modules(here.__path__))
    found = [import_module(f"{here.__name__}.{name}").LIMIT for name in names]
    return with_plugins("mydyno.limits", Limit, {limit.name: limit for limit in found})


def suspects(evidence: LoadEvidence, *, paced: bool = False) -> Suspicion:
    """Return what the evidence suggests; `unknown` is an answer.

    A `paced` load has a rate: where it pauses, it does what was asked for, and comes first.
    """
    found: list[Suspect] = []
    unseen: list[Unseen] = []
    for limit in known_limits().values():
        values = [(sign, sign.value(evidence)) for sign in limit.signs]
        if missing := [sign.counter for sign, value in values if value is None]:
            if all(sign.holds(value) for sign, value in values if value is not None):
                unseen.append(Unseen(limit.name, limit.title, missing))
        elif all(sign.holds(value or 0.0) for sign, value in values):
            found.append(_suspect(limit, evidence))
    idle = IDLE if paced else ""
    found.sort(
        key=lambda s: (s.limit != idle, -round(s.expected, 1), len(s.against), -_specific(s))
    )
    blind = evidence.account.of(UNKNOWN) > _BLIND * evidence.account.n
    # ranks are of rounded figures, so that the first one may be worth a little less than the next
    worth = [s.limit for s in found if s.limit == idle or s.expected >= SUSPECTED]
    return Suspicion(found, unseen, worth[0] if worth and not blind else "unknown")


def _specific(suspect: Suspect) -> int:
    """Return how many counters of its own a suspect has, besides shares of the account."""
    return sum(not seen.counter.startswith(_SHARE) for seen in suspect.evidence)


def _suspect(limit: Limit, evidence: LoadEvidence) -> Suspect:
    worth = sum(evidence.expected.get(state, 0.0) for state in limit.states)
    if limit.most and (most := limit.most(evidence)) is not None:
        worth = min(worth, most)
    doses = limit.doses(evidence) if callable(limit.doses) else limit.doses
    signs, against = (_seen(signs, evidence) for signs in (limit.signs, limit.against))
    return Suspect(limit.name, limit.title, max(0.0, worth), signs, against, list(doses))


def _seen(signs: Sequence[Sign], evidence: LoadEvidence) -> list[Seen]:
    found = [(sign, sign.value(evidence)) for sign in signs]
    return [
        Seen(sign.counter, value, sign.threshold, sign.unit)
        for sign, value in found
        if value is not None and sign.holds(value)
    ]
