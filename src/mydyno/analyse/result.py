"""What the analysis of one campaign says: the values that `compare --json` and reports show."""

import msgspec


class Estimate(msgspec.Struct, frozen=True):
    """A value and its unit; throughput is the geometric mean over the trials' windows."""

    estimate: float
    unit: str


class Ratio(msgspec.Struct, frozen=True):
    """A treatment's value over the baseline's, with its interval."""

    ratio: float
    low: float
    high: float
    confidence: float = 0.95


class Ends(msgspec.Struct, frozen=True):
    """How the trials of one treatment under one workload ended; void ones are not among them.

    `failed` died or never ran, `stalled` ran without doing any work, `unknown` gave no readable
    result; the other `trials` were measured.
    """

    trials: int = 0
    failed: int = 0
    stalled: int = 0
    unknown: int = 0

    @property
    def lost(self) -> int:
        """Return the number of trials that were not measured."""
        return self.failed + self.stalled + self.unknown


class Row(msgspec.Struct, frozen=True):
    """One treatment under one workload against the baseline.

    `verdict` is adopt, reject, equivalent, unstable, inconclusive, no-steady-state or failed;
    the baseline's own row has verdict ``baseline``.  `ends` counts how its trials ended, and
    `unevaluated` names the guards that block an adoption because nothing can be said of them, each
    with the reason.  `effect` is None where nothing could be compared.  `detectable` is the
    smallest ratio that the campaign can show to differ from 1.  `plain` are means over its trials
    of what is shown without a verdict: `storage_bytes`, `compression_ratio`;
    `unheld` guards that are shown only, for the reason that stands in `warnings`.
    """

    name: str
    workload: str
    verdict: str
    durability: str
    trials: int
    value: Estimate | None
    effect: Ratio | None
    guards: dict[str, Ratio]
    warnings: list[str]
    detectable: float | None = None
    plain: dict[str, Estimate] = {}
    unheld: list[str] = []
    ends: Ends = Ends()
    unevaluated: dict[str, str] = {}


class Part(msgspec.Struct, frozen=True):
    """What one factor's `level` gives over the level `against`, over the levels of all others."""

    workload: str
    factor: str
    level: str
    against: str
    effect: Ratio


class Together(msgspec.Struct, frozen=True):
    """What a pair of levels gives beyond what each of them does by itself (an interaction)."""

    workload: str
    levels: dict[str, str]
    effect: Ratio


class Comparison(msgspec.Struct, frozen=True):
    """`mydyno compare DIR --json`: verdicts against the baseline, the winners, what did it.

    `parts` and `together` are there where treatments are made of factors or bundles; `share` says
    which few of a winner's changes give most of its gain, `soak` whether the winner held for long.
    `directions` is by workload ``higher`` or ``lower``, whichever is better of its response.
    """

    campaign: str
    response: str
    baseline: str
    machine_time_s: float
    winner: str | None
    winners: dict[str, str | None]
    treatments: list[Row]
    sentence: str
    warnings: list[str]
    parts: list[Part] = []
    together: list[Together] = []
    share: str = ""
    soak: str = ""
    directions: dict[str, str] = {}


class Curve(msgspec.Struct, frozen=True):
    """A quantity over the seconds of one trial; value `i` ended at ``t_s[i]``."""

    name: str
    unit: str
    t_s: list[float]
    values: list[float]


class TrialView(msgspec.Struct, frozen=True):
    """One finished trial as the report shows it; the window is ``start_s < t <= end_s``.

    `gauges` is what the sampler saw of the machine, in the time of the curves; where a second was
    not sampled, it has no value or NaN.
    """

    id: int
    treatment: str
    workload: str
    block: int
    status: str
    error: str
    window: tuple[float, float]
    metrics: dict[str, float]
    curves: list[Curve]
    gauges: list[Curve] = []
    soak: bool = False


class ChangeView(msgspec.Struct, frozen=True):
    """One setting that a treatment moved: its true value before and after, and what it cost."""

    key: str
    before: str
    after: str
    cost: str
    durability: str


class Distribution(msgspec.Struct, frozen=True):
    """Latencies of one treatment and workload, all windows merged: ``(latency_s, share <= it)``.

    `kind` names the kind of transaction where the load tells them apart, and is empty for all.
    """

    treatment: str
    workload: str
    count: int
    points: list[tuple[float, float]]
    kind: str = ""


class Result(msgspec.Struct, frozen=True):
    """Everything a report shows; made from a run directory alone, no host needed.

    `margin` is `[decide] margin` as a ratio less one (0.03), 0 where there was none; `closed_loops`
    are the workloads whose latencies leave out what a stall would have kept waiting; `imported`
    says that others made the runs, so that their order and their settings are not known.
    """

    comparison: Comparison
    question: str
    command: str
    started: str
    protocol: str
    lab: str
    trials: list[TrialView]
    changes: dict[str, list[ChangeView]]
    distributions: list[Distribution]
    facts: dict[str, dict[str, str]]
    blocks: int
    margin: float = 0.0
    closed_loops: list[str] = []
    imported: bool = False
