"""What a campaign decides by."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mydyno.analyse.direction import HIGHER, LOWER, is_lower

CONFIDENCE = 0.95
FIRST = ""  # in the place of a treatment's name: each factor's first level
DEFAULT_GUARDS = {"latency_p99_s": 0.10, "{response}_logsd": 0.20}


@dataclass(frozen=True, slots=True)
class Rule:
    """What is decided on: `responses` by workload, `guards` and `margin` as ratios.

    `sequential` says that treatments were dropped by what was seen, so that intervals have to hold
    at any time; `warming` that trials were ended so, and may still have been warming up.  Trials of
    blocks before `proving_from` only looked about: they prove nothing of what they found.

    `screening` says that it is factors that are asked about, not treatments; `hot` that one server
    was switched to and fro; `choosing` that the best is asked for, so that what is adopted is
    measured on until it differs from the best.  `lower` names the metrics of which the spec says
    that less is better; of others it is known by their names.  Of an `imported` campaign nobody
    asked for the guards: they are those that logs may hold.
    """

    name: str
    baseline: str
    responses: Mapping[str, str]
    margin: float = 0.03
    guards: Mapping[str, float] | None = None
    durability: Mapping[str, str] | None = None
    weaker_may_win: bool = False
    sequential: bool = False
    warming: bool = False
    proving_from: int = 0
    screening: bool = False
    hot: bool = False
    choosing: bool = False
    lower: Collection[str] = ()
    imported: bool = False

    def guards_of(self, workload: str) -> dict[str, float]:
        """Return the guards of one workload, its response's name filled in."""
        wanted = DEFAULT_GUARDS if self.guards is None else self.guards
        response = self.responses[workload]
        named = {name.replace("{response}", response): m for name, m in wanted.items()}
        # `tps_logsd` of a spec means the response of the workload, whatever its name
        return {f"{response}_logsd" if n == "tps_logsd" else n: m for n, m in named.items()}

    @property
    def guards_asked(self) -> bool:
        """Return whether somebody asked for the guards, so that they have to be evaluated."""
        return self.guards is not None and not self.imported

    def gain(self, effect_log: float, workload: str) -> float:
        """Return the log gain that a log ratio is: negative for what is worse."""
        return -effect_log if is_lower(self.responses[workload], self.lower) else effect_log

    def direction(self, workload: str) -> str:
        """Return ``higher`` or ``lower``, whichever is better of a workload's response."""
        return LOWER if is_lower(self.responses[workload], self.lower) else HIGHER

    def class_of(self, treatment: str) -> str:
        """Return the treatment's durability class."""
        return (self.durability or {}).get(treatment, "same")
