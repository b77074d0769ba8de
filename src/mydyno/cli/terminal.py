"""What scrolls past: a live line on a terminal, plain lines when piped."""

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from mydyno.model import Interval, Outcome, Status, Trial

_MINUTE = 60


def width() -> int:
    """Return how many columns to write."""
    return shutil.get_terminal_size((100, 24)).columns


def say(text: str) -> None:
    """Write a line beside the results."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def duration(seconds: float) -> str:
    """Return seconds as a person says them: 45 s, 7 min, 2.5 h."""
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * _MINUTE * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds / _MINUTE / _MINUTE:.1f} h"


@dataclass(slots=True)
class Progress:
    """Tells of each trial: one line when it ends, and a live one while it runs on a terminal.

    `length_s` is how long every trial is, if that is settled; `remark` what else there is to say
    after a trial.
    """

    total: int | None
    responses: Mapping[str, str]
    length_s: float | None = None
    remark: Callable[[Outcome], str] = lambda _: ""
    quiet: bool = False
    done: int = 0
    _walls: list[float] = field(default_factory=list)
    _began_s: float = 0.0
    _trial: Trial | None = None

    def started(self, trial: Trial) -> None:
        """Note the trial, and show it where somebody watches."""
        self._began_s = time.monotonic()
        self._trial = trial
        self.done = trial.id
        self._live("making ready")

    def interval(self, interval: Interval) -> None:
        """Show what the load reports."""
        if self._trial is None:
            return
        response = self.responses[self._trial.workload]
        value = interval.values.get(response, 0.0)
        of = f"/{self.length_s:.0f}" if self.length_s else ""
        self._live(f"{interval.t_s:4.0f}{of} s  {value:,.0f} {response}")

    def finished(self, outcome: Outcome) -> None:
        """Write the trial's line."""
        self._walls.append(time.monotonic() - self._began_s)
        self.done += 1
        response = self.responses[outcome.trial.workload]
        metrics = {m.name: m.value for m in outcome.metrics}
        if outcome.status is Status.OK:
            told = f"{metrics[response]:10,.1f} {response}"
            if "latency_p99_s" in metrics:
                told += f"   p99 {metrics['latency_p99_s'] * 1e3:8,.1f} ms"
        else:
            told = f"{outcome.status.value}: {outcome.error}"
        took = "" if self.length_s else f"   {outcome.window.end_s:.0f} s"
        self._line(f"{self._head(outcome.trial)}  {told}{took}{self._left()}")
        if remark := self.remark(outcome):
            self._line(remark)

    def _head(self, trial: Trial) -> str:
        of = f"/{self.total}" if self.total else ""
        return (
            f"{trial.id + 1:3d}{of}  block {trial.block + 1}  "
            f"{trial.workload}  {trial.treatment:<12}"
        )

    def _left(self) -> str:
        if not self.total or self.done >= self.total:
            return ""
        mean_s = sum(self._walls) / len(self._walls)
        return f"   {duration((self.total - self.done) * mean_s)} left"

    def _live(self, text: str) -> None:
        if sys.stderr.isatty() and not self.quiet and self._trial:
            line = f"{self._head(self._trial)}  {text}"
            sys.stderr.write(f"\r\x1b[2K{line[: width() - 1]}")
            sys.stderr.flush()

    def _line(self, text: str) -> None:
        if self.quiet:
            return
        clear = "\r\x1b[2K" if sys.stderr.isatty() else ""
        say(clear + text)
