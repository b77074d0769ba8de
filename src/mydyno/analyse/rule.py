"""What a campaign decides by."""

from collections.abc import Mapping
from dataclasses import dataclass

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
    measured on until it is told from the best.
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

    def guards_of(self, workload: str) -> dict[str, float]:
        """Return the guards of one workload, its response's name filled in."""
        wanted = DEFAULT_GUARDS if self.guards is None else self.guards
        response = self.responses[workload]
        named = {name.replace("{response}", response): m for name, m in wanted.items()}
        # `tps_logsd` of a spec means the response of the workload, whatever its name
        return {f"{response}_logsd" if n == "tps_logsd" else n: m for n, m in named.items()}

    def gain(self, effect_log: float, workload: str) -> float:
        """Return the log gain that a log ratio is: a lower latency is a better one."""
        return -effect_log if self.responses[workload].startswith("latency_") else effect_log

    def class_of(self, treatment: str) -> str:
        """Return the treatment's durability class."""
        return (self.durability or {}).get(treatment, "same")
