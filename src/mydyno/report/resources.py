"""Resources of the host in the page: tables of use, and trials side by side."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mydyno.report import paneltext, timeseries, units, verdicts
from mydyno.report.paneltext import Means, Usage, WindowUse
from mydyno.report.plot import Plot, Style, legend, plots
from mydyno.report.timeseries import Panel, PanelSeries
from mydyno.stats.result import Result, TrialView

_PANES = 2
_CHART_POINTS = 600  # of one curve: more cannot be distinguished in half the width of a page
_FEWEST = 60
_ALL_POINTS = 250_000  # of all trials together: about 0.6 MB of the page


@dataclass(frozen=True, slots=True)
class SampledTrial:
    """One trial with its series and the sentence of each panel, by the panel's id."""

    trial: TrialView
    style: Style
    series: Mapping[str, PanelSeries]
    sentences: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pane:
    """One trial in one panel: the sentence, and the static drawing."""

    name: str
    sentence: str
    plot: Plot | None


@dataclass(frozen=True, slots=True)
class PanelView:
    """One panel: its legend, a pane for each trial shown first, and its means by workload."""

    panel: Panel
    legend: tuple[Style, ...]
    panes: tuple[Pane, ...]
    tables: tuple[tuple[str, Usage], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A trial in the selector: its index among those shown, and its label."""

    index: int
    label: str


@dataclass(frozen=True, slots=True)
class Resources:
    """The complete section; `first` are the trials that are chosen at first."""

    usages: tuple[tuple[str, Usage], ...]
    shown: tuple[SampledTrial, ...]
    groups: tuple[tuple[str, tuple[Choice, ...]], ...]
    first: tuple[int, ...]
    panels: tuple[PanelView, ...]
    missing: tuple[str, ...]
    cost: str


def resources(result: Result, ordered: Sequence[Style]) -> Resources | None:
    """Return the section, or None if no trial was sampled."""
    known = timeseries.panels(result)
    trials = timeseries.sampled(result)
    if not trials:
        return None
    most = _ALL_POINTS // sum(len(t.gauges) + len(t.curves) for t in trials)
    most = min(max(most, _FEWEST), _CHART_POINTS)
    every = tuple(_shown(result, t, ordered, most) for t in trials)
    works = list(dict.fromkeys(s.trial.workload for s in every))
    of = {work: paneltext.of_treatments(result, work) for work in works}
    first = _first(result, every)
    there = [s for s in known if any(s.id in each.series for each in every)]
    return Resources(
        tuple((work, paneltext.table(of[work], ordered, _work(result, work))) for work in works),
        every,
        tuple(_groups(result, every, works)),
        first,
        tuple(_panel(s, [every[i] for i in first], of, ordered) for s in there),
        tuple(s.title for s in known if s not in there),
        _cost([means for each in of.values() for means in each.values()]),
    )


def _work(result: Result, workload: str) -> str:
    return units.heading(timeseries.response(result, workload))


def _cost(each: Sequence[Means]) -> str:
    """Return the highest CPU use of the sampler, as a sentence; ``""`` if it was not recorded."""
    spent = [means["probe.cpu"] for means in each if "probe.cpu" in means]
    if not spent:
        return ""
    return f"The sampler used at most {units.quantity(max(spent), 'share')} of one core."


def _shown(result: Result, trial: TrialView, ordered: Sequence[Style], most: int) -> SampledTrial:
    known = timeseries.panels(result)
    response = timeseries.response(result, trial.workload)
    named = timeseries.of_trial(trial, response)
    read: WindowUse = paneltext.of_trial(trial, response)
    series = {s.id: one for s in known if (one := timeseries.series(s, named, most))}
    style = next(s for s in ordered if s.name == trial.treatment)
    return SampledTrial(trial, style, series, {s.id: paneltext.sentence(s, read) for s in known})


def _first(result: Result, every: Sequence[SampledTrial]) -> tuple[int, ...]:
    """Return the first workload's baseline and leader, each by its median trial."""
    work = every[0].trial.workload
    middle = _medians(result, every, work)
    wanted = [result.comparison.baseline, verdicts.best(result.comparison, work), *middle]
    names = dict.fromkeys(name for name in wanted if name in middle)
    return tuple(middle[name] for name in names)[:_PANES]


def _medians(result: Result, every: Sequence[SampledTrial], workload: str) -> dict[str, int]:
    """Return the place of each treatment's median trial by the response; of two the lower."""
    response = timeseries.response(result, workload)
    ranked: dict[str, list[tuple[float, int]]] = {}
    for i, shown in enumerate(every):
        if shown.trial.workload == workload:
            value = shown.trial.metrics.get(response, 0.0)
            ranked.setdefault(shown.trial.treatment, []).append((value, i))
    return {name: sorted(each)[(len(each) - 1) // 2][1] for name, each in ranked.items()}


def _groups(
    result: Result, every: Sequence[SampledTrial], works: Sequence[str]
) -> list[tuple[str, tuple[Choice, ...]]]:
    """Return the medians of all treatments, and then each treatment's trials."""
    groups: list[tuple[str, tuple[Choice, ...]]] = []
    for work in works:
        under = f", {work}" if len(works) > 1 else ""
        response = timeseries.response(result, work)
        middle = _medians(result, every, work)
        labels = {i: paneltext.label(s.trial, response) for i, s in enumerate(every)}
        names = [n for n in verdicts.treatments(result.comparison) if n in middle]
        leading = tuple(Choice(middle[n], f"{n}, {labels[middle[n]]}") for n in names)
        groups.append((f"Median of each treatment{under}", leading))
        for name in names:
            mine = [
                i
                for i, s in enumerate(every)
                if (s.trial.treatment, s.trial.workload) == (name, work)
            ]
            groups.append(
                (f"{name}{under}", tuple(Choice(i, f"{name}, {labels[i]}") for i in mine))
            )
    return groups


def _panel(
    panel: Panel,
    first: Sequence[SampledTrial],
    of: Mapping[str, Mapping[str, Means]],
    ordered: Sequence[Style],
) -> PanelView:
    drawn = plots(panel, [(s.trial, s.series.get(panel.id), s.style) for s in first])
    panes = (
        Pane(s.trial.treatment, s.sentences[panel.id], plot)
        for s, plot in zip(first, drawn, strict=True)
    )
    tables = ((work, paneltext.of_panel(panel, means, ordered)) for work, means in of.items())
    return PanelView(
        panel,
        legend(panel),
        tuple(panes),
        tuple((work, table) for work, table in tables if table.rows),
    )
