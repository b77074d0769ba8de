"""The decision rule of a campaign: responses, guards, margin."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mydyno.analyse.direction import HIGHER, LOWER, is_lower

CONFIDENCE = 0.95
FIRST = ""  # as a treatment's name: the first level of each factor
DEFAULT_GUARDS = {"latency_p99_s": 0.10, "{response}_logsd": 0.20}


@dataclass(frozen=True, slots=True)
class Rule:
    """Decision rule: `responses` by workload, `guards` and `margin` as ratios.

    `sequential`: treatments are dropped by what was seen, so that intervals must be anytime-valid.
    `warming`: trials end by what was seen, and may still have been warming up.  Trials of blocks
    before `proving_from` are exploratory: they do not count as evidence for what they found.

    `screening`: the campaign compares factors, not treatments.  `hot`: settings were changed
    online on one server.  `choosing`: the campaign looks for the best treatment, so that adopted
    ones are measured until they differ from it.  `lower` names the metrics that the spec declares
    better if lower; the direction of others follows from their names.  The guards of an `imported`
    campaign are the default ones, as far as the logs have them.
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
        """Return whether the spec asks for the guards, so that they must be evaluated."""
        return self.guards is not None and not self.imported

    def gain(self, effect_log: float, workload: str) -> float:
        """Return a log ratio as a log gain: negative if it is worse."""
        return -effect_log if is_lower(self.responses[workload], self.lower) else effect_log

    def direction(self, workload: str) -> str:
        """Return ``higher`` or ``lower``, whichever is better for a workload's response."""
        return LOWER if is_lower(self.responses[workload], self.lower) else HIGHER

    def class_of(self, treatment: str) -> str:
        """Return the treatment's durability class."""
        return (self.durability or {}).get(treatment, "same")
