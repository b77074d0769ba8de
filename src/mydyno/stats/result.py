"""Result of the analysis of one campaign: the values that `compare --json` and reports show."""

import msgspec

from mydyno.model import Finding


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

    `verdict` is adopt, reject, equivalent, unstable, inconclusive, no-steady-state or failed; the
    baseline's own row has verdict ``baseline``.  `ends` counts how its trials ended, and
    `unevaluated` names the guards that block an adoption because they cannot be evaluated, each
    with the reason.  `effect` is None where no ratio could be computed.  `detectable` is the ratio
    that every other such campaign distinguishes from 1.  `plain` holds means over its trials of
    metrics without a verdict: the data's size, the time to fill it, what the load reports; `unheld`
    the guards that are reported only, for the reason in `warnings`.  `findings` are the values that
    `warnings` and `unevaluated` put into words (`mydyno.report.words`).
    """

    name: str
    workload: str
    verdict: str
    durability: str
    trials: int
    value: Estimate | None
    effect: Ratio | None
    guards: dict[str, Ratio]
    warnings: list[str] = []
    detectable: float | None = None
    plain: dict[str, Estimate] = {}
    unheld: list[str] = []
    ends: Ends = Ends()
    unevaluated: dict[str, str] = {}
    findings: list[Finding] = []


class Part(msgspec.Struct, frozen=True):
    """Main effect: ratio of one factor's `level` to `against`, over the levels of all others."""

    workload: str
    factor: str
    level: str
    against: str
    effect: Ratio


class Together(msgspec.Struct, frozen=True):
    """Interaction: ratio of a pair of levels beyond the product of their main effects."""

    workload: str
    levels: dict[str, str]
    effect: Ratio


class Plateaus(msgspec.Struct, frozen=True):
    """What a treatment's trials did before and after one fall, medians over those that fell.

    `fell` of `trials` fell, `at_s` after the load began; `work` is the sum over all `seconds` of
    the load, None for a latency.
    """

    treatment: str
    workload: str
    unit: str
    fell: int
    trials: int
    before: float
    after: float
    at_s: float
    work: float | None
    seconds: float


class Ceiling(msgspec.Struct, frozen=True):
    """The highest rate of a load that a treatment keeps up with, in events a second.

    `kept` is None where it keeps up with none, `missed` where it does with all; `did` is what it
    did at the rate that it missed, None where its trials failed, `speed` what its replica, if any,
    took in of that.  `disk_writes` a second reached the disk at `kept`, None where not sampled.
    """

    treatment: str
    load: str
    kept: int | None
    latency_p99_s: float | None
    missed: int | None
    did: float | None
    speed: float | None = None
    disk_writes: float | None = None


class Comparison(msgspec.Struct, frozen=True):
    """`mydyno compare DIR --json`: verdicts against the baseline, winners, main effects.

    `parts` (main effects) and `together` (interactions) are present where treatments are made of
    factors or bundles; `share` is a sentence on which few changes give most of the winner's gain,
    `soak` one on whether the winner held its throughput in the soak.  `directions` gives for each
    workload whether ``higher`` or ``lower`` is better for its response.  `errors` gives for each
    workload the shares of the variance of its ratios that are due to server ``starts``, to the
    ``seconds`` within trials and to the host's ``drift``, where that is known.  `conclusion` and
    `findings` are the values that `sentence`, `share`, `soak` and `warnings` put into words
    (`mydyno.report.words`).  `plateaus` are those of treatments whose trials fall by themselves,
    `ceilings` those of loads whose rate was stepped.
    """

    campaign: str
    response: str
    baseline: str
    machine_time_s: float
    winner: str | None
    winners: dict[str, str | None]
    treatments: list[Row]
    sentence: str = ""
    warnings: list[str] = []
    parts: list[Part] = []
    together: list[Together] = []
    share: str = ""
    soak: str = ""
    directions: dict[str, str] = {}
    errors: dict[str, dict[str, float]] = {}
    conclusion: list[Finding] = []
    findings: list[Finding] = []
    plateaus: list[Plateaus] = []
    ceilings: list[Ceiling] = []


class Curve(msgspec.Struct, frozen=True):
    """A quantity over the seconds of one trial; value `i` ended at ``t_s[i]``."""

    name: str
    unit: str
    t_s: list[float]
    values: list[float]


class TrialView(msgspec.Struct, frozen=True):
    """One finished trial as the report shows it; the window is ``start_s < t <= end_s``.

    `gauges` holds the sampled series of the machine, on the time of the curves; a second that was
    not sampled has no value or NaN.
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
    """One setting that a treatment changed: its value before and after, and what a change costs."""

    key: str
    before: str
    after: str
    cost: str
    durability: str


class Distribution(msgspec.Struct, frozen=True):
    """Latencies of one treatment and workload, all windows merged: ``(latency_s, share <= it)``.

    `kind` is the kind of transaction, if the load reports kinds; it is empty for all together.
    """

    treatment: str
    workload: str
    count: int
    points: list[tuple[float, float]]
    kind: str = ""


class StatementFigures(msgspec.Struct, frozen=True):
    """What one class of statements did under a treatment; medians over its trials.

    `share` is of the query time of all that was logged; `rows` are those examined by a call.
    """

    calls_per_s: float
    mean_s: float
    p95_s: float
    share: float
    rows: float


class Statement(msgspec.Struct, frozen=True):
    """One class of statements of the trials' slow logs under a workload, by treatment.

    Tables whose names differ by a number only have one class, ``sbtestN``.
    """

    workload: str
    fingerprint: str
    figures: dict[str, StatementFigures]


class Result(msgspec.Struct, frozen=True):
    """Everything a report shows; made from a run directory alone, no host needed.

    `margin` is `[decide] margin` as a ratio less one (0.03), 0 where there was none; `closed_loops`
    are the workloads whose latencies exclude requests that a stall would have delayed; `imported`
    is true if the runs come from imported logs: their order and settings are then not known.
    `design` is the label that the design declares.  `loads` describes each workload, `versions` the
    programs, `spec` is the text of the spec with `settings`, those of the command line; `names` are
    the names of its hosts and users, which a page that is sent to others leaves out.  `statements`
    are the classes of the slow logs that its trials have left, those of the most time first.
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
    design: str = ""
    loads: dict[str, dict[str, str]] = {}
    versions: dict[str, str] = {}
    spec: str = ""
    settings: dict[str, str] = {}
    names: list[str] = []
    statements: list[Statement] = []
