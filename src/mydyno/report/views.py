"""The parts of the HTML page as values: what the templates read."""

from dataclasses import dataclass

from mydyno.analyse.result import ChangeView, Result, Row, TrialView
from mydyno.report.curves import Chart
from mydyno.report.dots import DotPlot
from mydyno.report.forest import Forest, Whisker
from mydyno.report.maineffects import EffectsView
from mydyno.report.plot import Plot, Style
from mydyno.report.resources import Resources
from mydyno.report.verdicts import UNFIT, VerdictLabel


@dataclass(frozen=True, slots=True)
class RowView:
    """One row of the verdict table; `lost` counts in words the trials that were not measured."""

    style: Style
    row: Row
    value: str
    effect: tuple[str, str, str] | None
    whisker: Whisker | None
    guards: tuple[tuple[str, tuple[str, str, str] | None], ...]
    verdict: VerdictLabel
    weaker: bool
    trials: str
    lost: str = ""

    @property
    def fit(self) -> bool:
        """Return whether its interval may be read as an effect."""
        return self.row.verdict not in UNFIT


@dataclass(frozen=True, slots=True)
class ChartView:
    """One quantity over time: what is drawn by script, and the same without."""

    id: str
    chart: Chart
    finding: str
    multiples: tuple[Plot, ...]
    head: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class LatencyView:
    """The latency distributions under one workload."""

    finding: str
    plot: Plot
    styles: tuple[Style, ...]
    head: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    kinds_head: tuple[str, ...]
    kinds: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """Everything that is shown of one workload."""

    name: str
    response: str
    forest: Forest
    finding: str
    rows: tuple[RowView, ...]
    charts: tuple[ChartView, ...]
    latency: LatencyView | None
    dots: DotPlot | None


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One line of the trials' table."""

    trial: TrialView
    style: Style
    value: str
    tail: str
    window: str


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    result: Result
    styles: tuple[Style, ...]
    shown: frozenset[str]
    workloads: tuple[WorkloadView, ...]
    changes: tuple[tuple[Style, tuple[ChangeView, ...]], ...]
    trials: tuple[TrialRow, ...]
    warnings: tuple[tuple[str, str], ...]
    resources: Resources | None
    parts: tuple[EffectsView, ...] = ()

    @property
    def weakest(self) -> list[str]:
        """Return the treatments that weaken durability."""
        rows = self.result.comparison.treatments
        return list(dict.fromkeys(row.name for row in rows if row.durability == "weaker"))

    @property
    def has_charts(self) -> bool:
        """Return whether any trial left a curve."""
        return any(work.charts for work in self.workloads)

    @property
    def lost(self) -> int:
        """Return the number of trials that did not end well."""
        return sum(trial.status != "ok" for trial in self.result.trials)
